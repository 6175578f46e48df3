"""Reading what `write_folder` wrote: of one writing, undamaged, and nothing larger than allowed."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from seqtrain.data.examples import BadRow
from seqtrain.data.readers.strict_json import parse_json as parse_strictly
from seqtrain.errors import CheckpointError, reading_fault
from seqtrain.runs.files import MANIFEST, complete_folder

LARGEST_JSON = 2**28
"""Most bytes of a JSON file that is read."""
READ_ATTEMPTS = 10
"""Times a folder is read, for a writer may be replacing it."""
PAUSE = 0.01
"""Seconds that each further attempt waits longer."""
SHOWN = 12
"""Digits of a digest in a message."""
FOREIGN = {
    **{bytes([0x80, protocol]): "a pickle" for protocol in range(2, 6)},
    b"PK\x03\x04": "a zip archive, as torch.save writes it",
    b"\x1f\x8b": "a gzip archive",
}
"""What else weights are kept in, by its first bytes."""

T = TypeVar("T")


class SavedFolder:
    """A folder that `write_folder` wrote; each file is checked as it is read.

    Args:
        folder: where.
    """

    def __init__(self, folder: Path) -> None:
        self.place = complete_folder(folder)
        self._identity = _identity(self.place)

    @cached_property
    def _digests(self) -> dict[str, Any]:
        path = self.place / MANIFEST
        values = parse_json(path, _read(path, LARGEST_JSON))
        digests = values.get("sha256") if isinstance(values, dict) else None
        if not isinstance(digests, dict):
            raise CheckpointError(f"{path}: no digests in it; expected a seqtrain manifest")
        return digests

    def read(self, name: str, limit: int = LARGEST_JSON) -> bytes:
        """Return the content of a file.

        Args:
            name: of the file.
            limit: most bytes that may be in it.

        Raises:
            CheckpointError: it or the manifest is missing, larger, or not what was written.
        """
        digests, path = self._digests, self.place / name
        content = _read(path, limit)
        kind = _foreign_kind(content)
        if kind:
            raise CheckpointError(
                f"{path}: is {kind}; such files are never opened, for they can hold code; "
                "restore it from a copy"
            )
        found, wanted = hashlib.sha256(content).hexdigest(), digests.get(name)
        if not isinstance(wanted, str):
            raise CheckpointError(f"{path}: no SHA-256 of it in {MANIFEST}; restore the folder")
        if found != wanted:
            is_, says = unlike(found, wanted)
            raise CheckpointError(
                f"{path}: damaged: its SHA-256 is {is_}, the manifest says {says}; "
                "restore it from a copy"
            )
        return content

    def read_json(self, name: str) -> Any:
        """Return the JSON value of a file; raises as `read` does, or where it isn't JSON."""
        return parse_json(self.place / name, self.read(name))

    @property
    def is_replaced(self) -> bool:
        """Whether another folder stands in its place by now."""
        return _identity(self.place) != self._identity


def read_folder(folder: Path, read: Callable[[SavedFolder], T]) -> T:
    """Return what `read` makes of a saved folder; anew where it is replaced meanwhile.

    All that `read` sees is of one writing, the old or the new.

    Raises:
        CheckpointError: the folder is missing, or `read` raised it.
    """
    for attempt in range(1, READ_ATTEMPTS):
        saved = SavedFolder(folder)
        try:
            return read(saved)
        except CheckpointError:
            if not saved.is_replaced:
                raise
        time.sleep(attempt * PAUSE)
    return read(SavedFolder(folder))


def parse_json(path: Path, content: bytes) -> Any:
    """Return the JSON value of a file.

    Raises:
        CheckpointError: it isn't JSON.
    """
    try:
        return parse_strictly(content.decode())
    except (UnicodeDecodeError, BadRow) as error:
        raise CheckpointError(f"{path}: not valid JSON ({error})") from None


def unlike(first: str, second: str) -> tuple[str, str]:
    """Shorten two digests to twelve digits in which they differ."""
    pairs = enumerate(zip(first, second, strict=False))
    start = next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))
    start = start // SHOWN * SHOWN
    before = "…" if start else ""
    return f"{before}{first[start:][:SHOWN]}…", f"{before}{second[start:][:SHOWN]}…"


def _foreign_kind(content: bytes) -> str | None:
    """Name a pickle or an archive by its first bytes.

    A safetensors file begins with the length of its header; where that is below 16 MiB, with zeros
    from the fourth byte on.
    """
    if content[3:8] == bytes(5):
        return None
    kinds = [kind for magic, kind in FOREIGN.items() if content.startswith(magic)]
    if content[257:262] == b"ustar" and not content.startswith(b"{"):
        kinds.append("a tar archive")
    return kinds[0] if kinds else None


def _read(path: Path, limit: int) -> bytes:
    """Read a regular file, without waiting on pipes and devices."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise CheckpointError(f"{path}: not a regular file")
            if status.st_size > limit:
                raise CheckpointError(
                    f"{path}: found {status.st_size:,} bytes; expected at most {limit:,}"
                )
            return file.read(limit + 1)
    except OSError as error:
        wrong = CheckpointError(f"{path}: {error.strerror} (tried {path.absolute()})")
        raise reading_fault(path, error) or wrong from None


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _identity(folder: Path) -> tuple[int, int]:
    """Tell a folder from the one that takes its place."""
    try:
        status = folder.stat()
    except OSError:
        return 0, 0
    return status.st_ino, status.st_ctime_ns
