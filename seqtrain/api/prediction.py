"""Predictions: one for a sequence, a list of them, and a stream that computes them one by one.

B sequences, C classes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from seqtrain.errors import ConfigError
from seqtrain.sequences.examples import Example
from seqtrain.tables.cells import text_of
from seqtrain.text import Summarized

NO_EXAMPLE = Example("", None, 0)
Shares = npt.NDArray[np.float64]
"""Probabilities in [0, 1]."""


@dataclass(frozen=True, repr=False, slots=True)
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
        labels: Each predicted label, in the order of the classes. Empty if there is a problem.
        classes: All labels of the classifier.
        shares: Probability of each class, (C,), in the order of `classes`.
        unknown: Share of the sequence's tokens that the model doesn't know, in [0, 1]. It is 0 if
            there is a problem.
        example: The sequence, its line, file and kept columns.
        multi_label: True if a sequence may have several labels.
    """

    label: Any
    probability: float
    labels: tuple[Any, ...] = ()
    classes: tuple[Any, ...] = ()
    # An array takes a ninth of the memory of a dict, and many predictions may be kept.
    shares: Shares = field(default_factory=lambda: np.zeros(0), compare=False)
    unknown: float = 0.0
    example: Example = field(default=NO_EXAMPLE, compare=False)
    multi_label: bool = False

    @property
    def probabilities(self) -> dict[Any, float]:
        """A dict that maps each label to its probability, from the most to the least probable.

        In a single-label task the predicted label is always first. Empty if there is a problem.
        """
        if self.problem is not None:
            return {}
        order = np.argsort(-self.shares, kind="stable").tolist()
        values = self.shares.tolist()
        ranked = {self.classes[index]: values[index] for index in order}
        if self.multi_label:
            return ranked
        return {self.label: self.probability, **ranked}

    def as_text(self) -> Prediction:
        """Return the prediction with all labels as text, as files of predictions have them."""
        if all(isinstance(label, str) for label in self.classes):
            return self
        labels, classes = (tuple(map(label_text, x)) for x in (self.labels, self.classes))
        return replace(self, label=label_text(self.label), labels=labels, classes=classes)

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
    if text.isspace():
        return ""
    return text


class Predictions(list[Prediction]):
    """A list of predictions, in the order of their sequences. A slice is of the same type.

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
    def probabilities(self) -> Shares:
        """Probability of each class for each sequence, (B, C).

        NaN for all classes of a sequence with a problem.
        """
        rows = [each.shares for each in self]
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
        columns = {
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
        self._predictions = predictions
        self.classes = classes

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
    def probabilities(self) -> Shares:
        """Probability of each class, as in `Predictions`, for the predictions in `rest`."""
        return self.rest.probabilities

    def to_frame(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """Return the predictions in `rest` as a data frame, as `Predictions` does."""
        return self.rest.to_frame(library)
