"""Power loss at any moment of a save: whatever wasn't flushed may be lost, alone or with the rest.

A save is traced, and its writes are replayed up to each moment. What a later flush covers is kept;
of the rest, none is kept, or all, or one alone, or all but one, or some, and writes may be halved.
The order in which the system would write unflushed changes back isn't relied on.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from seqtrain.errors import CheckpointError
from seqtrain.runs.run_directory import RunDirectory
from tests.helpers.tracing import NEW, OLD, calls, copied, good, plain, prepare, save_new, trace

ROOT = 0


@dataclass
class Change:
    """One change: to names (a folder and a name each, and what they stand for) or to a content.

    Attributes:
        names: number of the file or folder by (number of its folder, name); None: no more.
        file: whose content is appended to.
        content: appended.
        flushed_by: index of the change after which it is safe, if any.
    """

    names: dict[tuple[int, str], int | None] = field(default_factory=dict)
    file: int | None = None
    content: bytes = b""
    flushed_by: int | None = None


class Replay:
    """The folder before the save, and the save's changes in order.

    Args:
        folder: as it was before.
        lines: the trace of the save.
    """

    def __init__(self, folder: Path, lines: list[str]) -> None:
        self.names: dict[tuple[int, str], int | None] = {}
        self.contents: dict[int, bytes] = {}
        self.folders = {ROOT}
        self.changes: list[Change] = []
        self._load(folder, ROOT)
        self.now = dict(self.names)
        self.folder = folder
        for call in calls(lines, folder):
            self._apply(call.name, plain(call.line))

    def _load(self, folder: Path, number: int) -> None:
        for path in folder.iterdir():
            child = self._new(folder=path.is_dir())
            self.names[number, path.name] = child
            if path.is_dir():
                self._load(path, child)
            else:
                self.contents[child] = path.read_bytes()

    def _new(self, *, folder: bool) -> int:
        number = len(self.folders) + len(self.contents)
        if folder:
            self.folders.add(number)
        else:
            self.contents[number] = b""
        return number

    def _find(self, path: str) -> tuple[tuple[int, str], int | None]:
        """Return where a path stands in its folder, and the number that it has now."""
        place, number = (ROOT, ""), ROOT
        for name in Path(path).relative_to(self.folder).parts:
            place = (number, name)
            found = self.now.get(place)
            if found is None:
                return place, None
            number = found
        return place, number

    def _apply(self, name: str, line: str) -> None:
        paths = re.findall(rf"{re.escape(str(self.folder))}[^\"<>]*", line)
        place, number = self._find(paths[0])
        if name in ("openat", "mkdir") and number is None:
            self._rename({place: self._new(folder=name == "mkdir")})
        elif name == "write":
            assert number is not None
            content = re.search(r'>, "(.*)", [0-9]+\) += [0-9]+$', line, re.DOTALL)
            assert content
            self.changes.append(Change(file=number, content=content[1].encode("latin1")))
        elif name == "fsync":
            self._flush(number)
        elif name == "rename":
            target, _ = self._find(paths[1])
            self._rename({place: None, target: number})
        elif name in ("unlink", "unlinkat", "rmdir"):
            self._rename({place: None})

    def _rename(self, names: dict[tuple[int, str], int | None]) -> None:
        self.now.update(names)
        self.changes.append(Change(names=names))

    def _flush(self, number: int | None) -> None:
        """What was changed in a file or a folder is safe from here on."""
        assert number is not None
        for change in self.changes:
            touched = {change.file} | {folder for folder, _ in change.names}
            if number in touched and change.flushed_by is None:
                change.flushed_by = len(self.changes)

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
                shares = dict.fromkeys(safe, 1.0) | dict.fromkeys(chosen, half)
                yield end == len(self.changes), shares

    def write(self, folder: Path, shares: dict[int, float]) -> None:
        """Write the folder as the disk has it."""
        names, contents = dict(self.names), dict(self.contents)
        for index in sorted(shares):
            change = self.changes[index]
            names.update(change.names)
            if change.file is not None:
                kept = change.content[: int(len(change.content) * shares[index])]
                contents[change.file] += kept
        self._write(folder, ROOT, names, contents)

    def _write(
        self,
        folder: Path,
        number: int,
        names: dict[tuple[int, str], int | None],
        contents: dict[int, bytes],
    ) -> None:
        folder.mkdir()
        for (parent, name), child in names.items():
            if parent == number and child in self.folders:
                self._write(folder / name, child, names, contents)
            elif parent == number and child is not None:
                (folder / name).write_bytes(contents[child])


def recovered(folder: Path) -> int:
    """Recover as a resumed run does; return the number of the save that it goes on from."""
    run = RunDirectory(folder)
    run.remove_strays()
    (best,) = good(run.best)
    assert best[0] in (OLD, NEW)
    number, length = good(run.last, run.previous)[0]
    run.cut_metrics(length)
    assert (folder / "config.yaml").read_text() in (str(OLD), str(NEW))
    return number


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_every_state_after_power_loss_recovers(
    disk: Path, strace: str, figure: Callable[[str], None], step: int
) -> None:
    prepare(disk / "template")
    run = copied(disk / "template", "run")
    code, lines = trace(strace, run, save_new)
    assert code == 0
    shutil.rmtree(run)
    shutil.copytree(disk / "template", run)
    replay = Replay(run, lines)
    tried, old, lost = 0, 0, 0
    for over, shares in list(replay.states(random.Random(0)))[::step]:
        shutil.rmtree(run)
        replay.write(run, shares)
        number = recovered(run)
        assert number == NEW if over else number in (OLD, NEW)
        tried, old = tried + 1, old + (number == OLD)
        lost += len(shares) < len(replay.changes)
    assert 0 < old < tried
    assert lost
    figure(
        f"power loss: {tried} states with unflushed changes lost, out of {len(replay.changes)} "
        f"changes of a save: all recover, {old} to the old checkpoint and {tried - old} to the new"
    )


def test_a_missing_flush_would_be_noticed(disk: Path, strace: str) -> None:
    """The replay isn't blind: where flushes do nothing, some state doesn't recover."""
    prepare(disk / "template")
    run = copied(disk / "template", "run")
    _, lines = trace(strace, run, save_new)
    shutil.rmtree(run)
    shutil.copytree(disk / "template", run)
    replay = Replay(run, [line for line in lines if " fsync(" not in line])
    failures = 0
    for _, shares in replay.states(random.Random(0)):
        shutil.rmtree(run)
        replay.write(run, shares)
        try:
            recovered(run)
        except (AssertionError, CheckpointError, IndexError, ValueError):
            failures += 1
            break
    assert failures
