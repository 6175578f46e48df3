"""Statistics of data, as `seqtrain fit` and `seqtrain data` show them, and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from seqtrain.cli.screens.console import say, stdout_console
from seqtrain.cli.screens.tables import print_table
from seqtrain.sequences.inspection import LENGTH_QUANTILES, RARE, Inspection, RowPlace
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.summary import SplitSummary
from seqtrain.text import counted, listed, quote

LENGTH_NAMES = ("shortest", "5 %", "median", "95 %", "longest")
"""Names of `SplitSummary.length_quantiles`."""
JSON_DOUBTS = 20
"""Largest number of labels or groups that a doubt of `data --json` names."""
SHOWN_PLACES = 4
"""Largest number of rows that are named of a group of equal rows."""


def show_splits(
    console: Console, preprocessing: Preprocessing, summaries: Mapping[str, SplitSummary]
) -> None:
    """Print a table with the sizes, lengths and shares of each split, one split per column.

    Args:
        console: Console to print on.
        preprocessing: Preprocessing, whose classes and tokens are counted.
        summaries: Maps the name of each split to its summary.
    """
    vocabulary = preprocessing.vocabulary
    heading = f"{len(preprocessing.labels)} classes"
    if vocabulary is not None:
        heading += f", {len(vocabulary):,} tokens"
    columns = [_column(own, has_tokens=vocabulary is not None) for own in summaries.values()]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    print_table(console, [heading, *summaries], rows)


def _column(summary: SplitSummary, *, has_tokens: bool) -> dict[str, str]:
    """Return the cells of a split by the name of their row."""
    cells = {"rows": f"{summary.rows:,}", "tokens" if has_tokens else "steps": f"{summary.steps:,}"}
    for name, length in zip(LENGTH_NAMES, summary.length_quantiles, strict=True):
        cells[f"length: {name}"] = f"{length:,}"
    if has_tokens:
        cells["unknown tokens"] = f"{summary.unknown:.2%}"
    cells["also in train"] = f"{summary.repeats:,}"
    cells["majority class"] = f"{summary.majority:.2%}"
    return cells


def padding_line(padding: tuple[float, float]) -> str:
    """Return a line about padding.

    Args:
        padding: Share of padding in random batches, and in batches of similar length, in [0, 1).
    """
    without, within = padding
    return f"padding: {without:.1%} in random batches, {within:.1%} in buckets of similar length"


def inspection_json(found: Inspection) -> dict[str, Any]:
    """Return the object that `data --json` prints."""
    splits = {
        name: {
            **{key: value for key, value in asdict(summary).items() if key != "length_quantiles"},
            "lengths": dict(zip(map(str, LENGTH_QUANTILES), found.lengths[name], strict=True)),
            "cut": found.cut[name][0],
            "labels": found.labels[name],
            "unseen_labels": found.unseen_labels.get(name, []),
            "refused": found.num_refused.get(name, 0),
        }
        for name, summary in found.summaries.items()
    }
    vocabulary = found.data.preprocessing.vocabulary
    vectors = found.data.vectors
    return {
        "classes": len(found.data.preprocessing.labels),
        "vocabulary": None if vocabulary is None else len(vocabulary),
        "splits": splits,
        "vectors": None if vectors is None else asdict(vectors.coverage),
        "padding": {"random": found.padding[0], "bucketing": found.padding[1]},
        "rare_labels": found.rare_labels,
        "refused": found.refused,
        "duplicates": [_rows(group) for group in found.duplicates],
        "conflicts": [{"rows": _rows(rows), "labels": labels} for rows, labels in found.conflicts],
        "warnings": found.warnings,
        "doubts": [line.strip() for line in _doubts(found, JSON_DOUBTS)],
    }


def _rows(group: Sequence[RowPlace]) -> list[dict[str, Any]]:
    """Return the places of rows as JSON objects: split, line, and file if the place names one."""
    return [
        {"split": split, **({"file": file} if file else {}), "line": line}
        for split, file, line in group
    ]


def show_inspection(found: Inspection, top: int) -> None:
    """Print statistics of data: splits, padding, lengths, rare labels, and rows to look at.

    Args:
        found: Statistics of the data.
        top: Largest number of labels or groups to show of each kind. All lines about refused rows
            are shown.
    """
    console = stdout_console()
    show_splits(console, found.data.preprocessing, found.summaries)
    say(padding_line(found.padding))
    if found.data.vectors is not None:
        say(found.data.vectors.coverage.line())
    cut = [f"{name} {rows:,} ({share:.1%})" for name, (rows, share) in found.cut.items() if rows]
    if cut:
        say(f"cut at data.max_length, {found.config.data.max_length:,} steps: {', '.join(cut)}")
    train = found.labels["train"]
    rarest = sorted(train, key=lambda label: train[label])[:top]
    if len(train) > top:
        heading = f"rarest of {len(train):,} labels"
    else:
        heading = "label"
    counts = [(x, *(f"{own.get(x, 0):,}" for own in found.labels.values())) for x in rarest]
    print_table(console, [heading, *found.labels], counts)
    doubts = list(_doubts(found, top))
    say("doubtful:" if doubts else "nothing doubtful was found", *(f"  {x}" for x in doubts))


def _doubts(found: Inspection, top: int) -> Iterator[str]:
    """Yield a line for all that is doubtful: columns, labels, and rows to look at.

    Args:
        found: Statistics of the data.
        top: Largest number of labels or groups to name of each kind. All lines about refused rows
            are yielded.
    """
    yield from found.doubts
    yield from (line for line in found.warnings if line not in found.refused)
    if found.rare_labels:
        names = [f"{quote(name)} ({n})" for name, n in found.rare_labels.items()]
        yield f"labels with fewer than {RARE} rows in train: {listed(names, top)}"
    for split, labels in found.unseen_labels.items():
        if labels:
            yield f"labels of {split} that train lacks: {listed([quote(n) for n in labels], top)}"
    for split, count in found.num_refused.items():
        if count:
            yield f"{split}: fit would refuse {counted(count, 'row')}"
    yield from (f"  {line}" for line in found.refused)
    groups = found.duplicates
    if groups:
        apart = [len({split for split, _, _ in group}) > 1 for group in groups]
        yield (
            f"groups of sequences that are equal: {len(groups):,} ({sum(apart):,} in several "
            "splits)"
        )
        first = sorted(zip(apart, groups, strict=True), key=lambda each: not each[0])
        yield from (f"  {_named(group)}" for _, group in first[:top])
    if found.conflicts:
        yield f"sequences with several different labels: {len(found.conflicts):,}"
        for group, labels in found.conflicts[:top]:
            yield f"  {_named(group)}: {listed([quote(label) for label in labels])}"


def _named(group: Sequence[RowPlace]) -> str:
    """Return a text that names the places of the rows of a group, `SHOWN_PLACES` at most."""
    words = [
        f"{split} {file}:{line}" if file else f"{split} line {line}" for split, file, line in group
    ]
    return listed(words, SHOWN_PLACES)
