"""Predictions as rows of tsv, csv or jsonl, or as lines for people; also after every time step."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TextIO

from rich.cells import cell_len
from rich.padding import Padding
from rich.text import Text

from seqtrain.api.predict import StepPredictions
from seqtrain.api.predictions import sequence_text
from seqtrain.api.predictors import Prediction
from seqtrain.cli.output.console import stdout_console
from seqtrain.cli.output.table import GrowingTable, TableColumn, cut
from seqtrain.config.formats import resolve_format
from seqtrain.data.examples import keeps_all
from seqtrain.data.tokenizers import ALPHABET
from seqtrain.text import json_line, printable, shorten

NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a csv cell that a spreadsheet runs as a formula (CWE-1236)."""
IN_JSON = ("index", "label", "labels", "guess", "probability", "probabilities", "problem")
ALWAYS = ("label", "probability", "guess", "label_1", "probability_1")
"""Columns that lines for people never leave out."""
WIDEST_LABEL, NARROWEST_LABEL, GAP = 24, 6, 2
KEPT, SEQUENCE = 12, len("sequence")
"""Width of a cell of the input at least, and of the text at least."""
READ = 2000
"""Most characters of a sequence that a line for people is made of."""
OF_A_STEP = ("index", "step", "token", "label", "probability", "probabilities")
"""Keys of a row of `predict --steps`."""
COLORS = ("cyan", "magenta", "green", "yellow", "blue", "red")
SURE, UNSURE = 0.9, 0.5
"""Probabilities from which a step is bold, and below which it is dim."""
BARS = "▁▂▃▄▅▆▇█"
SHOWN_STEPS = 100
"""Steps at each end of a long sequence that its line shows."""
LABEL_WIDTH = 32


@dataclass(frozen=True)
class PredictionColumns:
    """Which columns, in their order: file, line, those kept of the input, and the prediction's.

    Attributes:
        format: tsv, csv, jsonl, or lines for people.
        top_k: how many labels, the most probable ones; None: one, in jsonl all.
        each_class: the probability of each class in the order of the labels, too.
        where: `file` and `line`, where rows of a folder name theirs.
        threshold: probability from which on a label is written; below it the label is empty, with
            the best guess beside it in every row, as `guess`. None: every label is written.
        spreadsheet_safe: csv: put a ' before what a spreadsheet would run as a formula.
        separator: stands between the labels of a row that may have several, and between their
            probabilities.
        steps: rows for every time step of a sequence, or a coloured line.
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
    def ranks(self) -> int:
        """How many labels a row of a table has."""
        return min(self.top_k or 1, len(self.labels))

    @property
    def read_ranks(self) -> int | None:
        """How many labels have to be known of each prediction; None: all."""
        every = self.each_class or (self.format == "jsonl" and not self.top_k)
        return None if every else self.ranks

    @cached_property
    def names(self) -> list[str]:
        """The header of a table."""
        suffixes = [f"_{rank + 1}" if self.top_k else "" for rank in range(self.ranks)]
        own = [name + suffix for suffix in suffixes for name in ("label", "probability")]
        own += [] if self.threshold is None else ["guess"]
        own += [f"probability_{label}" for label in self.labels if self.each_class]
        return [*self._names_beside(own), *own]

    def _names_beside(self, taken: Sequence[str]) -> list[str]:
        """Return the names of the other columns; a kept one that is taken gets `input_` first."""
        names, found = {*taken, *self.where, *self.keep}, [*self.where]
        for name in self.keep:
            new = name
            while name in (*taken, *self.where) and new in names:
                new = f"input_{new}"
            names.add(new)
            found.append(new)
        return found

    def _beside(self, prediction: Prediction) -> list[Any]:
        kept = prediction.example.kept or {}
        return [
            *(getattr(prediction.example, name) for name in self.where),
            *map(kept.get, self.keep),
        ]

    def cells(self, prediction: Prediction, form: str = ".6f") -> list[str]:
        """Return a row of a table; where there is no prediction, its cells are empty."""
        beside = [
            "" if value is None else value if isinstance(value, str) else json_line(value)
            for value in self._beside(prediction)
        ]
        found = prediction.probabilities
        if prediction.problem is not None:
            return [*beside, *[""] * (len(self.names) - len(beside))]
        pairs = [(label, format(found[label], form)) for label in list(found)[: self.ranks]]
        if self.separator is not None and not self.top_k:
            each = (format(found[label], form) for label in prediction.labels)
            pairs = [(prediction.label, self.separator.join(each))]
        own = [cell for pair in pairs for cell in pair]
        if self.threshold is not None:
            own = ["" if self.is_undecided(prediction) else own[0], *own[1:], prediction.label]
        own += [format(found[label], form) for label in self.labels if self.each_class]
        return [*beside, *own]

    def values(self, prediction: Prediction) -> dict[str, Any]:
        """Return a row of jsonl, without its index."""
        row = dict(zip(self._names_beside(IN_JSON), self._beside(prediction), strict=True))
        if prediction.problem is not None:
            nothing: dict[str, Any] = {"label": None, "probability": None, "probabilities": {}}
            return row | nothing | {"problem": prediction.problem}
        found = {label: round(p, 6) for label, p in prediction.probabilities.items()}
        row |= {"label": "" if self.is_undecided(prediction) else prediction.label}
        if self.separator is not None:
            own = [found[label] for label in prediction.labels]
            row |= {"labels": [*prediction.labels], "probability": own}
        else:
            row |= {} if self.threshold is None else {"guess": prediction.label}
            row |= {"probability": round(prediction.probability, 6)}
        order = self.labels if self.each_class else list(found)[: self.top_k]
        return row | {"probabilities": {label: found[label] for label in order}}

    def is_undecided(self, prediction: Prediction) -> bool:
        """Whether a prediction is less probable than the threshold."""
        return self.threshold is not None and prediction.probability < self.threshold

    def completed(self, first: Sequence[Any], *, whole_files: bool) -> PredictionColumns:
        """Return them with what the first rows tell: whether these are of files, and all names."""
        keep = self.keep
        if keeps_all(keep):
            keep = list(first[-1].example.kept or ()) if first else []
        file = first[0].example.file if first else None
        where = [] if file is None else ["file", "line"]
        if file is not None and whole_files and resolve_format(file, "auto") != "fasta":
            where = ["file"]
        return replace(self, where=where, keep=keep)

    def begin(self, file: TextIO) -> Callable[[int, Any], str]:
        """Write what stands above the rows; return what makes the lines of a prediction."""
        if self.steps and self.format == "lines":
            return shown_steps
        if self.steps:
            return partial(
                step_rows, top_k=self.top_k, beside=self._names_beside(OF_A_STEP)[len(self.where) :]
            )
        if self.format == "jsonl":
            return lambda index, found: json_line({"index": index} | self.values(found)) + "\n"
        if self.format == "lines":
            return replace(self, where=())._begin_lines(file)
        safe, shown = self.spreadsheet_safe and self.format == "csv", file.isatty()

        def joined(cells: Sequence[str]) -> str:
            mark, breaking = (",", '[,"\t\r\n]') if self.format == "csv" else ("\t", "[\t\r\n]")
            texts = []
            for cell in cells:
                if safe and cell.startswith(FORMULA_MARKS) and not NUMBER.fullmatch(cell):
                    cell = f"'{cell}"
                is_whole = re.search(breaking, cell) is None
                texts.append(cell if is_whole else '"' + cell.replace('"', '""') + '"')
            return mark.join(map(printable, texts) if shown else texts) + "\n"

        file.write(joined(self.names))
        return lambda index, prediction: joined(self.cells(prediction))

    def _begin_lines(self, file: TextIO) -> Callable[[int, Prediction], str]:
        """Write the heading of lines for people; say on stderr how many columns have no room."""
        width, several = stdout_console().width, self.separator is not None
        longest = max(map(cell_len, self.labels))
        wide = WIDEST_LABEL if several else min(WIDEST_LABEL, longest)
        wide = max(NARROWEST_LABEL, min(wide, width - len("probability") - GAP))
        columns = []
        for rank, name in enumerate(self.names, start=2):
            heading = name
            if self.each_class:
                heading = cut(name.removeprefix("probability_"), WIDEST_LABEL)
            rank = 0 if name in ALWAYS else rank
            if name.startswith("probability"):
                columns.append(TableColumn(heading, rank=rank, width=max(cell_len(heading), 7)))
            else:
                own = wide if name.startswith(("label", "guess")) else KEPT
                column = TableColumn(heading, "words", rank, max(cell_len(heading), own))
                columns.append(column)
        columns.append(TableColumn("sequence", "text", 1, SEQUENCE))
        table = GrowingTable(columns, width, GAP, "--output FILE, or --format tsv")

        def row(index: int, prediction: Prediction) -> str:
            example = prediction.example
            form = ".0%" if several and not self.top_k else ".2%"
            read = sequence_text(example.sequence)[:READ]
            text = " ".join("  ".join(filter(None, [example.file, read])).split())
            cells = [cell or "-" for cell in self.cells(prediction, form)]
            return table.row([*cells, prediction.problem or text]) + "\n"

        file.write(table.heading + "\n")
        return row


def step_rows(
    index: int, prediction: StepPredictions, top_k: int | None, beside: Sequence[str] = ()
) -> str:
    """Return a row of jsonl per step, with so many labels, the most probable ones; None: all.

    `beside` are the names of kept columns, where there are any.
    """
    labels, probabilities = prediction.labels, prediction.probabilities
    order = probabilities.argsort(dim=1, descending=True, stable=True)[:, :top_k].tolist()
    rows = []
    for step, (row, ranks) in enumerate(zip(probabilities.tolist(), order, strict=True)):
        ranked = {labels[i]: round(row[i], 6) for i in ranks}
        token = {} if prediction.tokens is None else {"token": prediction.tokens[step]}
        best = {"label": labels[ranks[0]], "probability": ranked[labels[ranks[0]]]}
        kept = dict(zip(beside, (prediction.example.kept or {}).values(), strict=False))
        place = {"index": index, **kept, "step": step + 1}
        values = {**place, **token, **best, "probabilities": ranked}
        rows.append(json_line(values) + "\n")
    return "".join(rows)


def shown_steps(index: int, prediction: StepPredictions) -> str:
    """Return a sequence for people: its prediction, and below it its steps."""
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
    """Return the steps in the colour of the prediction after each: bold if sure, dim if unsure.

    Where the prediction turns, and at the beginning, stands the label with its probability there. A
    series of feature vectors shows bars, as high as the prediction is probable.
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
    return " " if line.plain[-1:].strip() else ""


def _pieces(prediction: StepPredictions) -> list[str]:
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
