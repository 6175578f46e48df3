"""The modules of seqtrain that an exported model carries: those that its script imports.

They read and encode rows, so that the script can't read a row otherwise than `seqtrain predict`.
"""

from __future__ import annotations

import ast
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import seqtrain

PACKAGE = Path(seqtrain.__file__).parent
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of every file, so that equal modules give equal bytes."""


def bundled(script: Path) -> bytes:
    """Return a zip archive of the modules that a script of the package imports.

    The `__init__.py` of a folder stays empty where nothing is imported from it.
    """
    needed: dict[str, bytes] = {}
    waiting = [*_imported(script)]
    while waiting:
        path = waiting.pop()
        name = str(path.relative_to(PACKAGE.parent).as_posix())
        if needed.get(name):
            continue
        needed[name] = path.read_bytes()
        for folder in path.relative_to(PACKAGE.parent).parents[:-1]:
            needed.setdefault(f"{folder.as_posix()}/__init__.py", b"")
        waiting += _imported(path)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(needed):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), needed[name], zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _imported(path: Path) -> Iterator[Path]:
    """Yield the files of our modules that a file imports, those for types alone left out."""
    for node in _statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from filter(None, (_file(alias.name) for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from filter(None, (_file(name) or _file(str(node.module)) for name in names))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield child
            yield from _statements(child)


def _file(module: str) -> Path | None:
    path = PACKAGE.parent.joinpath(*module.split("."))
    found = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in found if PACKAGE in file.parents and file.is_file()), None)
