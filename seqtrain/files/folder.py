"""Verified folders: written whole with a manifest of digests, checked file by file when read."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from seqtrain.errors import CheckpointError
from seqtrain.files.atomic import Content, not_written, write_and_close
from seqtrain.files.digests import BLOCK, unlike
from seqtrain.files.directory import Directory, is_stray
from seqtrain.files.reading import (
    LARGEST_JSON,
    json_of,
    open_in,
    read_part,
    read_regular,
    unreadable,
)
from seqtrain.files.regular import status_of
from seqtrain.files.strict_json import to_json

MANIFEST = "manifest.json"
READ_ATTEMPTS = 10
"""Times a folder is read, for a writer may be replacing it."""
PAUSE = 0.01
"""Seconds that each further attempt waits longer."""
FOREIGN = {
    **{bytes([0x80, protocol]): "a pickle" for protocol in range(2, 6)},
    b"PK\x03\x04": "a zip archive, as torch.save writes it",
    b"\x1f\x8b": "a gzip archive",
}
"""What else weights are kept in, by its first bytes."""

T = TypeVar("T")


def write_folder(
    target: Path,
    files: Mapping[str, Content],
    previous: Path | None = None,
    *,
    cache: bool = False,
) -> Path | None:
    """Write a folder of files with a manifest of their SHA-256, then put it in the target's place.

    Everything is on the disk before it is put there. At every moment the target is whole, the old
    or the new (where the system can't exchange folders, `complete_folder` finds it).

    Args:
        target: where; a link that stands there is replaced, not followed.
        files: content by name.
        previous: a path beside it, where the target's old folder goes; what stood there is removed,
            or, where this is None, the old folder itself.
        cache: it may be lost with the power, and is nobody else's: it isn't flushed to the disk,
            and only the user may read it.

    Returns:
        A folder that can't be removed and is left for `remove_strays`, or None.

    Raises:
        RunError: the disk is full or the folder can't be written; the old one is untouched.
    """
    try:
        with Directory(target.parent) as parent:
            new = parent.make_temporary_folder(target.name, 0o700 if cache else 0o777)
            try:
                _fill(parent, new, files, cache=cache)
                _put(parent, new, target.name, durable=not cache)
                if previous is not None and parent.status_of(new) is not None:
                    _put(parent, new, previous.name)
            finally:
                gone = parent.try_to_remove(new)
    except OSError as error:
        size = sum(len(content) for content in files.values() if isinstance(content, bytes))
        raise not_written(target, error, size) from None
    return None if gone else target.with_name(new)


def _fill(parent: Directory, new: str, files: Mapping[str, Content], *, cache: bool) -> None:
    """Write the files of a new folder, the manifest last."""
    flags, mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if cache else 0o666
    digests: dict[str, str] = {}
    with parent.folder(new) as folder:
        for name, content in files.items():
            descriptor = folder.open(name, flags, mode)
            digests[name] = write_and_close(descriptor, content, durable=not cache)
        manifest = to_json({"sha256": digests})
        write_and_close(folder.open(MANIFEST, flags, mode), manifest, durable=not cache)
        if not cache:
            folder.sync()
            parent.sync()


def _put(parent: Directory, new: str, target: str, *, durable: bool = True) -> None:
    """Put a folder in the target's place; the target's own takes its name, where there is one."""
    if parent.status_of(target) is None:
        parent.rename(new, target)
    elif not parent.exchange(new, target):
        old = _aside(target)
        parent.remove(old)
        parent.rename(target, old)
        parent.rename(new, target)
        parent.rename(old, new)
    if durable:
        parent.sync()


def _aside(target: str) -> str:
    return f".{target}-old"


def complete_folder(folder: Path) -> Path:
    """Return the folder, or the one moved aside if writing stopped between the two renames."""
    aside = folder.parent / _aside(folder.name)
    return aside if not os.path.lexists(folder) and os.path.lexists(aside) else folder


def remove_strays(path: Path, targets: Sequence[str]) -> list[Path]:
    """Clean up after a writer that was killed: no temporary stays, no whole folder is lost.

    Args:
        path: of the folder whose entries to clean.
        targets: names of the folders that `write_folder` puts there.

    Returns:
        What can't be removed.

    Raises:
        OSError: the folder can't be read, or a whole one not be put in its place.
    """
    with Directory(path) as folder:
        strays = []
        for target in targets:
            old = _aside(target)
            if folder.status_of(old) is not None:
                if folder.status_of(target) is None:
                    folder.rename(old, target)
                else:
                    strays.append(old)
        strays += [name for name in folder.names() if is_stray(name)]
        return [path / name for name in strays if not folder.try_to_remove(name)]


class VerifiedFolder:
    """A folder that `write_folder` wrote, held open; each file is checked as it is read.

    Args:
        folder: where; a link there isn't followed.

    Raises:
        CheckpointError: there is none.
    """

    def __init__(self, folder: Path) -> None:
        self.place = complete_folder(folder)
        try:
            self.directory = Directory(self.place, follow=False)
        except OSError as error:
            raise unreadable(self.place, error) from None

    def __enter__(self) -> VerifiedFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.directory.__exit__()

    @cached_property
    def _digests(self) -> dict[str, Any]:
        path = self.place / MANIFEST
        values = json_of(path, read_regular(self.directory, MANIFEST, LARGEST_JSON))
        digests = values.get("sha256") if isinstance(values, dict) else None
        if not isinstance(digests, dict):
            raise CheckpointError(f"{path}: no digests in it; expected a seqtrain manifest")
        return digests

    def digest(self, name: str) -> str:
        """Return the SHA-256 that a file has by the manifest."""
        return str(self._digests.get(name))

    def read(self, name: str, limit: int = LARGEST_JSON) -> bytes:
        """Return the content of a file.

        Args:
            name: of the file.
            limit: most bytes that may be in it.

        Raises:
            CheckpointError: it or the manifest is missing, larger, or not what was written.
        """
        digests, path = self._digests, self.place / name
        content = read_regular(self.directory, name, limit)
        kind = _foreign_kind(content)
        if kind:
            raise CheckpointError(
                f"{path}: is {kind}; such files are never opened, for they can hold code; "
                "restore it from a copy"
            )
        _check_digest(path, hashlib.sha256(content).hexdigest(), digests.get(name))
        return content

    def read_blocks(self, name: str, size: int) -> Iterator[bytes]:
        """Yield the content of a large file; it is sound only once all of it has been yielded.

        Args:
            name: of the file.
            size: bytes that must be in it.

        Raises:
            CheckpointError: as `read` does, or its size is another.
        """
        digests, total, rest = self._digests, hashlib.sha256(), size
        with open_in(self.directory, name, size) as file:
            while rest and (block := read_part(file, self.place / name, min(BLOCK, rest))):
                total.update(block)
                rest -= len(block)
                yield block
        _check_digest(self.place / name, total.hexdigest(), digests.get(name))

    def read_json(self, name: str) -> Any:
        """Return the JSON value of a file; raises as `read` does, or where it isn't JSON."""
        return json_of(self.place / name, self.read(name))

    @property
    def is_replaced(self) -> bool:
        """Whether another folder stands in its place by now."""
        try:
            return not os.path.samestat(self.directory.status, os.stat(self.place))
        except OSError:
            return True


def read_folder(folder: Path, read: Callable[[VerifiedFolder], T]) -> T:
    """Return what `read` makes of a verified folder; anew where it is replaced meanwhile.

    All that `read` sees is of one writing, the old or the new.

    Raises:
        CheckpointError: the folder is missing, or `read` raised it.
    """
    for attempt in range(1, READ_ATTEMPTS):
        try:
            saved = VerifiedFolder(folder)
        except CheckpointError:
            found = status_of(complete_folder(folder))
            if found is None or not stat.S_ISDIR(found.st_mode):
                raise
        else:
            with saved:
                try:
                    return read(saved)
                except CheckpointError:
                    if not saved.is_replaced:
                        raise
        time.sleep(attempt * PAUSE)
    with VerifiedFolder(folder) as saved:
        return read(saved)


def _check_digest(path: Path, found: str, wanted: object) -> None:
    if not isinstance(wanted, str):
        raise CheckpointError(f"{path}: no SHA-256 of it in {MANIFEST}; restore the folder")
    if found != wanted:
        is_, says = unlike(found, wanted)
        raise CheckpointError(
            f"{path}: damaged: its SHA-256 is {is_}, the manifest says {says}; "
            "restore it from a copy"
        )


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
