"""A file that a command is asked to write: refused before anything else is done, not after."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from seqtrain.errors import ConfigError
from seqtrain.files.regular import wrong_kind


def check_new_file(
    option: str,
    path: str | None,
    *,
    force: bool,
    sources: Sequence[str] = (),
    streams: bool = False,
) -> None:
    """Refuse a file that can't be written, or one that would be lost.

    Args:
        option: that names it, such as --output.
        path: the file; None: there is none to write.
        force: whether an existing file may be replaced.
        sources: paths of the input, which may not be replaced.
        streams: whether a pipe or a device may be written into; else the file is put in the place
            of what stands there, and a device would be gone.

    Raises:
        ConfigError: it is an input itself, exists and isn't forced, is a folder, pipe or device,
            or its folder is missing or can't be written to.
    """
    if path is None:
        return
    target = Path(path)
    try:
        if target.is_dir():
            raise ConfigError(f"{option}: {target} is a folder; expected a file")
        there = target.exists()
        if there and any(os.path.exists(each) and target.samefile(each) for each in sources):
            raise ConfigError(f"{option}: {path} is the input; choose another file")
        if there and not streams and not target.is_file():
            found = wrong_kind(target, target.stat().st_mode, "file").found
            raise ConfigError(f"{option}: {path} is {found}; expected a file")
        if target.is_file() and not force:
            raise ConfigError(f"{option}: {path} exists; replace it with --force")
        folder = target.absolute().parent
        if not folder.is_dir():
            raise ConfigError(f"{option}: no folder {folder}; make it first")
        if not there and not os.access(folder, os.W_OK | os.X_OK):
            raise ConfigError(f"{option}: {folder} can't be written to; choose another folder")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{option}: {path}: {getattr(error, 'strerror', error)}") from None
