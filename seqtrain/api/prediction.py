"""Predictions: one for a sequence, a list of them, and a stream that reads them one by one."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqtrain.errors import ConfigError
from seqtrain.sequences.examples import Example
from seqtrain.sequences.labels import LabelSet
from seqtrain.tables.cells import text_of
from seqtrain.text import Summarized

NO_EXAMPLE = Example("", None, 0)


@dataclass(frozen=True, repr=False)
class Prediction(Summarized):
    """Prediction for one sequence.

    Attributes:
        label: The predicted label, as text or with its type in the table that `fit` was called
            with. In a multi-label task it is one text of all predicted labels, with
            ``data.label_separator`` between them. It is an empty text if there is no label or a
            problem.
        probability: Probability of the prediction, in [0, 1], or NaN if there is a problem. In a
            multi-label task it is the probability that exactly these labels are right, if labels
            are independent.
        probabilities: Maps labels to their probabilities, from the most to the least probable. In a
            single-label task the predicted label is always first. All labels are included, unless
            `ranks` limits their number. Empty if there is a problem.
        unknown: Share of the sequence's tokens that the model doesn't know, in [0, 1]. It is 0 if
            there is a problem.
        example: The sequence, its line, file and kept columns.
        labels: Each predicted label, in the order of the classes. Empty if there is a problem.
    """

    label: Any
    probability: float
    probabilities: dict[Any, float]
    unknown: float
    example: Example = field(default=NO_EXAMPLE, repr=False, compare=False)
    labels: tuple[Any, ...] = ()

    def as_text(self) -> Prediction:
        """Return the prediction with all labels as text, as files of predictions have them."""
        if isinstance(self.label, str) and all(isinstance(label, str) for label in self.labels):
            return self
        shares = {label_text(label): share for label, share in self.probabilities.items()}
        labels = tuple(map(label_text, self.labels))
        return replace(self, label=label_text(self.label), probabilities=shares, labels=labels)

    def summary(self) -> dict[str, str]:
        """Return label and probability, or else the problem, as texts by heading."""
        if self.problem is not None:
            return {"problem": self.problem}
        label = label_text(self.label) or "none, as no label reaches its threshold"
        return {"label": label, "probability": f"{self.probability:.2%}"}

    @property
    def problem(self) -> str | None:
        """Reason why there is no prediction, or None if there is one."""
        return self.example.problem


def label_text(label: Any) -> str:
    """Return a label as text, as in files of predictions: "1" for 1 or 1.0, "true" for True.

    Blank texts and None become "".

    Raises:
        BadCellError: If the label isn't a text, a number, a bool or None.
    """
    text = text_of(label.item() if isinstance(label, np.generic) else label)
    return "" if text.isspace() else text


def predictions_of(
    examples: Sequence[Example],
    unknown: Sequence[float],
    probabilities: Tensor,
    decisions: tuple[list[list[int]], list[float]],
    label_set: LabelSet,
    ranks: int | None,
) -> Iterator[Prediction]:
    """Yield the prediction for each of B examples.

    Args:
        examples: The examples. One with a problem gets an empty label, and NaN as probability.
        unknown: Share of unknown tokens of each example, (B,).
        probabilities: Probability of each class, (B, C) float64.
        decisions: Predicted classes of each example, and their probability, as `Classifier.decide`
            returns them.
        label_set: The labels.
        ranks: Number of most probable labels that get a probability, or None for all. It is ignored
            if multi-label.
    """
    decided, sure_of = decisions
    names, multi_label = np.array(label_set.values, dtype=object), label_set.multi_label
    most = None if multi_label else ranks  # a multi-label row may have any of them
    order = _ranked(probabilities, None if multi_label else decided, most)
    columns = names[order.numpy()].tolist(), probabilities.gather(1, order).tolist()
    of_rows = zip(examples, unknown, *columns, decided, sure_of, strict=True)
    for example, share, own, row, best, sure in of_rows:
        if example.problem is None:
            labels = tuple(label_set.values[index] for index in best)
            found = dict(zip(own[:most], row[:most], strict=True))
            label = label_set.join(label_set.decode(best)) if multi_label else labels[0]
            yield Prediction(label, sure, found, share, example, labels)
        else:
            yield Prediction("", math.nan, {}, 0.0, example)


def _ranked(probabilities: Tensor, first: list[list[int]] | None, ranks: int | None) -> Tensor:
    """Return the indices of the classes of each example, the most probable first, (B, C).

    Args:
        probabilities: Probability of each class, (B, C).
        first: Class that comes first for each example, as a list of one. None to order by
            probability only.
        ranks: If 1 and `first` is set, only the first class is returned, (B, 1).
    """
    if first is None:
        return probabilities.argsort(dim=1, descending=True, stable=True)
    best = torch.tensor(first, device="cpu")
    if ranks == 1:
        return best
    scores = probabilities.scatter_add(1, best, torch.ones_like(probabilities))
    return scores.argsort(dim=1, descending=True, stable=True)


class Predictions(list[Prediction]):
    """A list of predictions, in the order of their sequences.

    Args:
        predictions: The predictions.
        classes: All labels of the classifier.

    Attributes:
        classes: All labels, in the order of the columns of `probabilities`.
    """

    def __init__(self, predictions: Iterable[Prediction], classes: tuple[Any, ...]) -> None:
        super().__init__(predictions)
        self.classes = classes

    @overload
    def __getitem__(self, index: SupportsIndex) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> Predictions: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Prediction | Predictions:
        """Return a prediction; or those of a slice, again with `labels` and `probabilities`."""
        if isinstance(index, slice):
            return Predictions(super().__getitem__(index), self.classes)
        return super().__getitem__(index)

    @property
    def labels(self) -> list[Any]:
        """The predicted label of each sequence."""
        return [each.label for each in self]

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Probability of each class for each sequence, (B, C).

        NaN for classes without a probability, and for all classes of a sequence with a problem.
        """
        rows = [
            [each.probabilities.get(label, math.nan) for label in self.classes] for each in self
        ]
        return np.array(rows, dtype=np.float64).reshape(len(self), len(self.classes))

    def to_frame(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """Return a data frame with the columns that the command `predict` writes.

        These are `label`, `probability`, and `probability_x` for each class x.

        Args:
            library: pandas or polars. None chooses a library that is imported, or else one that is
                installed. If both are, it chooses pandas.

        Raises:
            ConfigError: If the library isn't installed.
        """
        names = ("pandas", "polars") if library is None else (library,)
        installed = [name for name in names if find_spec(name) is not None]
        if not installed:
            raise ConfigError(
                f"to_frame: needs {' or '.join(names)}; install it with: pip install {names[0]}"
            )
        name = next((name for name in installed if name in sys.modules), installed[0])
        columns: dict[str, Any] = {
            "label": self.labels,
            "probability": [each.probability for each in self],
        }
        for label, values in zip(self.classes, self.probabilities.T, strict=True):
            columns[f"probability_{label_text(label)}"] = values
        return import_module(name).DataFrame(columns)


class PredictionStream(Iterator[Prediction]):
    """Predictions of a file's rows, computed while they are iterated over.

    `probabilities` and `to_frame` compute all predictions that weren't iterated over yet. A later
    iteration yields these predictions without computing them again.

    Args:
        predictions: Iterator that computes the predictions.
        classes: All labels of the classifier.

    Attributes:
        classes: All labels, in the order of the columns of `probabilities`.
    """

    def __init__(self, predictions: Iterator[Prediction], classes: tuple[Any, ...]) -> None:
        self._predictions, self.classes = predictions, classes

    def __next__(self) -> Prediction:
        return next(self._predictions)

    @cached_property
    def rest(self) -> Predictions:
        """All predictions that weren't iterated over before the first use of this property.

        The first use computes them.
        """
        rest = Predictions(self._predictions, self.classes)
        self._predictions = iter(rest)
        return rest

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Probability of each class, as in `Predictions`, for the predictions in `rest`."""
        return self.rest.probabilities

    def to_frame(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """Return the predictions in `rest` as a data frame, as `Predictions` does."""
        return self.rest.to_frame(library)
