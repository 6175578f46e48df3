"""The list of runs, as a table and as JSON."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seqtrain.cli.screens.console import note, stdout_console
from seqtrain.cli.screens.tables import format_number, print_records
from seqtrain.runs.overview import RunSummary, differing_keys
from seqtrain.text import duration, listed

NO_VALUE = "-"
LOSS_NOTE = "accuracy, loss: on validation, of the calibrated model once training has ended"
BASELINE_NOTE = "baseline: accuracy of always predicting the most frequent class of these rows"
REFIT_NOTE = "refit: validation scores are those of the model before training.refit"


def runs_json(runs: Sequence[RunSummary]) -> dict[str, Any]:
    """Return the object that ``runs --json`` prints: the runs, and keys whose values differ."""
    rows = []
    for run in runs:
        started = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(run.started))
        rows.append({**asdict(run), "path": str(run.path), "started": started})
    return {"differing": differing_keys(runs), "runs": rows}


def show_runs(runs: Sequence[RunSummary]) -> None:
    """Print a table with a row per run: scores, time, and the settings that differ between runs.

    ``--sort`` accepts the headings.
    """
    keys = differing_keys(runs)
    last_words = [key.rpartition(".")[2] for key in keys]
    headings = {}
    for key, word in zip(keys, last_words, strict=True):
        headings[key] = word if last_words.count(word) == 1 else key
    records = []
    for run in runs:
        scores = run.validation or run.test
        record = {
            "run": run.name,
            "accuracy": format_number(run.validation.get("accuracy"), ".2%"),
            "test.accuracy": format_number(run.test.get("accuracy"), ".2%"),
            "time": duration(run.seconds),
            "baseline": format_number(scores.get("majority_baseline"), ".2%"),
            "best_epoch": _epochs(run),
            "macro_f1": format_number(run.validation.get("macro_f1"), ".2%"),
            "loss": format_number(run.validation.get("loss"), ".4f"),
        }
        for key, heading in headings.items():
            record[heading] = _setting(run, key)
        records.append(record)
    console = stdout_console()
    # A name can be copied, and programs read a row per line.
    whole = ["run"] if console.is_terminal else list(records[0])
    print_records(console, records, whole=whole)
    note(LOSS_NOTE, BASELINE_NOTE)
    if any(run.refit for run in runs):
        note(REFIT_NOTE)


def _setting(run: RunSummary, key: str) -> str:
    """Return the value of a config key as text, or a dash if the run lacks the key.

    For data.train, the text has the end of the first path, and the number of further files.
    """
    value = run.config.get(key)
    if key == "data.train" and value is not None:
        files = [value] if isinstance(value, str) else value
        return listed(["/".join(Path(file).parts[-2:]) for file in files], 1)
    return run.setting(key) or NO_VALUE


def _epochs(run: RunSummary) -> str:
    """Return the best epoch and the number of epochs as text, such as "3 of 8, unfinished".

    The text also notes a refit. Without a best epoch, it begins with a dash.
    """
    notes = ", refit" * run.refit + ", unfinished" * (not run.finished)
    return f"{format_number(run.best_epoch, 'd')} of {run.epochs}{notes}"
