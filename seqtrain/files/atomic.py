"""Writing files so that a reader sees the old content or the new, never half of one."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from seqtrain.errors import RunError
from seqtrain.files.directory import Directory

Content: TypeAlias = bytes | Iterable[bytes]
"""What a file is to hold: all at once, or in parts, where it is large."""
NO_SPACE = [getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name)]


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, and rename it.

    A link that stands there is replaced, not followed.

    Raises:
        RunError: the disk is full or the folder can't be written.
    """
    try:
        with Directory(path.parent) as folder:
            temporary, descriptor = folder.make_temporary_file(path.name)
            try:
                write_and_close(descriptor, content)
                folder.rename(temporary, path.name)
                folder.sync()
            except OSError:
                folder.try_to_remove(temporary)
                raise
    except OSError as error:
        raise not_written(path, error, len(content)) from None


@contextmanager
def whole_or_nothing(path: Path) -> Iterator[str]:
    """Yield a path to write to; what stands there afterwards gets its name, unless it failed.

    Raises:
        RunError: it can't be renamed.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with suppress(OSError):  # a link there isn't followed
            unfinished.unlink()
        yield str(unfinished)
        try:
            os.replace(unfinished, path)
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            unfinished.unlink()


def write_and_close(descriptor: int, content: Content, *, durable: bool = True) -> str:
    """Write a file's content; return its SHA-256, in hexadecimal.

    Args:
        descriptor: of the file, which is closed.
        content: to be written.
        durable: whether to flush it to the disk.
    """
    digest = hashlib.sha256()
    try:
        for part in (content,) if isinstance(content, bytes) else content:
            digest.update(part)
            write_all(lambda rest: os.write(descriptor, rest), part)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def write_all(write: Callable[[memoryview], int], content: bytes) -> None:
    """Write all of it: what writes to an unbuffered file may take a part at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[write(rest) :]


def not_written(path: Path, error: OSError, size: int) -> RunError:
    """Say why, how many bytes have no place, and that what stood there still does."""
    needed = f" ({size:,} bytes were to be written)" if error.errno in NO_SPACE else ""
    kept = "; the previous one is untouched" if os.path.exists(path) else ""
    return RunError(f"{path}: {error.strerror}{needed}{kept}")
