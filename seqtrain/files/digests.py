"""SHA-256 of contents, and telling whether a file was changed while it was read."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from typing import BinaryIO

BLOCK = 2**20
"""Bytes that are read at a time."""
SHOWN = 12
"""Digits of a digest in a message."""
RECENT = 2_000_000_000
"""Nanoseconds within which a second change may leave a file's time as it was: on some file systems
the time counts in steps of two seconds."""


@dataclass(frozen=True)
class Version:
    """One content of a file, and what tells it from the next one without reading it.

    Attributes:
        digest: SHA-256 of the content, in hexadecimal.
        identity: device, number, size and time of the last change.
        settled: whether that change is old enough to tell it from any later one.
    """

    digest: str
    identity: tuple[int, int, int, int]
    settled: bool

    @classmethod
    def read(cls, file: BinaryIO) -> Version:
        """Return the version of an open file, reading all of it."""
        status, total = os.fstat(file.fileno()), hashlib.sha256()
        settled = time.time_ns() - status.st_mtime_ns > RECENT
        while block := file.read(BLOCK):
            total.update(block)
        return cls(total.hexdigest(), _identity(status), settled)

    def is_of(self, status: os.stat_result) -> bool:
        """Whether a file whose status this is has this version, as far as its time tells."""
        return self.identity == _identity(status)


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def unlike(first: str, second: str) -> tuple[str, str]:
    """Shorten two digests to twelve digits in which they differ."""
    pairs = enumerate(zip(first, second, strict=False))
    start = next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))
    start = start // SHOWN * SHOWN
    before = "…" if start else ""
    return f"{before}{first[start:][:SHOWN]}…", f"{before}{second[start:][:SHOWN]}…"
