"""What a search found so far: a record of each trial, in trials.jsonl."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import TypeAdapter

from seqtrain.errors import CheckpointError
from seqtrain.files.atomic import write_atomically
from seqtrain.files.directory import Directory
from seqtrain.files.reading import LARGEST_JSON, json_of, read_regular, unreadable
from seqtrain.files.strict_json import LARGEST
from seqtrain.text import json_line

TRIALS = "trials.jsonl"
FOLDER = "trials"
"""The folder of the runs of trials under way, and of the best one, each named by its number."""
State: TypeAlias = Literal["complete", "pruned", "failed", "stopped"]


@dataclass(frozen=True)
class Trial:
    """One trial that is over.

    Attributes:
        number: from 0, the config itself.
        state: complete; pruned (given up, as it was worse than others were by then); failed; or
            stopped, as time was over.
        settings: what was tried, by key.
        value: the best monitored value; None where no epoch ended.
        loss: of validation in that epoch, in nats.
        best_epoch: that epoch, from 1.
        epochs: passes over train made.
        curve: (share of its epochs in percent, best value so far in the sense that greater is
            better), after each epoch.
        seconds: it took.
        problem: why it failed.
    """

    number: int
    state: State
    settings: dict[str, Any]
    value: float | None = None
    loss: float | None = None
    best_epoch: int = 0
    epochs: int = 0
    curve: tuple[tuple[int, float], ...] = ()
    seconds: float = 0.0
    problem: str | None = None

    @property
    def order(self) -> tuple[float, float, int]:
        """What the best complete trial has the most of: value, lower loss, earlier number."""
        assert self.curve
        return self.curve[-1][1], -(self.loss or 0.0), -self.number


def best_of(trials: Iterable[Trial]) -> Trial | None:
    """Return the best complete trial, if there is one."""
    complete = [trial for trial in trials if trial.state == "complete"]
    return max(complete, key=lambda trial: trial.order, default=None)


def write_trials(folder: Path, trials: Mapping[int, Trial]) -> None:
    """Write all trials, a line each; raises as `write_atomically` does."""
    lines = [json_line(asdict(trials[number])) + "\n" for number in sorted(trials)]
    write_atomically(folder / TRIALS, "".join(lines).encode())


def remove_runs(directory: Path, unwanted: Callable[[int], bool]) -> None:
    """Remove runs of trials by their number; what no search names so stays.

    Raises:
        CheckpointError: a link, or no folder, stands where they belong.
        RunError: the machine failed to read it.
    """
    try:
        with Directory(directory) as here:
            if here.status_of(FOLDER) is None:
                return
            with here.folder(FOLDER) as folder:
                for name in folder.names():
                    if name.isdecimal() and unwanted(int(name)):
                        folder.try_to_remove(name)
    except OSError as error:
        raise unreadable(directory / FOLDER, error) from None


def read_trials(folder: Path) -> dict[int, Trial]:
    """Return the trials of a folder by number; none where it has no such file.

    Raises:
        CheckpointError: the file is damaged.
    """
    if not os.path.lexists(folder / TRIALS):
        return {}
    with Directory(folder) as here:
        content = read_regular(here, TRIALS, LARGEST_JSON)
    trials = {}
    for line, text in enumerate(content.splitlines(), start=1):
        values = json_of(folder / TRIALS, text)
        try:
            trial = checked(values)
        except ValueError:
            raise CheckpointError(
                f"{folder / TRIALS}:{line}: not a trial; restore the file, or start anew with "
                "--force"
            ) from None
        trials[trial.number] = trial
    return trials


def checked(values: Any) -> Trial:
    """Return a trial from its record, if a search can have written it.

    Raises:
        ValueError: it can't have written this.
    """
    trial: Trial = TypeAdapter(Trial).validate_python(values)
    counts = [trial.number, trial.best_epoch, trial.epochs]
    numbers = [trial.value, trial.loss, trial.seconds, *chain.from_iterable(trial.curve), *counts]
    finite = all(abs(number) <= LARGEST for number in numbers if number is not None)
    whole = trial.state != "complete" or (trial.curve and trial.value is not None)
    if not (finite and whole and min(counts) >= 0 and values.keys() == asdict(trial).keys()):
        raise ValueError("no search's")
    return trial
