"""The order of the rooms: a room imports only rooms before it, and nothing imports in a circle."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOMS = (
    *("errors", "text", "signals", "files", "metrics", "config", "sequences", "proposal"),
    *("engines", "model"),
    *("evaluation", "training", "runs", "exports", "reports", "api", "sklearn"),
    "cli",
)
PACKAGE = Path(__file__).parents[1] / "seqtrain"
FILES = sorted(PACKAGE.rglob("*.py"))
TORCH_FREE = (
    *("errors", "text", "signals", "files", "metrics", "config", "sequences/readers", "proposal"),
    "reports",
    *("runs/run_directory", "runs/overview", "evaluation/scores", "evaluation/predicted_example"),
    "__init__",
)
TORCH_FREE_FILES = [
    path for path in FILES if str(path.relative_to(PACKAGE).with_suffix("")).startswith(TORCH_FREE)
]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    """Yield the full name of every module that a file imports, outside TYPE_CHECKING."""
    for node in parsed(path).body if top_level_only else ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str | None:
    """Return the room of a module of ours, or None."""
    parts = module.split(".")
    return parts[1] if parts[0] == "seqtrain" and len(parts) > 1 and parts[1] in ROOMS else None


def to_the_right(path: Path) -> list[str]:
    """Return what a file imports of rooms that come after its own."""
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if own == "__init__":
        return [name for name in imports(path, top_level_only=True) if room_of(name)]
    right = () if own == "__main__" else ROOMS[ROOMS.index(own) + 1 :]
    return [name for name in imports(path) if room_of(name) in right]


def test_nothing_imports_to_its_right():
    assert {path: found for path in FILES if (found := to_the_right(path))} == {}


def module_of(path: Path) -> str:
    """Return the full name of a file's module."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def own_modules(path: Path, modules: set[str]) -> set[str]:
    """Return our modules that a file imports as it is read."""
    names = {*imports(path, top_level_only=True)}
    return (names | {name.rpartition(".")[0] for name in names}) & modules


def test_nothing_imports_in_a_circle():
    modules = {module_of(path) for path in FILES}
    graph = {
        module_of(path): own_modules(path, modules)
        for path in FILES
        if path != PACKAGE / "__init__.py"  # names every part for its users
    }
    assert sum(map(len, graph.values())) > 300
    TopologicalSorter(graph).prepare()  # an error that names the circle


def test_config_and_readers_need_no_torch():
    found = {path: {name.split(".")[0] for name in imports(path)} for path in TORCH_FREE_FILES}
    assert [path for path, names in found.items() if "torch" in names] == []


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.parent.name in ("evaluation", "training")], ids=lambda p: p.name
)
def test_evaluation_and_training_touch_no_file(path):
    """`processes.py` reads the environment, and `trainer.py` broadcasts JSON."""
    allowed = {"processes.py": {"os"}, "trainer.py": {"json"}}
    refused = {"pathlib", "io", "json", "os"} - allowed.get(path.name, set())
    assert not {name.split(".")[0] for name in imports(path)} & refused
    calls = [node.func for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    assert not {call.id for call in calls if isinstance(call, ast.Name)} & {"open", "print"}


def test_the_rooms_are_those_of_the_document():
    document = (PACKAGE / "README.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `(\w+)(?:/|\.py)` \|", document, re.MULTILINE)) == ROOMS
