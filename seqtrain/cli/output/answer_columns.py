"""What a row of predictions holds, whatever its format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from seqtrain.text import json_line

if TYPE_CHECKING:
    from seqtrain.api.predictors import Prediction
    from seqtrain.data.examples import Example

NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
BREAKING = re.compile(r"[\t\r\n]")
"""What would break a row of a table into two."""
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a csv cell that a spreadsheet runs as a formula (CWE-1236)."""


@dataclass(frozen=True)
class AnswerColumns:
    """Which columns, in their order: file, line, those kept of the input, and the answer's.

    Attributes:
        labels: of the model.
        top_k: how many labels, the most probable ones; None: one, in jsonl all.
        each_class: the probability of each class in the order of the labels, too.
        keep: columns of the input.
        whole_files: whether each file is a row.
        threshold: probability from which on a label is written; below it the label is empty. The
            best guess stands beside it in every row, as `guess`. None: every label is written.
        file: whether rows name their file, as those of a folder do.
    """

    labels: Sequence[str]
    top_k: int | None = None
    each_class: bool = False
    keep: Sequence[str] = ()
    whole_files: bool = False
    threshold: float | None = None
    file: bool = False

    @property
    def ranks(self) -> int:
        """How many labels a row of a table tells."""
        return min(self.top_k or 1, len(self.labels))

    def beside(self, first: Example | None) -> AnswerColumns:
        """Return the columns of rows like a first one, which may name its file."""
        return replace(self, file=first is not None and first.file is not None)

    def names(self) -> list[str]:
        """Return the header of a table."""
        suffixes = [f"_{rank + 1}" if self.top_k else "" for rank in range(self.ranks)]
        names = [name + suffix for suffix in suffixes for name in ("label", "probability")]
        names += [] if self.threshold is None else ["guess"]
        names += [f"probability_{label}" for label in self.labels] if self.each_class else []
        places = [*(["file"] if self.file else []), *(["line"] if self._tells_lines else [])]
        return [*places, *self._kept_names({*places, *names}), *names]

    def cells(self, prediction: Prediction) -> list[str]:
        """Return a row of a table; where there is no answer, its cells are empty."""
        cells = [_text(value) for value in self._places(prediction).values()]
        ranked = list(islice(prediction.probabilities.items(), self.ranks))
        decided = not self.is_undecided(prediction)
        for rank, (label, probability) in enumerate(ranked):
            cells += [label if rank or decided else "", f"{probability:.6f}"]
        cells += [""] * (2 * (self.ranks - len(ranked)))
        cells += [] if self.threshold is None else [prediction.label]
        if self.each_class:
            found = prediction.probabilities
            cells += [f"{found[name]:.6f}" if name in found else "" for name in self.labels]
        return cells

    def values(self, prediction: Prediction) -> dict[str, Any]:
        """Return a row of jsonl, without its index."""
        row = self._places(prediction)
        if prediction.problem is not None:
            nothing: dict[str, Any] = {"label": None, "probability": None, "probabilities": {}}
            return row | nothing | {"problem": prediction.problem}
        guess = {} if self.threshold is None else {"guess": prediction.label}
        found = prediction.probabilities
        told = list(found.items())[: self.top_k]
        if self.each_class:
            told = [(label, found[label]) for label in self.labels]
        return row | {
            "label": "" if self.is_undecided(prediction) else prediction.label,
            **guess,
            "probability": round(prediction.probability, 6),
            "probabilities": {label: round(p, 6) for label, p in told},
        }

    def is_undecided(self, prediction: Prediction) -> bool:
        """Whether an answer is less probable than the threshold; a row without one isn't."""
        return self.threshold is not None and prediction.probability < self.threshold

    @property
    def _tells_lines(self) -> bool:
        return self.file and not self.whole_files

    def _places(self, prediction: Prediction) -> dict[str, Any]:
        """Return where the row stood, and what is kept of it; nothing of a row not read."""
        example = prediction.example
        assert example is not None, "api.predict tells what was classified"
        row: dict[str, Any] = {"file": example.file} if self.file else {}
        row |= {"line": example.line} if self._tells_lines else {}
        kept = example.kept or {}
        taken = {*row, "index", "label", "guess", "probability", "probabilities", "problem"}
        names = self._kept_names(taken)
        return row | {new: kept.get(old) for old, new in zip(self.keep, names, strict=True)}

    def _kept_names(self, taken: set[str]) -> Iterator[str]:
        """Yield the names of columns of the input, other than those taken."""
        return (f"input_{name}" if name in taken else name for name in self.keep)


def _text(value: Any) -> str:
    """Return a cell of a table: a text as it is, other JSON as JSON, nothing for null."""
    return "" if value is None else value if isinstance(value, str) else json_line(value)


def tsv_cell(text: str) -> str:
    """Leave a cell as it is, as tsv files do; only one that would break the row is quoted."""
    return _quoted(text) if BREAKING.search(text) else text


def csv_cell(text: str) -> str:
    """Quote a cell where csv needs it; put a ' before what a spreadsheet takes for a formula."""
    if text.startswith(FORMULA_MARKS) and not NUMBER.fullmatch(text):
        text = f"'{text}"
    return _quoted(text) if BREAKING.search(text) or "," in text or '"' in text else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
