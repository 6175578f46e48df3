"""Runs as a table or as JSON."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from seqtrain.cli.output.console import note, stdout_console
from seqtrain.cli.output.table import TableColumn, print_table
from seqtrain.runs.overview import RunSummary

UNKNOWN = "-"
REFIT = "*: of the model before training.refit, which trains on the rows of validation too"


def runs_json(runs: Sequence[RunSummary], keys: Sequence[str]) -> dict[str, Any]:
    """Return what `runs --json` prints."""
    values = [{**asdict(r), "path": str(r.path), "started": _time(r.started)} for r in runs]
    return {"differing": list(keys), "runs": values}


def _time(seconds: float) -> str | None:
    """Return a time of day, or None where the calendar ends before it."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return None


def show_runs(runs: Sequence[RunSummary], keys: Sequence[str]) -> None:
    """Print a line for each run; the columns of keys are left out first on a narrow terminal."""
    last = [key.rpartition(".")[2] for key in keys]
    names = [x if last.count(x) == 1 else key for key, x in zip(keys, last, strict=True)]
    columns = [
        TableColumn("run", "name"),
        *(TableColumn(name, "words", rank) for rank, name in enumerate(names, start=4)),
        TableColumn("best epoch", rank=2),
        TableColumn("val. loss", rank=3),
        TableColumn("val. acc."),
        TableColumn("test acc."),
        TableColumn("time", rank=1),
    ]
    refit = any(run.refit for run in runs)
    rows = [
        (
            run.name,
            *(run.setting(key) or UNKNOWN for key in keys),
            _epochs(run),
            *(x + ("*" if run.refit else " " * refit) for x in _validated(run)),
            _figure(run.test.get("accuracy"), ".2%"),
            _duration(run.seconds),
        )
        for run in runs
    ]
    console = stdout_console()
    print_table(console, columns, rows, edge=console.is_terminal, also="seqtrain runs --json")
    if refit:
        note(REFIT)


def _validated(run: RunSummary) -> tuple[str, str]:
    loss, accuracy = (run.validation.get(name) for name in ("loss", "accuracy"))
    return _figure(loss, ".4f"), _figure(accuracy, ".2%")


def _epochs(run: RunSummary) -> str:
    best = UNKNOWN if run.best_epoch is None else f"{run.best_epoch}"
    return f"{best} of {run.epochs}" + ("" if run.finished else ", unfinished")


def _figure(value: float | None, form: str) -> str:
    return UNKNOWN if value is None else format(value, form)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
