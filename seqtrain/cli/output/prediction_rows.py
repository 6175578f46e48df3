"""Predictions as rows of tsv, csv or jsonl, or as lines for people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, TextIO

from rich.cells import cell_len

from seqtrain.api.predictions import sequence_text
from seqtrain.api.predictors import Prediction
from seqtrain.cli.output.console import stdout_console
from seqtrain.cli.output.table import TableColumn, aligned, cut, note_left_out
from seqtrain.data.examples import Example, keeps_all
from seqtrain.text import json_line, printable

NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
BREAKING = re.compile(r"[\t\r\n]")
"""What would break a row of a table into two."""
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a csv cell that a spreadsheet runs as a formula (CWE-1236)."""
IN_JSON = ("index", "label", "labels", "guess", "probability", "probabilities", "problem")
WIDEST_LABEL, NARROWEST_LABEL, PROBABILITY, GAP = 24, 6, len("probability"), 2
WHOLE, KEPT, SEQUENCE = len("100.00%"), 12, len("sequence")
"""Width of a class's probability, of a cell of the input at least, and of the text at least."""
READ = 2000
"""Most characters of a sequence that a line for people is made of."""


@dataclass(frozen=True)
class PredictionColumns:
    """Which columns, in their order: file, line, those kept of the input, and the prediction's.

    Attributes:
        format: tsv, csv, jsonl, or lines for people.
        top_k: how many labels, the most probable ones; None: one, in jsonl all.
        each_class: the probability of each class in the order of the labels, too.
        whole_files: whether each file is a row.
        threshold: probability from which on a label is written; below it the label is empty, with
            the best guess beside it in every row, as `guess`. None: every label is written.
        spreadsheet_safe: csv: put a ' before what a spreadsheet would run as a formula.
        file: whether rows name their file, as those of a folder do.
        separator: stands between the labels of a row that may have several, and between their
            probabilities.
    """

    labels: Sequence[str]
    format: str
    top_k: int | None = None
    each_class: bool = False
    keep: Sequence[str] = ()
    whole_files: bool = False
    threshold: float | None = None
    spreadsheet_safe: bool = False
    file: bool = False
    separator: str | None = None

    @property
    def keeps_all(self) -> bool:
        """Whether all columns of the input are kept, whose names the first row tells."""
        return keeps_all(self.keep)

    @property
    def ranks(self) -> int:
        """How many labels a row of a table has."""
        return min(self.top_k or 1, len(self.labels))

    @property
    def read_ranks(self) -> int | None:
        """How many labels have to be known of each prediction; None: all."""
        every = self.each_class or (self.format == "jsonl" and not self.top_k)
        return None if every else self.ranks

    @cached_property
    def where(self) -> list[str]:
        """Columns that say where a row stands."""
        return ["file"] * self.file + ["line"] * (self.file and not self.whole_files)

    def names(self) -> list[str]:
        """Return the header of a table."""
        suffixes = [f"_{rank + 1}" if self.top_k else "" for rank in range(self.ranks)]
        own = [name + suffix for suffix in suffixes for name in ("label", "probability")]
        own += [] if self.threshold is None else ["guess"]
        own += [f"probability_{label}" for label in self.labels if self.each_class]
        return [*self.where, *self.kept_names([*self.where, *own]), *own]

    def kept_names(self, taken: Sequence[str]) -> list[str]:
        """Return the names of the input's columns; one that is taken gets `input_` before it."""
        names = {*taken, *self.keep}
        found = []
        for name in self.keep:
            new = name
            while name in taken and new in names:
                new = f"input_{new}"
            names.add(new)
            found.append(new)
        return found

    def cells(self, prediction: Prediction) -> list[str]:
        """Return a row of a table; where there is no prediction, its cells are empty."""
        cells = [_text(value) for value in self._beside(prediction)]
        ranked = self.decided(prediction, self.ranks, ".6f")
        for rank, (label, probability) in enumerate(ranked):
            hidden = rank == 0 and self.is_undecided(prediction)
            cells += ["" if hidden else label, probability]
        cells += [""] * (2 * (self.ranks - len(ranked)))
        cells += [] if self.threshold is None else [prediction.label]
        if self.each_class:
            found = prediction.probabilities
            cells += [f"{found[name]:.6f}" if name in found else "" for name in self.labels]
        return cells

    def values(self, prediction: Prediction) -> dict[str, Any]:
        """Return a row of jsonl, without its index."""
        names = [*self.where, *self.kept_names([*self.where, *IN_JSON])]
        row = dict(zip(names, self._beside(prediction), strict=True))
        if prediction.problem is not None:
            nothing: dict[str, Any] = {"label": None, "probability": None, "probabilities": {}}
            return row | nothing | {"problem": prediction.problem}
        found = prediction.probabilities
        order = self.labels if self.each_class else list(found)[: self.top_k]
        if self.separator is not None:
            own = {label: round(found[label], 6) for label in prediction.labels}
            row |= {"label": prediction.label, "labels": [*own], "probability": [*own.values()]}
            return row | {"probabilities": {label: round(found[label], 6) for label in order}}
        return row | {
            "label": "" if self.is_undecided(prediction) else prediction.label,
            **({} if self.threshold is None else {"guess": prediction.label}),
            "probability": round(prediction.probability, 6),
            "probabilities": {label: round(found[label], 6) for label in order},
        }

    def decided(self, prediction: Prediction, ranks: int, form: str) -> list[tuple[str, str]]:
        """Return the labels of so many ranks and their probabilities; or all predicted ones."""
        if self.separator is None or self.top_k:
            items = islice(prediction.probabilities.items(), ranks)
            return [(label, format(probability, form)) for label, probability in items]
        own = (format(prediction.probabilities[label], form) for label in prediction.labels)
        return [(prediction.label, self.separator.join(own))]

    def is_undecided(self, prediction: Prediction) -> bool:
        """Whether a prediction is less probable than the threshold."""
        return self.threshold is not None and prediction.probability < self.threshold

    def _beside(self, prediction: Prediction) -> list[Any]:
        example = _example(prediction)
        kept = example.kept or {}
        return [*(getattr(example, name) for name in self.where), *map(kept.get, self.keep)]

    def completed(self, first: Sequence[Prediction]) -> PredictionColumns:
        """Return them with what the first rows tell: whether these are of files, and all names."""
        found = replace(self, file=bool(first and _example(first[0]).file is not None))
        if self.keeps_all:
            kept = _example(first[-1]).kept if first else None
            found = replace(found, keep=list(kept or ()))
        return found


def _example(prediction: Prediction) -> Example:
    assert prediction.example is not None, "api.predict says what was classified"
    return prediction.example


def _text(value: Any) -> str:
    """Return a cell of a table: a text as it is, other JSON as JSON, nothing for null."""
    return "" if value is None else value if isinstance(value, str) else json_line(value)


def tsv_cell(text: str) -> str:
    """Leave a cell as it is, as tsv files do; only one that would break the row is quoted."""
    return _quoted(text) if BREAKING.search(text) else text


def csv_cell(text: str, *, spreadsheet_safe: bool = False) -> str:
    """Quote a cell where csv needs it; if asked, put a ' before what may be a formula."""
    if spreadsheet_safe and text.startswith(FORMULA_MARKS) and not NUMBER.fullmatch(text):
        text = f"'{text}"
    return _quoted(text) if BREAKING.search(text) or "," in text or '"' in text else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def write_predictions(
    predictions: Iterator[Prediction], open_file: Callable[[], Any], columns: PredictionColumns
) -> tuple[int, int]:
    """Write one row per prediction, as they come; the file opens once the first row is known.

    Returns:
        How many rows had no known token, and how many stayed below the columns' threshold.
    """
    first: list[Prediction] = []
    for prediction in predictions:
        first.append(prediction)
        if not columns.keeps_all or _example(prediction).kept is not None:
            break
    columns = columns.completed(first)
    unknown = undecided = 0
    make = {"jsonl": _json_rows, "lines": _lines}.get(columns.format, _table_rows)
    with open_file() as file:
        row = make(file, columns)
        for index, prediction in enumerate(chain(first, predictions)):
            file.write(row(index, prediction) + "\n")
            unknown += prediction.unknown == 1.0
            undecided += columns.is_undecided(prediction)
        file.flush()
    return unknown, undecided


def _json_rows(file: TextIO, columns: PredictionColumns) -> Callable[[int, Prediction], str]:
    return lambda index, prediction: json_line({"index": index} | columns.values(prediction))


def _table_rows(file: TextIO, columns: PredictionColumns) -> Callable[[int, Prediction], str]:
    """Write the header of tsv or csv; return what makes a row."""
    safe, is_csv, shown = columns.spreadsheet_safe, columns.format == "csv", file.isatty()

    def joined(cells: Sequence[str]) -> str:
        quoted = [csv_cell(c, spreadsheet_safe=safe) if is_csv else tsv_cell(c) for c in cells]
        return ("," if is_csv else "\t").join(map(printable, quoted) if shown else quoted)

    file.write(joined(columns.names()) + "\n")
    return lambda index, prediction: joined(columns.cells(prediction))


def _lines(file: TextIO, columns: PredictionColumns) -> Callable[[int, Prediction], str]:
    """Write the heading of lines for people; say on stderr how many columns have no room."""
    width = stdout_console().width
    wide = min(WIDEST_LABEL, max(map(cell_len, [*columns.labels, "label"])))
    wide = WIDEST_LABEL if columns.separator is not None else wide
    wide = max(NARROWEST_LABEL, min(wide, width - PROBABILITY - GAP))
    ranks = max(1, min(columns.ranks, (width + GAP) // (wide + PROBABILITY + 2 * GAP)))
    left = width - ranks * (wide + PROBABILITY + 2 * GAP)
    shown = [TableColumn("label", "words", width=wide)] * ranks
    shown = [x for label in shown for x in (label, TableColumn("probability", width=PROBABILITY))]
    classes = [cut(label, WIDEST_LABEL) for label in columns.labels if columns.each_class]
    more = [TableColumn(name, width=max(cell_len(name), WHOLE)) for name in classes]
    kept = columns.kept_names(["label", "probability"])
    more += [TableColumn(name, "text", width=max(cell_len(name), KEPT)) for name in kept]
    for column in more:
        if left - column.width - GAP < SEQUENCE:
            break
        shown.append(column)
        left -= column.width + GAP
    extra = len(shown) - 2 * ranks
    note_left_out(len(more) - extra, "--output FILE, or --format tsv")
    shown += [TableColumn("sequence", "text", width=left)] * (left >= SEQUENCE)

    def line(cells: list[str]) -> str:
        return aligned(shown, cells[: len(shown)], GAP)

    def row(index: int, prediction: Prediction) -> str:
        example = _example(prediction)
        found = prediction.probabilities
        form = ".2%" if columns.separator is None or columns.top_k else ".0%"
        cells = [cell for pair in columns.decided(prediction, ranks, form) for cell in pair]
        cells = [cells[0] or "-", *cells[1:]] if cells else ["-", *[""] * (2 * ranks - 1)]
        cells[0] = "?" * columns.is_undecided(prediction) + cells[0]
        beside = [f"{found[x]:.2%}" if x in found else "" for x in columns.labels if classes]
        beside += [_text((example.kept or {}).get(name)) for name in columns.keep]
        sequence = example.sequence
        read = sequence[:READ] if isinstance(sequence, str) else sequence_text(sequence)[:READ]
        text = " ".join("  ".join(filter(None, [example.file, read])).split())
        return line([*cells, *beside[:extra], prediction.problem or text])

    file.write(line([column.name for column in shown]) + "\n")
    return row
