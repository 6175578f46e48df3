"""Predictions as rows of tsv, csv or jsonl, or as lines on a terminal.

A row is written for every sequence, or for every time step.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TextIO

from rich.cells import cell_len
from rich.padding import Padding
from rich.text import Text

from seqtrain.api.predict import StepPredictions
from seqtrain.api.prediction import Prediction
from seqtrain.api.predictions import sequence_text
from seqtrain.cli.output.console import stdout_console
from seqtrain.cli.output.table import GrowingTable, TableColumn
from seqtrain.files.formats import resolve_format
from seqtrain.sequences.examples import Example
from seqtrain.sequences.read_options import keeps_all
from seqtrain.sequences.tokenizers import ALPHABET
from seqtrain.text import delimited_line, json_line, printable, shorten

NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a csv cell that a spreadsheet runs as a formula (CWE-1236)."""
IN_JSON = ("index", "label", "labels", "guess", "probability", "probabilities", "problem")
"""Keys of rows in jsonl. A copied column with such a name is renamed."""
NOTHING: dict[str, Any] = {"label": None, "probability": None, "probabilities": {}}
"""Values of a row in jsonl that has no prediction."""
ALWAYS = ("label", "probability", "guess", "label_1", "probability_1")
"""Columns that are never left out on a terminal."""
WIDEST_LABEL, GAP = 24, 2
"""Largest width of the column of labels, and spaces between two columns."""
KEPT, NUMBER_WIDTH, SEQUENCE = 12, 7, len("sequence")
"""Smallest widths of a copied cell, of a probability, and of the sequence."""
READ = 2000
"""Number of characters at the start of a sequence that can appear on a terminal."""
COLORS = ("cyan", "magenta", "green", "yellow", "blue", "red")
SURE, UNSURE = 0.9, 0.5
"""Smallest probability of a bold step, and probability below which a step is dim."""
BARS = "▁▂▃▄▅▆▇█"
"""Characters that show a probability, from 0 to 1, at a step without a token."""
SHOWN_STEPS = 100
"""Number of steps that are shown at each end of a long sequence."""
LABEL_WIDTH = 32
"""Largest width of a label among coloured steps."""


@dataclass(frozen=True)
class PredictionColumns:
    """Columns of the output: file and line of a row, copied columns, and columns of predictions.

    Attributes:
        labels: Label of each class.
        format: "tsv", "csv", "jsonl", or "lines" for a terminal.
        top_k: Number of most probable labels to write. None is one, and in jsonl all.
        each_class: Also write the probability of each class, in the order of `labels`.
        keep: Names of the columns to copy from the input.
        where: Columns that say where a row comes from: ["file", "line"] or ["file"] for the files
            of a folder, and empty for one file.
        threshold: Probability below which the label is left empty, or None to write every label.
            With a threshold, the column `guess` has the most probable label of every row.
        spreadsheet_safe: In csv, put a ' before cells that a spreadsheet would run as a formula.
        separator: Text between the labels of a row, and between their probabilities; or None in a
            single-label task.
        steps: Write a row for every time step. On a terminal, write the steps as coloured text.
    """

    labels: Sequence[str]
    format: str
    top_k: int | None = None
    each_class: bool = False
    keep: Sequence[str] = ()
    where: Sequence[str] = ()
    threshold: float | None = None
    spreadsheet_safe: bool = False
    separator: str | None = None
    steps: bool = False

    @property
    def read_ranks(self) -> int | None:
        """Number of most probable labels that each prediction must have, or None for all."""
        every = self.each_class or (self.format == "jsonl" and not self.top_k)
        return None if every else min(self.top_k or 1, len(self.labels))

    @cached_property
    def predicted(self) -> dict[str, Any]:
        """Example value of each column that a prediction fills, by the column's name."""
        first, shares = self.labels[0], dict.fromkeys(self.labels, 0.0)
        return self.values(Prediction(first, 0.0, shares, 0.0, labels=(first,)))

    @cached_property
    def copied(self) -> list[str]:
        """Names of the columns before the prediction: `where`, then the copied columns.

        A copied column with the name of another column gets the prefix `input_`.
        """
        taken = {*self.where, *(IN_JSON if self.format == "jsonl" else self.predicted)}
        found = [*self.where]
        for name in self.keep:
            new = name
            while new in taken or (new != name and new in self.keep):
                new = f"input_{new}"
            found.append(new)
        return found

    def copied_values(self, example: Example) -> list[Any]:
        """Return the values of the columns in `copied` for an example. A missing value is None."""
        kept = example.kept or {}
        return [*(getattr(example, name) for name in self.where), *map(kept.get, self.keep)]

    def values(self, prediction: Prediction) -> dict[str, Any]:
        """Return the values of a prediction by column, without copied columns.

        In jsonl the names are the keys of the JSON object. The prediction mustn't have a problem.
        """
        prediction = prediction.as_text()
        found, label = prediction.probabilities, prediction.label
        multi_label = self.separator is not None
        if self.format == "jsonl":
            found = {name: round(p, 6) for name, p in found.items()}
        share = [found[each] for each in prediction.labels] if multi_label else found[label]
        shown = "" if self.is_undecided(prediction) else label
        guess = {} if self.threshold is None else {"guess": label}
        if self.format == "jsonl":
            own = {"labels": [*prediction.labels]} if multi_label else guess
            order = self.labels if self.each_class else list(found)[: self.top_k]
            every = {"probabilities": {name: found[name] for name in order}}
            return {"label": shown, **own, "probability": share, **every}
        pairs = [*found.items()][: self.top_k] if self.top_k else [(label, share)]
        row = dict[str, Any]()
        for rank, (name, p) in enumerate(pairs, start=1):
            end = f"_{rank}" if self.top_k else ""
            row |= {f"label{end}": shown if guess and rank == 1 else name, f"probability{end}": p}
        classes = {f"probability_{name}": found[name] for name in self.labels if self.each_class}
        return row | guess | classes

    def is_undecided(self, prediction: Prediction) -> bool:
        """Return True if there is a threshold and the prediction is less probable."""
        return self.threshold is not None and prediction.probability < self.threshold

    def cells(self, prediction: Prediction, form: str = ".6f") -> list[str]:
        """Return the cells of a row as texts: copied columns, and then the prediction.

        Args:
            prediction: The prediction. If it has a problem, only the copied columns are filled.
            form: Format of probabilities.
        """
        before = self.copied_values(prediction.example)
        texts = ["" if x is None else x if isinstance(x, str) else json_line(x) for x in before]
        if prediction.problem is not None:
            return texts + [""] * len(self.predicted)
        for value in self.values(prediction).values():
            if isinstance(value, list):
                texts.append(str(self.separator).join(format(p, form) for p in value))
            else:
                texts.append(value if isinstance(value, str) else format(value, form))
        return texts

    def completed(self, first: Sequence[Any], *, whole_files: bool) -> PredictionColumns:
        """Return columns with `where` and `keep` as the first predictions show them.

        Args:
            first: The first predictions, or an empty sequence. The first prediction shows whether
                rows have a file. If all columns are kept, the last prediction has their names.
            whole_files: True if each file of a folder is one sequence.
        """
        keep = self.keep
        if keeps_all(keep):
            keep = list(first[-1].example.kept or ()) if first else []
        file = first[0].example.file if first else None
        where = [] if file is None else ["file", "line"]
        if file is not None and whole_files and resolve_format(file, "auto") != "fasta":
            where = ["file"]
        return replace(self, where=where, keep=keep)

    def begin(self, file: TextIO) -> Callable[[int, Any], str]:
        """Write the heading to a file, if the format has one, and return a function.

        The function takes the index of a row, from 0, and its prediction. It returns the lines of
        the row.
        """
        if self.format == "jsonl":
            return self._objects
        if self.format == "lines":
            return shown_steps if self.steps else replace(self, where=())._begin_lines(file)
        is_shown = file.isatty()
        file.write(self._joined([*self.copied, *self.predicted], is_shown))
        return lambda index, prediction: self._joined(self.cells(prediction), is_shown)

    def _objects(self, index: int, found: Any) -> str:
        """Return the line of a prediction in jsonl, or a line per time step if `steps` is True.

        Args:
            index: Index of the row, from 0.
            found: A `Prediction`, or `StepPredictions` if `steps` is True.
        """
        before = dict(zip(self.copied, self.copied_values(found.example), strict=True))
        rows: Iterable[dict[str, Any]] = [{**NOTHING, "problem": found.example.problem}]
        if self.steps:
            rows = step_rows(found, self.top_k)
        elif found.problem is None:
            rows = [self.values(found)]
        return "".join(json_line({"index": index, **before, **row}) + "\n" for row in rows)

    def _joined(self, cells: Sequence[str], is_shown: bool) -> str:
        """Return a line of csv or tsv. If `is_shown`, control characters are escaped."""
        texts = list(cells)
        if self.spreadsheet_safe and self.format == "csv":
            texts = [_as_text(cell) for cell in texts]
        if is_shown:
            texts = [printable(cell) for cell in texts]
        return delimited_line(texts, "," if self.format == "csv" else "\t")

    def _begin_lines(self, file: TextIO) -> Callable[[int, Prediction], str]:
        """Write the heading for a terminal, and return a function as `begin` does."""
        multi_label, columns = self.separator is not None, list[TableColumn]()
        wide = WIDEST_LABEL if multi_label else min(WIDEST_LABEL, max(map(cell_len, self.labels)))
        values = dict.fromkeys(self.copied) | self.predicted
        for rank, (name, value) in enumerate(values.items(), 2):
            heading = name
            if self.each_class:
                heading = shorten(name.removeprefix("probability_"), WIDEST_LABEL)
            kind: Any = "number" if isinstance(value, float | list) else "words"
            least = NUMBER_WIDTH if kind == "number" else wide if name in self.predicted else KEPT
            width = max(cell_len(heading), least)
            columns.append(TableColumn(heading, kind, 0 if name in ALWAYS else rank, width))
        columns.append(TableColumn("sequence", "text", 1, SEQUENCE))
        also = "--output FILE, or --format tsv"
        table = GrowingTable(columns, stdout_console().width, GAP, also)
        form = ".0%" if multi_label and not self.top_k else ".2%"

        def row(index: int, prediction: Prediction) -> str:
            example = prediction.example
            read = sequence_text(example.sequence, example.id)[:READ]
            text = " ".join("  ".join(filter(None, [example.file, read])).split())
            cells = [cell or "-" for cell in self.cells(prediction, form)]
            return table.row([*cells, prediction.problem or text]) + "\n"

        file.write(table.heading + "\n")
        return row


def _as_text(cell: str) -> str:
    """Return a cell, with a ' before it if a spreadsheet would run it as a formula.

    A number such as -1.5 is returned unchanged.
    """
    is_formula = cell.startswith(FORMULA_MARKS) and not NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def step_rows(prediction: StepPredictions, top_k: int | None) -> Iterator[dict[str, Any]]:
    """Yield a JSON object for each time step of a sequence.

    Args:
        prediction: Predictions for the sequence.
        top_k: Number of most probable labels in "probabilities", or None for all.
    """
    probabilities = prediction.probabilities
    order = probabilities.argsort(dim=1, descending=True, stable=True)[:, :top_k].tolist()
    for step, (row, ranks) in enumerate(zip(probabilities.tolist(), order, strict=True)):
        ranked = {prediction.labels[i]: round(row[i], 6) for i in ranks}
        token = {} if prediction.tokens is None else {"token": prediction.tokens[step]}
        chosen = prediction.predicted[step]
        best = {"label": prediction.labels[chosen], "probability": round(row[chosen], 6)}
        yield {"step": step + 1, **token, **best, "probabilities": ranked}


def shown_steps(index: int, prediction: StepPredictions) -> str:
    """Return text for a terminal: the prediction for a sequence and, below it, coloured steps.

    Args:
        index: Index of the sequence, from 0. It is shown if the sequence has no id.
        prediction: Predictions for the sequence.
    """
    last, steps = prediction.predicted[-1], len(prediction.predicted)
    head = Text.assemble(
        (f"{prediction.example.id or index + 1}: ", "dim"),
        (printable(prediction.labels[last]), f"bold {COLORS[last % len(COLORS)]}"),
        f" {prediction.probabilities[-1, last]:.1%},",
        f" from step {prediction.decided:,} of {steps:,}",
    )
    console = stdout_console()
    with console.capture() as shown:
        console.print(head)
        console.print(Padding(step_line(prediction), (0, 0, 0, 2)))
    return shown.get()


def step_line(prediction: StepPredictions) -> Text:
    """Return the steps of a sequence, each in the colour of the prediction after this step.

    A step is bold from the probability `SURE` on, and dim below `UNSURE`. Each change of the
    prediction is marked by the new label and its probability. Feature vectors are shown as bars
    whose height is the largest probability. If a sequence is long, only `SHOWN_STEPS` steps at each
    end are shown.
    """
    line, before = Text(), None
    pieces = _pieces(prediction)
    left_out = range(SHOWN_STEPS, max(SHOWN_STEPS, len(pieces) - SHOWN_STEPS))
    for step, (piece, label) in enumerate(zip(pieces, prediction.predicted, strict=True)):
        if step in left_out:
            if step == left_out.start:
                line.append(f"{_gap(line)}… {len(left_out):,} steps … ", style="italic")
            before = None
            continue
        sure, color = float(prediction.probabilities[step, label]), COLORS[label % len(COLORS)]
        if label != before:
            name = shorten(prediction.labels[label], LABEL_WIDTH)
            line.append(_gap(line)).append(f"[{name} {sure:.0%}]", style=f"reverse {color}")
            line.append(" ")
        weight = "bold " if sure >= SURE else "dim " if sure < UNSURE else ""
        line.append(piece, style=weight + color)
        before = label
    line.rstrip()
    return line


def _gap(line: Text) -> str:
    """Return the space to append to a line, or "" if the line is empty or ends with one."""
    return " " if line.plain[-1:].strip() else ""


def _pieces(prediction: StepPredictions) -> list[str]:
    """Return the text that shows each time step, ready to be joined.

    A token is followed by a blank, unless the tokenizer is char, byte or bpe. Tokens of byte and
    bpe are decoded. A feature vector is a block character. Its height is the largest probability.
    """
    tokens = prediction.tokens
    if tokens is None:
        heights = prediction.probabilities.max(dim=1).values.mul(len(BARS)).long()
        return [BARS[height] for height in heights.clamp(max=len(BARS) - 1).tolist()]
    if prediction.tokenizer in ("byte", "bpe"):
        shown = ALPHABET if prediction.tokenizer == "bpe" else dict(enumerate(map(chr, range(256))))
        byte = {character: byte for byte, character in shown.items()}
        # A character of several bytes is shown at the step that completes it.
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        return [printable(decode(bytes(byte[c] for c in token))) for token in tokens]
    gap = "" if prediction.tokenizer == "char" else " "
    return [printable(token) + gap for token in tokens]
