"""What a row of predictions holds, whatever its format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from seqtrain.errors import ConfigError
from seqtrain.text import json_line

if TYPE_CHECKING:
    from seqtrain.api.predictors import Prediction

NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
BREAKING = re.compile(r"[\t\r\n]")
"""What would break a row of a table into two."""
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a csv cell that a spreadsheet runs as a formula (CWE-1236)."""
IN_JSON = ("index", "label", "guess", "probability", "probabilities", "problem")


@dataclass(frozen=True)
class PredictionColumns:
    """Which columns, in their order: file, line, those kept of the input, and the prediction's.

    Attributes:
        labels: of the model.
        top_k: how many labels, the most probable ones; None: one, in jsonl all.
        each_class: the probability of each class in the order of the labels, too.
        keep: columns of the input.
        whole_files: whether each file is a row.
        threshold: probability from which on a label is written; below it the label is empty. The
            best guess stands beside it in every row, as `guess`. None: every label is written.
        spreadsheet_safe: csv: put a ' before what a spreadsheet would run as a formula.
        file: whether rows name their file, as those of a folder do.
    """

    labels: Sequence[str]
    top_k: int | None = None
    each_class: bool = False
    keep: Sequence[str] = ()
    whole_files: bool = False
    threshold: float | None = None
    spreadsheet_safe: bool = False
    file: bool = False

    @property
    def ranks(self) -> int:
        """How many labels a row of a table has."""
        return min(self.top_k or 1, len(self.labels))

    @cached_property
    def where(self) -> list[str]:
        """Columns that say where a row stands."""
        return ["file"] * self.file + ["line"] * (self.file and not self.whole_files)

    @cached_property
    def own(self) -> list[str]:
        """Columns of the prediction in a table."""
        suffixes = [f"_{rank + 1}" if self.top_k else "" for rank in range(self.ranks)]
        names = [name + suffix for suffix in suffixes for name in ("label", "probability")]
        names += [] if self.threshold is None else ["guess"]
        return names + [f"probability_{label}" for label in self.labels if self.each_class]

    def names(self) -> list[str]:
        """Return the header of a table."""
        return [*self.where, *self.kept_names([*self.where, *self.own]), *self.own]

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
        ranked = list(islice(prediction.probabilities.items(), self.ranks))
        for rank, (label, probability) in enumerate(ranked):
            hidden = rank == 0 and self.is_undecided(prediction)
            cells += ["" if hidden else label, f"{probability:.6f}"]
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
        return row | {
            "label": "" if self.is_undecided(prediction) else prediction.label,
            **({} if self.threshold is None else {"guess": prediction.label}),
            "probability": round(prediction.probability, 6),
            "probabilities": {label: round(found[label], 6) for label in order},
        }

    def is_undecided(self, prediction: Prediction) -> bool:
        """Whether a prediction is less probable than the threshold."""
        return self.threshold is not None and prediction.probability < self.threshold

    def _beside(self, prediction: Prediction) -> list[Any]:
        """Return where the row stands, and what is kept of it; nothing of a row not read."""
        example = prediction.example
        assert example is not None, "api.predict says what was classified"
        kept = example.kept or {}
        return [*(getattr(example, name) for name in self.where), *map(kept.get, self.keep)]


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


def columns_to_keep(options: Sequence[str]) -> list[str]:
    """Return the columns of `--keep id,text`.

    Raises:
        ConfigError: one is named twice.
    """
    names = [name for option in options for name in option.split(",")]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"--keep: {name} is named twice; expected each column once")
    return names
