"""A file that a command is asked to write: refused before anything else is done, not after."""

from __future__ import annotations

import os
from pathlib import Path

from seqtrain.errors import ConfigError


def check_new_file(
    option: str, path: str | None, *, force: bool, source: str | None = None
) -> None:
    """Refuse a file that can't be written, or one that would be lost.

    Args:
        option: that names it, such as --output.
        path: the file; None: there is none to write.
        force: whether an existing file may be replaced.
        source: the input's path, which may not be replaced; None: standard input, or no input.

    Raises:
        ConfigError: it is the input itself, exists and isn't forced, is a folder, or its folder
            is missing or can't be written to.
    """
    if path is None:
        return
    target = Path(path)
    try:
        if target.is_dir():
            raise ConfigError(f"{option}: {target} is a folder; expected a file")
        same = source is not None and Path(source).exists() and target.exists()
        if same and target.samefile(str(source)):
            raise ConfigError(f"{option}: {path} is the input; choose another file")
        if target.is_file() and not force:
            raise ConfigError(f"{option}: {path} exists; replace it with --force")
        folder = target.absolute().parent
        if not folder.is_dir():
            raise ConfigError(f"{option}: no folder {folder}; make it first")
        if not target.exists() and not os.access(folder, os.W_OK | os.X_OK):
            raise ConfigError(f"{option}: {folder} can't be written to; choose another folder")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{option}: {path}: {getattr(error, 'strerror', error)}") from None
