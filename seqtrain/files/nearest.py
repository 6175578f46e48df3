"""The file that a misspelled path may have meant."""

from __future__ import annotations

import os

from seqtrain.text import nearest, printable

MOST_NAMES = 1000
"""Names of a folder that are looked at."""


def nearest_file(path: str | os.PathLike[str]) -> str | None:
    """Return a path in the same folder whose name is like that of a missing one, if there is one.

    Args:
        path: of a file that isn't there.

    Returns:
        The path as the user would write it, escaped.
    """
    folder, name = os.path.split(os.fspath(path))
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry, _ in zip(entries, range(MOST_NAMES), strict=False)]
    except (OSError, ValueError):
        return None
    near = nearest(name, sorted(names), 0.75) if name else None
    return None if near is None else printable(os.path.join(folder, near))
