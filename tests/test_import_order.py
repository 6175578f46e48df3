"""The rooms' order: each imports only from rooms before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOMS = (
    "errors",
    "text",
    "signals",
    "config",
    "data",
    "model",
    "training",
    "runs",
    "report",
    "workflows",
    "cli",
)
PACKAGE = Path(__file__).parents[1] / "seqtrain"
FILES = sorted(PACKAGE.rglob("*.py"))
TORCH_FREE = ("errors", "text", "signals", "config", "data/readers", "__init__")
TORCH_FREE_FILES = [
    path for path in FILES if str(path.relative_to(PACKAGE).with_suffix("")).startswith(TORCH_FREE)
]


def imports(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    """Yield the full name of every module that a file imports, outside TYPE_CHECKING."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str | None:
    """Return the room of a module of ours, or None."""
    parts = module.split(".")
    return parts[1] if parts[0] == "seqtrain" and len(parts) > 1 and parts[1] in ROOMS else None


def test_every_file_stands_in_a_room() -> None:
    names = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES}
    assert names == {*ROOMS, "__init__", "__main__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_imports_to_its_right(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if own == "__init__":
        assert not [name for name in imports(path, top_level_only=True) if room_of(name)]
        return
    right = () if own == "__main__" else ROOMS[ROOMS.index(own) + 1 :]
    assert not [name for name in imports(path) if room_of(name) in right]


@pytest.mark.parametrize("path", TORCH_FREE_FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_config_and_readers_need_no_torch(path: Path) -> None:
    assert not [name for name in imports(path) if name.split(".")[0] == "torch"]


@pytest.mark.parametrize("path", sorted((PACKAGE / "training").glob("*.py")), ids=lambda p: p.name)
def test_training_touches_no_file(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & {"pathlib", "os", "io", "json"}
    calls = [
        node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
    ]
    assert not {call.id for call in calls if isinstance(call, ast.Name)} & {"open", "print"}
