"""Data compressed as .gz, and as .zst if its package is installed."""

import gzip
from typing import Any

import pytest

from seqtrain.errors import ConfigError
from seqtrain.files.reading import import_zstd

try:
    ZSTD: Any = import_zstd()
except ConfigError:
    ZSTD = None
needs_zstd = pytest.mark.skipif(ZSTD is None, reason="needs: pip install 'seqtrain[zstd]'")
ENDINGS = ["gz", pytest.param("zst", marks=needs_zstd)]
NAMES = {"gz": "gzip", "zst": "zstd"}


def pack(data: bytes, ending: str) -> bytes:
    """Compress, with a check sum."""
    if ending == "gz":
        return gzip.compress(data, mtime=0)
    options = {ZSTD.CompressionParameter.checksum_flag: 1}
    return bytes(ZSTD.compress(data, options=options))


def unpack(data: bytes, ending: str) -> bytes:
    """Decompress."""
    return gzip.decompress(data) if ending == "gz" else bytes(ZSTD.decompress(data))
