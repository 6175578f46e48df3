"""Runs as a table or as JSON."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seqtrain.cli.output.console import note, stdout_console
from seqtrain.cli.output.table import TableColumn, print_table
from seqtrain.runs.overview import RunSummary, differing_keys
from seqtrain.text import listed

UNKNOWN = "-"
REFIT = "*: of the model before training.refit, which trains on the rows of validation too"


def runs_json(runs: Sequence[RunSummary]) -> dict[str, Any]:
    """Return what `runs --json` prints."""
    values = [{**asdict(r), "path": str(r.path), "started": _time(r.started)} for r in runs]
    return {"differing": differing_keys(runs), "runs": values}


def _time(seconds: float) -> str | None:
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return None


def show_runs(runs: Sequence[RunSummary]) -> None:
    """Print a line for each run: its data, scores and time, then what differs in their configs."""
    keys = [key for key in differing_keys(runs) if key != "data.train"]
    last = [key.rpartition(".")[2] for key in keys]
    names = [x if last.count(x) == 1 else key for key, x in zip(keys, last, strict=True)]
    columns = [
        TableColumn("run", "name"),
        TableColumn("data", "words"),
        TableColumn("val. acc.", rank=1),
        TableColumn("test acc."),
        TableColumn("time"),
        TableColumn("best epoch", rank=2),
        TableColumn("val. loss", rank=3),
        *(TableColumn(name, "words", rank) for rank, name in enumerate(names, start=4)),
    ]
    mark = "*" if any(run.refit for run in runs) else ""
    rows = [
        (
            *(run.name, _data(run), _figure(run.validation.get("accuracy"), ".2%", run, mark)),
            *(_figure(run.test.get("accuracy"), ".2%"), _duration(run.seconds), _epochs(run)),
            _figure(run.validation.get("loss"), ".4f", run, mark),
            *(run.setting(key) or UNKNOWN for key in keys),
        )
        for run in runs
    ]
    console = stdout_console()
    print_table(console, columns, rows, edge=console.is_terminal, also="seqtrain runs --json")
    if mark:
        note(REFIT)


def _data(run: RunSummary) -> str:
    named = run.config.get("data.train", UNKNOWN)
    files = [named] if isinstance(named, str) else named
    return listed(["/".join(Path(file).parts[-2:]) for file in files], 1)


def _epochs(run: RunSummary) -> str:
    best = UNKNOWN if run.best_epoch is None else f"{run.best_epoch}"
    return f"{best} of {run.epochs}" + ("" if run.finished else ", unfinished")


def _figure(value: float | None, form: str, run: RunSummary | None = None, mark: str = "") -> str:
    marked = "" if run is None else mark if run.refit else " " * len(mark)
    return (UNKNOWN if value is None else format(value, form)) + marked


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
