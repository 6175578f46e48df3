"""Power loss at any moment of a save: what wasn't flushed may be lost, alone or with the rest."""

import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from seqtrain.errors import CheckpointError
from tests.helpers.tracing import NEW, OLD, calls, copied, plain, recovered, save_new, trace

ROOT = 0
Names = dict[tuple[int, str], int | None]
"""What names stand for: by the number of the folder, and the name; None: for nothing any more."""


@dataclass
class Change:
    """A change of names, or of a file's content; safe after the change `flushed_by`, if any."""

    names: Names = field(default_factory=dict)
    file: int | None = None
    content: bytes = b""
    flushed_by: int | None = None


class PowerLoss:
    """A folder before a save, the save's changes in order, and what a power loss leaves of them.

    What a later flush covers is kept; of the rest none, or all, or one alone, or all but one, or
    some, and writes may be halved: the order in which the system writes isn't relied on.
    """

    def __init__(self, folder: Path, lines: list[str]) -> None:
        self.folder, self.changes = folder, list[Change]()
        self.names: Names = {}
        self.contents: dict[int, bytes] = {}
        numbers = {folder: ROOT}
        for path in sorted(folder.rglob("*")):
            number = numbers[path] = len(numbers)
            self.names[numbers[path.parent], path.name] = number
            if path.is_file():
                self.contents[number] = path.read_bytes()
        self.now, self.known = dict(self.names), len(numbers)
        for call in calls(lines, folder):
            self._apply(call.name, plain(call.line))

    def _find(self, path: str) -> tuple[tuple[int, str], int | None]:
        """Return where a path stands in its folder, and the number that it has now."""
        key, number = (ROOT, ""), ROOT
        for name in Path(path).relative_to(self.folder).parts:
            key = (number, name)
            found = self.now.get(key)
            if found is None:
                return key, None
            number = found
        return key, number

    def _apply(self, name: str, line: str) -> None:
        paths = re.findall(rf"{re.escape(str(self.folder))}[^\"<>]*", line)
        key, number = self._find(paths[0])
        names: Names = {}
        if name in ("openat", "mkdir") and number is None:
            names = {key: self.known}
            if name == "openat":
                self.contents[self.known] = b""
            self.known += 1
        elif name == "write":
            content = re.search(r'>, "(.*)", [0-9]+\) += [0-9]+$', line, re.DOTALL)
            assert content
            self.changes.append(Change(file=number, content=content[1].encode("latin1")))
        elif name == "fsync":
            for change in self.changes:
                touched = {change.file} | {folder for folder, _ in change.names}
                if number in touched and change.flushed_by is None:
                    change.flushed_by = len(self.changes)
        elif name == "rename":
            names = {key: None, self._find(paths[1])[0]: number}
        elif name in ("unlink", "unlinkat", "rmdir"):
            names = {key: None}
        if names:
            self.now.update(names)
            self.changes.append(Change(names=names))

    def states(self, draw: random.Random) -> Iterator[tuple[bool, dict[int, float]]]:
        """Yield how much of each change is on the disk, and whether the save was over."""
        for end in range(len(self.changes) + 1):
            done = range(end)
            safe = {i for i in done if (by := self.changes[i].flushed_by) is not None and by <= end}
            loose = [i for i in done if i not in safe]
            kept: list[set[int]] = [set(), set(loose)]
            kept += [{i} for i in loose] + [set(loose) - {i} for i in loose]
            kept += [{i for i in loose if draw.random() < 0.5} for _ in range(4)]
            for chosen in kept:
                half = 0.5 if draw.random() < 0.3 else 1.0
                yield (
                    end == len(self.changes),
                    dict.fromkeys(safe, 1.0) | dict.fromkeys(chosen, half),
                )

    def write(self, shares: dict[int, float]) -> None:
        """Write the folder as the disk has it."""
        names, contents = dict(self.names), dict(self.contents)
        for index in sorted(shares):
            change = self.changes[index]
            names.update(change.names)
            if change.file is not None:
                contents[change.file] += change.content[: int(len(change.content) * shares[index])]
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        folders = [(ROOT, self.folder)]
        for number, folder in folders:  # which grow meanwhile
            inside = [(x, child) for (parent, x), child in names.items() if parent == number]
            for name, child in inside:
                if child in contents:
                    (folder / name).write_bytes(contents[child])
                elif child is not None:
                    (folder / name).mkdir()
                    folders.append((child, folder / name))


@pytest.fixture
def loss(template: Path, strace: str) -> Callable[[str], PowerLoss]:
    """Trace a save, and return what a power loss in it leaves, as if some calls did nothing."""
    run = copied(template)
    code, lines = trace(strace, run, save_new)
    assert code == 0
    return lambda lost: PowerLoss(copied(template), [line for line in lines if lost not in line])


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_every_state_after_power_loss_recovers(loss: Callable[[str], PowerLoss], step: int) -> None:
    replay, numbers = loss("no such call"), set()
    for is_over, shares in list(replay.states(random.Random(0)))[::step]:
        replay.write(shares)
        number = recovered(replay.folder)
        assert number == NEW if is_over else number in (OLD, NEW)
        numbers.add(number)
    assert numbers == {OLD, NEW}


def test_a_missing_flush_would_be_noticed(loss: Callable[[str], PowerLoss]) -> None:
    """The replay isn't blind: where flushes do nothing, some state doesn't recover."""
    replay = loss(" fsync(")

    def recover_all() -> None:
        for _, shares in replay.states(random.Random(0)):
            replay.write(shares)
            recovered(replay.folder)

    with pytest.raises((AssertionError, CheckpointError, IndexError, ValueError)):
        recover_all()
