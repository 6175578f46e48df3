"""A look at data, as tables or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from seqtrain.cli.output.columns import Column, print_columns
from seqtrain.cli.output.console import stdout_console
from seqtrain.cli.output.data_table import data_table, padding_line
from seqtrain.data.inspection import LENGTH_QUANTILES, RARE, Inspection, RowPlace
from seqtrain.text import counted, listed, printable, quote

SHOWN_PLACES = 4
"""Rows of one group of equal ones that are named."""


def inspection_json(found: Inspection) -> dict[str, Any]:
    """Return what `data --json` prints."""
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
    vocabulary, vectors = found.data.preprocessing.vocabulary, found.data.vectors
    return {
        "classes": len(found.data.preprocessing.labels),
        "vocabulary": None if vocabulary is None else len(vocabulary),
        "splits": splits,
        "vectors": None if vectors is None else asdict(vectors.coverage),
        "padding": {"random": found.padding[0], "bucketing": found.padding[1]},
        "rare_labels": found.rare_labels,
        "refused": found.refused,
        "duplicates": [_places(found, group) for group in found.duplicates],
        "near_duplicates": [_places(found, group) for group in found.near_duplicates],
        "conflicts": [
            {"rows": _places(found, p), "labels": labels} for p, labels in found.conflicts
        ],
        "alike": found.alike,
        "mixed_words": found.mixed_words,
        "warnings": found.warnings,
    }


def _places(found: Inspection, group: Sequence[RowPlace]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for place in group:
        file, line = found.file_line(place)
        rows.append({"split": place[0], **({"file": file} if file else {}), "line": line})
    return rows


def show_inspection(found: Inspection, top: int) -> None:
    """Print what fit shows first, then lengths, labels, and rows and characters to look at."""
    console = stdout_console()
    print_columns(console, data_table(found.data.preprocessing, found.summaries))
    console.print(padding_line(found.padding), soft_wrap=not console.is_terminal)
    vectors = found.data.vectors
    if vectors is not None:
        console.print(vectors.coverage.line(), soft_wrap=True, markup=False)
    names = list(found.lengths)
    print_columns(
        console,
        [
            Column("length before any cut", [*map(_quantile, LENGTH_QUANTILES), "cut"], "words"),
            *(Column(name, _lengths(found, name)) for name in names),
        ],
    )
    _show_labels(found, top)
    for line in _lines(found, top):
        console.print(printable(line), soft_wrap=True, markup=False)


def _quantile(share: float) -> str:
    return {0.0: "shortest", 0.5: "median", 1.0: "longest"}.get(share, f"{share:.0%}")


def _lengths(found: Inspection, name: str) -> list[str]:
    rows, share = found.cut[name]
    return [*(f"{length:,}" for length in found.lengths[name]), f"{rows:,} ({share:.1%})"]


def _show_labels(found: Inspection, top: int) -> None:
    """Print the rows of each label, the rarest of train first; of many labels some."""
    train = found.labels["train"]
    rarest = sorted(train, key=lambda label: train[label])[:top]
    print_columns(
        stdout_console(),
        [
            Column(f"{len(train):,} labels, the rarest", rarest, "words"),
            *(
                Column(name, [f"{counts.get(label, 0):,}" for label in rarest])
                for name, counts in found.labels.items()
            ),
        ],
    )


def _lines(found: Inspection, top: int) -> Iterator[str]:
    """Yield what is to be looked at, a line each."""
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
    yield from _groups(found, "written alike", found.duplicates, top)
    near = "alike but for case, marks, blanks and numbers"
    yield from _groups(found, near, found.near_duplicates, top)
    if found.conflicts:
        yield f"the same sequence under several labels: {len(found.conflicts):,}"
        for group, labels in found.conflicts[:top]:
            yield f"  {_places_text(found, group)}: {listed([quote(label) for label in labels])}"
    for group_of_marks in found.alike[:top]:
        shown = [f"U+{ord(c):04X} {printable(c)} ({n:,})" for c, n in group_of_marks.items()]
        yield f"characters that look alike: {listed(shown)}"
    if found.mixed_words:
        words = [f"{word!a} ({n})" for word, n in found.mixed_words.items()]
        yield f"words that mix letters of several alphabets: {listed(words, top)}"


def _groups(
    found: Inspection, what: str, groups: Sequence[Sequence[RowPlace]], top: int
) -> Iterator[str]:
    """Count sequences that come again inside splits and between them, and name some."""
    if not groups:
        return
    between = sum(len({split for split, _ in group}) > 1 for group in groups)
    yield f"sequences {what}: {len(groups):,}, of these {between:,} in several splits"
    several_first = sorted(groups, key=lambda group: len({split for split, _ in group}) == 1)
    yield from (f"  {_places_text(found, group)}" for group in several_first[:top])


def _places_text(found: Inspection, group: Sequence[RowPlace]) -> str:
    rows = ((place[0], *found.file_line(place)) for place in group)
    words = [
        f"{split} line {line}" if file is None else f"{split} {file}:{line}"
        for split, file, line in rows
    ]
    return listed(words, SHOWN_PLACES)
