"""Compressed files: the endings that name them, and the package that reads .zst."""

import sys
from importlib import import_module
from typing import Any

from seqtrain.errors import ConfigError


def compression_of(path: str) -> str:
    """Return the ending that says how a file is compressed: .gz, .zst, or nothing."""
    return next((ending for ending in (".gz", ".zst") if path.lower().endswith(ending)), "")


def uncompressed(path: str) -> str:
    """Return a file's name without the ending that says how it is compressed."""
    return path[: len(path) - len(compression_of(path))]


def import_zstd() -> Any:
    """Return the module `compression.zstd` of Python 3.14, or its copy for older ones.

    Raises:
        ConfigError: it isn't installed.
    """
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(
            "files that end in .zst need the package backports.zstd; "
            "install it with: pip install 'seqtrain[zstd]'"
        ) from None
