"""Runs, and their predictions, as tables and as JSON: mistakes, and rows where two runs differ."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.padding import Padding
from rich.text import Text

from seqtrain.api.diff import RunDifference
from seqtrain.api.evaluate import Evaluation
from seqtrain.cli.output.console import note, say, stdout_console
from seqtrain.cli.output.score_screen import OF_SHARES, note_floors, print_figures, print_scores
from seqtrain.cli.output.table import Record, TableColumn, figure, print_records
from seqtrain.evaluation.predicted_example import PredictedExample
from seqtrain.runs.overview import RunSummary, differing_keys
from seqtrain.text import listed, printable, quote

UNKNOWN = "-"
REFIT = "refit: the scores on validation are of the model before it, which didn't learn these rows"
FOR, AGAINST = "bold green", "bold red"
"""Styles of what speaks for a prediction and against it."""
SHOWN_TOKENS, STRONGEST = 200, 5
RIGHT = ("both", "only A", "only B", "neither")


def runs_json(runs: Sequence[RunSummary]) -> dict[str, Any]:
    """Return what `runs --json` prints."""
    began = [time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(run.started)) for run in runs]
    values = [
        {**asdict(run), "path": str(run.path), "started": started}
        for run, started in zip(runs, began, strict=True)
    ]
    return {"differing": differing_keys(runs), "runs": values}


def show_runs(runs: Sequence[RunSummary]) -> None:
    """Print a line for each run: its data, scores and time, then what differs in their configs."""
    keys = [key for key in differing_keys(runs) if key != "data.train"]
    last = [key.rpartition(".")[2] for key in keys]
    names = [x if last.count(x) == 1 else key for key, x in zip(keys, last, strict=True)]
    settings = [TableColumn(name, "words", rank) for rank, name in enumerate(names, start=4)]
    records: list[Record] = [
        {
            TableColumn("run", "name"): run.name,
            TableColumn("data", "words"): _data(run),
            TableColumn("val. acc.", rank=1): figure(run.validation.get("accuracy"), ".2%"),
            "test acc.": figure(run.test.get("accuracy"), ".2%"),
            "time": _duration(run.seconds),
            TableColumn("best epoch", rank=2): _epochs(run),
            TableColumn("val. loss", rank=3): figure(run.validation.get("loss"), ".4f"),
            **{name: run.setting(key) or UNKNOWN for name, key in zip(settings, keys, strict=True)},
        }
        for run in runs
    ]
    print_records(stdout_console(), records, also="seqtrain runs --json")
    if any(run.refit for run in runs):
        note(REFIT)


def _data(run: RunSummary) -> str:
    named = run.config.get("data.train", UNKNOWN)
    files = [named] if isinstance(named, str) else named
    return listed(["/".join(Path(file).parts[-2:]) for file in files], 1)


def _epochs(run: RunSummary) -> str:
    more = ", refit" * run.refit + ", unfinished" * (not run.finished)
    return f"{figure(run.best_epoch, 'd')} of {run.epochs}{more}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def show_evaluation(found: Evaluation, *, every: bool) -> None:
    """Print the scores of a run, with `every` also those of its branches, or runs, alone."""
    console = stdout_console()
    if found.parts and (every or found.ensemble):
        parts = {"together": found.scores, **found.parts}.items()
        records: Iterable[Record] = (
            {
                TableColumn("part", "words"): name,
                **{own.title(metric): own.text(metric) for metric in own.shown_metrics()},
            }
            for name, own in parts
        )
        print_records(console, records)
    print_scores(console, found.scores, found.split or Path(found.data).name, every=every)
    no_floors = found.ensemble or found.trained_on_rows  # of learned rows they say nothing
    branches = {} if no_floors else found.parts
    note_floors(found.scores, {name: part.accuracy for name, part in branches.items()})
    print_figures(console, found.by_share or [], OF_SHARES)


def mistake_json(row: PredictedExample) -> dict[str, Any]:
    """Return a mistake as JSON has it; weights only where they were asked for."""
    values = {
        "line": row.line,
        "text": row.text,
        "label": row.label,
        "answer": row.predicted,
        "probability": row.probability,
        "length": row.length,
        "file": row.file,
    }
    return values if row.weights is None else {**values, "weights": row.weights}


def show_errors(rows: Sequence[PredictedExample]) -> None:
    """Print mistakes on stdout, a line each, and which tokens they rest on, where that is known."""
    found = list[tuple[PredictedExample, Record]]()
    for row in rows:
        words = {"label": row.label, "predicted": row.predicted}
        labels: Record = {TableColumn(name, "words"): word for name, word in words.items()}
        found.append((row, {"probability": f"{row.probability:.2%}", **labels}))
    _print_rows(found)
    for row in rows:
        if row.weights is not None:
            _show_weights(row, row.weights)


def _print_rows(found: Sequence[tuple[PredictedExample, Record]]) -> None:
    """Print what is said of rows; before it where they stand, after it their sequence."""
    records, several = list[Record](), any(row.file for row, _ in found)
    for row, own in found:
        file: Record = {TableColumn("file", "words", 2): row.file or ""} if several else {}
        text: Record = {TableColumn("sequence", "text", 1): row.text}
        records.append({**file, "line": f"{row.line}", **own, **text})
    print_records(stdout_console(), records)


def _show_weights(row: PredictedExample, weights: Sequence[tuple[str, float]]) -> None:
    """Print a mistake's tokens in the colour of what they speak for, then the strongest ones."""
    head = Text.assemble(
        (f"\nline {row.line}: ", "dim"),
        (printable(row.predicted), FOR),
        f" {row.probability:.2%}, label ",
        (printable(row.label), AGAINST),
    )
    largest = max((abs(weight) for _, weight in weights), default=0.0)
    tokens = [token for token, _ in weights]
    of_characters = all(len(token) == 1 for token in tokens) and tokens != row.text.split()
    line, gap = Text(), "" if of_characters else " "
    for token, weight in weights[:SHOWN_TOKENS]:
        style = FOR if weight > 0 else AGAINST
        line.append(printable(token), style if abs(weight) >= largest / 4 else "dim").append(gap)
    if len(weights) > SHOWN_TOKENS:
        line.append(f" … {len(weights) - SHOWN_TOKENS:,} more")
    times = Counter(tokens)
    steps = sorted(enumerate(weights, start=1), key=lambda step: -abs(step[1][1]))
    strongest = ", ".join(
        (quote(token) if token.isspace() else printable(token))
        + (f" (step {step})" if times[token] > 1 else "")
        + f" {weight:+.2f}"
        for step, (token, weight) in steps[:STRONGEST]
    )
    for text in (head, *(Padding(x, (0, 0, 0, 2)) for x in (line, f"strongest: {strongest}"))):
        stdout_console().print(text, markup=False)


def diff_json(found: RunDifference, top: int | None) -> dict[str, Any]:
    """Return what `diff --json` prints, with as many differing rows as `top` says."""
    rows = [
        {
            **{name: getattr(a, name) for name in ("line", "file", "text", "label")},
            "a": {"answer": a.predicted, "probability": a.probability},
            "b": {"answer": b.predicted, "probability": b.probability},
        }
        for a, b in found.rows[:top]
    ]
    metrics = [asdict(each) for each in found.metrics]
    return {
        "a": str(found.runs[0]),
        "b": str(found.runs[1]),
        "data": found.data,
        "num_examples": found.num_examples,
        "left_out": found.left_out,
        "metrics": {each.pop("metric"): each for each in metrics},
        "right": found.counts,
        "num_differing": len(found.rows),
        "rows": rows,
    }


def show_diff(found: RunDifference, top: int) -> None:
    """Print the metrics, who is right how often, and the first rows that differ."""
    records: list[Record] = [
        {
            TableColumn("metric", "words"): each.metric.replace("_", " ").replace("f1", "F1"),
            "A": f"{each.a:.2%}",
            "B": f"{each.b:.2%}",
            "B - A": f"{each.difference:+.2%}",
            "95% interval": f"{each.low:+.1%} to {each.high:+.1%}",
        }
        for each in found.metrics
    ]
    print_records(stdout_console(), records)
    right = [f"{who} {count:,}" for who, count in zip(RIGHT, found.counts.values(), strict=True)]
    say(f"right: {', '.join(right)}; of {found.num_examples:,} examples")
    accuracy = found.metrics[0]
    better = "B" if accuracy.difference > 0 else "A"
    verdict = f"{better} is better, by more than chance would explain"
    if accuracy.low <= 0 <= accuracy.high:
        verdict = "the difference may be chance (its interval holds 0)"
    say(f"accuracy: {verdict}")
    pairs = list[tuple[PredictedExample, Record]]()
    for a, b in found.rows[:top]:
        words = {"label": a.label, "A": a.predicted, "B": b.predicted}
        both: Record = {TableColumn(name, "words"): word for name, word in words.items()}
        shares = f"{a.probability:.1%}, {b.probability:.1%}"
        pairs.append((a, {**both, TableColumn("probabilities", rank=3): shares}))
    _print_rows(pairs)
    if len(found.rows) > top:
        say(f"{top} of {len(found.rows):,} predictions that differ")
