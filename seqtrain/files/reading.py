"""Reading of untrusted files: regular files, limits on size, strict JSON."""

import errno
import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from seqtrain.errors import (
    MACHINE_FAULTS,
    CheckpointError,
    RunError,
    SeqtrainError,
    missing_package,
)
from seqtrain.text import nearest, printable, quote

LARGEST_NUMBER = 1e18
"""Largest number that is accepted from an untrusted file, so that sums stay finite."""
LARGEST_JSON = 2**28
"""Largest JSON file that is read, in bytes."""
COMPARED_NAMES = 1000
"""Largest number of a folder's names with which the name of a missing file is compared."""
PATH_KINDS = {stat.S_IFREG: "a file", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}


def kind_of_path(path: str | Path) -> str:
    """Return the type of a path as words for messages, such as "a file". Links are followed.

    Raises:
        OSError: If the path doesn't exist or can't be examined.
    """
    return PATH_KINDS.get(stat.S_IFMT(os.stat(path).st_mode), "a device or socket")


def open_regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return its descriptor; use it as the `opener` of `open`.

    Raises:
        OSError: If the path is a folder, a pipe or a device, or can't be opened. The
            function doesn't wait for a pipe.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, f"is {kind_of_path(path)}; expected a regular file", str(path))
    return os.open(path, flags)


def path_problem(
    path: str | Path,
    error: OSError | ValueError,
    wrong: type[SeqtrainError] = CheckpointError,
    advice: str = "",
) -> SeqtrainError:
    """Return an error for the user from an error of the operating system about a path.

    Args:
        path: The path.
        error: Error of the operating system, or ValueError for a name that no path can have.
        wrong: Class of the returned error. If the machine is the cause, such as a full disk, a
            RunError is returned instead.
        advice: Advice to the user, or an empty text. If the file is missing and a similar file
            exists, the message names that file instead.
    """
    shown = printable(str(path)) or "''"
    reason = getattr(error, "strerror", None) or str(error)
    if isinstance(error, OSError) and error.errno in MACHINE_FAULTS:
        wrong = RunError
    elif isinstance(error, FileNotFoundError):
        near = nearest_file(path)
        reason = f"no such file (looked for {printable(os.path.abspath(path))})"
        advice = f"did you mean {near}?" if near else advice
    return wrong(f"{shown}: {reason}" + (advice and f"; {advice}"))


@contextmanager
def path_problems(
    path: str | Path, wrong: type[SeqtrainError] = CheckpointError, advice: str = ""
) -> Iterator[None]:
    """Convert an OSError in the `with` block to the error that `path_problem` returns.

    Arguments are as in `path_problem`. Other errors, such as ValueError, aren't converted.
    """
    try:
        yield
    except OSError as error:
        raise path_problem(path, error, wrong, advice) from None


def nearest_file(path: str | Path) -> str | None:
    """Return the path in the same folder that is most similar to a missing path.

    Control characters are escaped for a message. At most `COMPARED_NAMES` names are compared.

    Returns:
        The path, or None if no name is similar enough or the folder can't be read.
    """
    folder, name = os.path.split(path)
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in islice(entries, COMPARED_NAMES)]
    except (OSError, ValueError):
        return None
    near = nearest(name, sorted(names), 0.75) if name else None
    if near is None:
        return None
    return printable(os.path.join(folder, near))


def read_file(path: Path, limit: int = LARGEST_JSON) -> bytes:
    """Return the content of a regular file.

    Raises:
        CheckpointError: If the file is missing, unreadable, or larger than `limit` bytes.
        RunError: If the machine fails while reading.
    """
    with path_problems(path), open(path, "rb", opener=open_regular) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= limit:
            return file.read()
    raise CheckpointError(f"{path}: found {size:,} bytes; expected at most {limit:,}")


def read_json(path: Path) -> Any:
    """Return the JSON value of a file.

    Raises:
        CheckpointError: If the file is missing, unreadable, larger than `LARGEST_JSON`, or isn't
            JSON as `parse_json` accepts it.
        RunError: If the machine fails while reading.
    """
    return json_of(path, read_file(path))


def json_of(path: str | Path, content: bytes) -> Any:
    """Parse a file's content as JSON and return the value.

    Args:
        path: Path of the file, for the message.
        content: Content of the file.

    Raises:
        CheckpointError: If the content isn't UTF-8, or `parse_json` refuses it.
    """
    try:
        return parse_json(content.decode())
    except (UnicodeDecodeError, NotJSONError) as error:
        raise CheckpointError(f"{path}: not valid JSON ({error}); restore it from a copy") from None


class NotJSONError(ValueError):
    """A text isn't one JSON value. The message gives the reason, and the place if it is known."""


def parse_json(text: str) -> object:
    """Return the JSON value of a text.

    A number beyond the range of float, such as 1e999, becomes infinity; see `number_at`.

    Raises:
        NotJSONError: If the text is malformed or nested too deeply. Repeated keys, NaN, Infinity,
            escapes of lone surrogates, and very long integers aren't allowed either.
    """
    try:
        value: object = _DECODER.decode(text)
        if "\\" in text and ("\\ud" in text or "\\uD" in text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise NotJSONError(f"not JSON at column {error.colno}: {error.msg}") from None
    except UnicodeEncodeError:
        raise NotJSONError("JSON with a lone surrogate escape (\\ud800 to \\udfff)") from None
    except RecursionError:
        raise NotJSONError("JSON nested too deeply") from None
    except NotJSONError:
        raise
    except ValueError:
        raise NotJSONError("JSON with an integer of thousands of digits") from None
    return value


def number_at(value: Any, *path: str) -> float | None:
    """Return the number at a path of keys in nested JSON objects, or None without a valid number.

    A number is valid if its absolute value is at most `LARGEST_NUMBER`. True and false aren't
    numbers.

    Args:
        value: The outermost value.
        *path: Keys from the outside to the inside. Without a key, `value` must be the number.
    """
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
        return value
    return None


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise NotJSONError(f"JSON with the key {quote(twice)} twice")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise NotJSONError(f"{name} is not JSON; write null for a missing value")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)


def compression_of(path: str) -> str:
    """Return the ending of a compressed file, .gz or .zst in lower case, or "" for another path."""
    return next((ending for ending in (".gz", ".zst") if path.lower().endswith(ending)), "")


def uncompressed(path: str) -> str:
    """Return a path without its ending .gz or .zst, if it has one."""
    return path[: len(path) - len(compression_of(path))]


def ending_of(path: str) -> str:
    """Return the ending of a path in lower case, such as .csv, without .gz or .zst."""
    return os.path.splitext(uncompressed(path))[1].lower()


def import_zstd() -> Any:
    """Import and return the module `compression.zstd`, or `backports.zstd` before Python 3.14.

    Raises:
        ConfigError: If `backports.zstd` is needed and isn't installed.
    """
    if sys.version_info >= (3, 14):
        name = "compression.zstd"
    else:
        name = "backports.zstd"
    try:
        return import_module(name)
    except ImportError:
        raise missing_package("a file that ends in .zst", "backports.zstd", "zstd") from None
