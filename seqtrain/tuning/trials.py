"""What a search found so far: a record of each trial, in trials.jsonl."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from seqtrain.errors import CheckpointError
from seqtrain.files.atomic import write_atomically
from seqtrain.files.directory import Directory
from seqtrain.files.reading import LARGEST_JSON, json_of, read_regular
from seqtrain.text import json_line

TRIALS = "trials.jsonl"
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
            curve = tuple((int(share), float(value)) for share, value in values.pop("curve"))
            trial = Trial(**values, curve=curve)
            trials[int(trial.number)] = trial
            assert trial.state != "complete" or curve
        except (AssertionError, AttributeError, KeyError, TypeError, ValueError):
            raise CheckpointError(
                f"{folder / TRIALS}:{line}: not a trial; restore the file, or start anew with "
                "--force"
            ) from None
    return trials
