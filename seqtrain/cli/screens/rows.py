"""Rows of predictions in tsv, csv or jsonl: for every sequence, or for every time step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TextIO

import numpy as np

from seqtrain.api.predict import StepPredictions
from seqtrain.api.prediction import Prediction
from seqtrain.sequences.examples import Example
from seqtrain.sequences.schema import keeps_all
from seqtrain.text import copied_text, delimited_line, json_line, printable

IN_JSON = ("index", "label", "labels", "guess", "probability", "probabilities", "problem")
"""Keys of rows in jsonl. A copied column with such a name is renamed."""
NOTHING: dict[str, Any] = {"label": None, "probability": None, "probabilities": {}}
"""Values of a row in jsonl that has no prediction."""


@dataclass(frozen=True)
class RowFormat:
    """Columns of the output: file and line of a row, copied columns, and columns of predictions.

    Attributes:
        labels: Label of each class.
        format: "tsv", "csv" or "jsonl".
        top_k: Number of most probable labels to write. None is one, and in jsonl all.
        each_class: Also write the probability of each class, in the order of `labels`.
        keep: Names of the columns to copy from the input.
        where: Columns that say where a row comes from: ["file", "line"] or ["file"] for the files
            of a folder; first_line and last_line for windows; empty for rows of one file.
        threshold: Probability below which the label is left empty, or None to write every label.
            With a threshold, the column `guess` has the most probable label of every row.
        separator: Text between the labels of a row, and between their probabilities; or None in a
            single-label task.
        steps: Write a row for every time step.
    """

    labels: Sequence[str]
    format: str
    top_k: int | None = None
    each_class: bool = False
    keep: Sequence[str] = ()
    where: Sequence[str] = ()
    threshold: float | None = None
    separator: str | None = None
    steps: bool = False

    @cached_property
    def predicted(self) -> list[str]:
        """Names of the columns that a prediction fills."""
        first = self.labels[0]
        classes = tuple(self.labels)
        return list(self.values(Prediction(first, 0.0, (first,), classes, np.zeros(len(classes)))))

    @cached_property
    def copied(self) -> list[str]:
        """Names of the columns before the prediction: `where`, then the copied columns.

        A copied column with the name of another column gets the prefix `input_`.
        """
        taken = {*self.where, *(IN_JSON if self.format == "jsonl" else self.predicted)}
        found = list(self.where)
        for name in self.keep:
            new = name
            while new in taken or (new != name and new in self.keep):
                new = f"input_{new}"
            found.append(new)
        return found

    def completed(self, first: Sequence[Any], *, whole_files: bool) -> RowFormat:
        """Return a copy with `where` and `keep` as the first predictions show them.

        Args:
            first: The first predictions, or an empty sequence. The first prediction shows whether
                rows have a file. If all columns are kept, the last prediction has their names.
            whole_files: True if each file of a folder is one sequence.
        """
        if not first:
            if keeps_all(self.keep):
                return replace(self, keep=())
            return self
        keep = self.keep
        example = first[0].example
        if keeps_all(keep):
            keep = [*(first[-1].example.kept or ())]
        where = example.place_columns(keep, whole_files=whole_files)
        return replace(self, where=where, keep=keep)

    def begin(self, file: TextIO) -> Callable[[int, Any], str]:
        """Write the heading to a file, if the format has one, and return a function.

        The function takes the index of a row, from 0, and its prediction. It returns the lines of
        the row. For a terminal, control characters are escaped.
        """
        if self.format == "jsonl":
            return self._objects
        delimiter = "," if self.format == "csv" else "\t"
        is_shown = file.isatty()

        def line(cells: Sequence[str]) -> str:
            shown = [printable(cell) for cell in cells] if is_shown else cells
            return delimited_line(shown, delimiter)

        file.write(line([*self.copied, *self.predicted]))
        return lambda index, prediction: line(self.cells(prediction))

    def values(self, prediction: Prediction) -> dict[str, Any]:
        """Return the values of a prediction by column, without copied columns.

        In jsonl the names are the keys of the JSON object. The prediction mustn't have a problem.
        """
        prediction = prediction.as_text()
        if self.format == "jsonl":
            return self._json_values(prediction)
        shown = "" if self.is_undecided(prediction) else prediction.label
        row = {}
        for rank, name in enumerate(list(prediction.probabilities)[: self.top_k or 0], start=1):
            if rank == 1 and self.threshold is not None:
                row[f"label_{rank}"] = shown
            else:
                row[f"label_{rank}"] = name
            row[f"probability_{rank}"] = prediction.probabilities[name]
        row = row or {"label": shown, "probability": self._share(prediction)}
        if self.threshold is not None:
            row["guess"] = prediction.label
        if self.each_class:
            for name, share in zip(self.labels, prediction.shares.tolist(), strict=True):
                row[f"probability_{name}"] = share
        return row

    def _json_values(self, prediction: Prediction) -> dict[str, Any]:
        """Return the values of a prediction by the keys of its JSON object."""
        rounded = {name: round(share, 6) for name, share in prediction.probabilities.items()}
        row = {"label": "" if self.is_undecided(prediction) else prediction.label}
        if self.separator is not None:
            row["labels"] = list(prediction.labels)
        elif self.threshold is not None:
            row["guess"] = prediction.label
        share = self._share(prediction)
        if isinstance(share, list):
            row["probability"] = [round(each, 6) for each in share]
        else:
            row["probability"] = round(share, 6)
        if self.each_class:
            order = self.labels
        else:
            order = list(rounded)[: self.top_k]
        row["probabilities"] = {name: rounded[name] for name in order}
        return row

    def _share(self, prediction: Prediction) -> float | list[float]:
        """Return the probability of the predicted label, or of each one in a multi-label task."""
        if self.separator is None:
            return prediction.probability
        found = prediction.probabilities
        return [found[label] for label in prediction.labels]

    def is_undecided(self, prediction: Prediction) -> bool:
        """Return True if there is a threshold and the prediction is less probable."""
        return self.threshold is not None and prediction.probability < self.threshold

    def cells(self, prediction: Prediction) -> list[str]:
        """Return the cells of a row as texts: copied columns, and then the prediction.

        If the prediction has a problem, only the copied columns are filled.
        """
        texts = [copied_text(value) for value in self._copied_values(prediction.example)]
        if prediction.problem is not None:
            return texts + [""] * len(self.predicted)
        for value in self.values(prediction).values():
            if isinstance(value, list):
                value = str(self.separator).join(f"{share:.6f}" for share in value)
            texts.append(value if isinstance(value, str) else f"{value:.6f}")
        return texts

    def _copied_values(self, example: Example) -> list[Any]:
        """Return the values of the columns in `copied` for an example. A missing value is None."""
        kept = example.kept or {}
        where = [getattr(example, name) for name in self.where]
        return where + [kept.get(name) for name in self.keep]

    def _objects(self, index: int, found: Any) -> str:
        """Return the line of a prediction in jsonl, or a line per time step if `steps` is True.

        Args:
            index: Index of the row, from 0.
            found: A `Prediction`, or `StepPredictions` if `steps` is True.
        """
        copied = dict(zip(self.copied, self._copied_values(found.example), strict=True))
        if self.steps:
            rows = list(step_rows(found, self.top_k))
        elif found.problem is None:
            rows = [self.values(found)]
        else:
            rows = [{**NOTHING, "problem": found.problem}]
        return "".join(json_line({"index": index, **copied, **row}) + "\n" for row in rows)


def step_rows(prediction: StepPredictions, top_k: int | None) -> Iterator[dict[str, Any]]:
    """Yield a JSON object for each time step of a sequence.

    Args:
        prediction: Predictions for the sequence.
        top_k: Number of most probable labels in "probabilities", or None for all.
    """
    probabilities = prediction.probabilities
    order = probabilities.argsort(dim=1, descending=True, stable=True)[:, :top_k].tolist()
    for step, (row, ranks) in enumerate(zip(probabilities.tolist(), order, strict=True)):
        chosen = prediction.predicted[step]
        found: dict[str, Any] = {"step": step + 1}
        if prediction.tokens is not None:
            found["token"] = prediction.tokens[step]
        found["label"] = prediction.labels[chosen]
        found["probability"] = round(row[chosen], 6)
        found["probabilities"] = {prediction.labels[i]: round(row[i], 6) for i in ranks}
        yield found
