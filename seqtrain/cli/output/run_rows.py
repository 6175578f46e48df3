"""Runs as a table or as JSON."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from seqtrain.cli.output.columns import Column, print_columns
from seqtrain.cli.output.console import note, stdout_console
from seqtrain.runs.overview import RunSummary

UNKNOWN = "-"
REFIT = "*: of the model before training.refit trained it anew, on the rows of validation too"


def runs_json(runs: Sequence[RunSummary], keys: Sequence[str]) -> dict[str, Any]:
    """Return what `runs --json` prints."""
    return {"differing": list(keys), "runs": [_as_values(run) for run in runs]}


def _as_values(run: RunSummary) -> dict[str, Any]:
    return {**asdict(run), "path": str(run.path), "started": _time(run.started)}


def _time(seconds: float) -> str | None:
    """Return a time of day, or None where the calendar ends before it."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return None


def show_runs(runs: Sequence[RunSummary], keys: Sequence[str]) -> None:
    """Print a line for each run; the columns of keys are left out first on a narrow terminal."""
    test = [run.test.get("accuracy") for run in runs]
    marked = any(run.refit for run in runs)
    columns = [
        Column("run", [run.name for run in runs], "name"),
        *(
            Column(_short(key, keys), [run.setting(key) or UNKNOWN for run in runs], "words", rank)
            for rank, key in enumerate(keys, start=4)
        ),
        Column("best epoch", [_epochs(run) for run in runs], rank=2),
        Column("val. loss", [_validated(run, "loss", ".4f", marked) for run in runs], rank=3),
        Column("val. acc.", [_validated(run, "accuracy", ".2%", marked) for run in runs]),
        Column("test acc.", [_figure(value, ".2%") for value in test]),
        Column("time", [_duration(run.seconds) for run in runs], rank=1),
    ]
    console = stdout_console()
    print_columns(console, columns, edge=console.is_terminal, also="seqtrain runs --json")
    if marked:
        note(REFIT)


def _short(key: str, keys: Sequence[str]) -> str:
    """Return a key without its section, where that is clear."""
    last = key.rpartition(".")[2]
    return last if sum(other.rpartition(".")[2] == last for other in keys) == 1 else key


def _epochs(run: RunSummary) -> str:
    best = UNKNOWN if run.best_epoch is None else f"{run.best_epoch}"
    return f"{best} of {run.epochs}" + ("" if run.finished else ", unfinished")


def _validated(run: RunSummary, score: str, form: str, marked: bool) -> str:
    """Return a score of validation, with a mark where the model was then refit."""
    return _figure(run.validation.get(score), form) + ("*" if run.refit else " " * marked)


def _figure(value: float | None, form: str) -> str:
    return UNKNOWN if value is None else format(value, form)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
