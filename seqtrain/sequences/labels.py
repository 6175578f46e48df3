"""Labels of examples: the classes of a task, and their encoding as numbers.

An example has a tuple of labels. In a single-label task the tuple has one entry. In a multi-label
task it has any number of labels, sorted, each once. B examples, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError
from seqtrain.sequences.saved_values import saved_flag, saved_text, saved_texts
from seqtrain.text import quote

Labels: TypeAlias = tuple[str, ...]
"""The labels of one example."""
LabelArray: TypeAlias = npt.NDArray[Any]
"""Encoded labels: (B,) class indices, or (B, C) int8 marks of a multi-label task."""

UNKNOWN = -1
"""Class index of an example whose label isn't a class, or that has no label."""
ABSENT, PRESENT = 0, 1
"""Marks of a class in multi-label rows: the row lacks the class, or has it."""
ABSENT_WITH_UNKNOWN, PRESENT_WITH_UNKNOWN = -1, 2
"""The same marks in a row that also has labels that aren't classes, or isn't labelled."""
RARE_CLASS = 0.2
"""Share of the rows below which the smaller of two classes counts as rare."""
SEPARATORS = ("|", ";", ",", "||", "|||")
"""Separators between labels in output, in order of preference, if none is configured."""


LABEL_TYPES: dict[str, Callable[[str], Any]] = {
    "text": str,
    "integer": int,
    "boolean": "true".__eq__,
}
"""Maps the name of a type of labels to the function that converts a class name to it."""


def label_tuple(names: Iterable[str]) -> Labels:
    """Return a multi-label example's labels as a sorted tuple without duplicates."""
    return tuple(sorted({*names}))


@dataclass(frozen=True)
class LabelSet:
    """The classes of a task.

    Attributes:
        classes: Class names, by class index.
        multi_label: True if an example can have any number of the classes.
        separator: Text between the labels of one example in files, or None in a single-label task.
        type: Type of the labels in a training table (such as a data frame), a key of `LABEL_TYPES`.
            It is "text" for files.
    """

    classes: Labels = ()
    multi_label: bool = False
    separator: str | None = None
    type: str = "text"

    def __len__(self) -> int:
        return len(self.classes)

    @classmethod
    def fit(
        cls,
        rows: Iterable[Labels],
        *,
        multi_label: bool,
        separator: str | None = None,
        known: LabelSet | None = None,
        type: str = "text",
    ) -> LabelSet:
        """Return the label set of the training rows. New classes are sorted.

        Args:
            rows: Labels of the training rows.
            multi_label: True if the task is multi-label.
            separator: Separator of labels in the data files, or None to choose one that no class
                contains. It isn't used in a single-label task.
            known: Label set of an earlier model, or None. Its classes keep their indices, and new
                ones follow.
            type: Type of the labels. The result has the type "text" if `known` has another type.

        Raises:
            DataError: If this task is multi-label and the earlier model's isn't, or the reverse. If
                a class contains the separator.
        """
        old = () if known is None else known.classes
        new = {label for row in rows for label in row}
        classes = (*old, *sorted(new.difference(old)))
        if known is not None and known.multi_label != multi_label:
            own, found = ("one label", "several") if multi_label else ("several labels", "one")
            raise DataError(f"data.label: the earlier model has {own} per row, train has {found}")
        if known is not None and known.type != type:
            type = "text"
        if not multi_label:
            return cls(classes, type=type)
        if separator is None:
            separator = _unused_separator(classes)
        for label in classes:
            if separator in label:
                raise DataError(
                    f"data.label: the class {quote(label)} contains the separator "
                    f"{quote(separator)}; set data.label_separator to a text that no label contains"
                )
        return cls(classes, multi_label=True, separator=separator, type=type)

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """The class names, converted to `type`."""
        return tuple(map(LABEL_TYPES[self.type], self.classes))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.classes)}

    def encode(self, rows: Sequence[Labels | None]) -> LabelArray:
        """Return the encoded labels of each row: a class index, or one number per class.

        Args:
            rows: Labels of each row, or None for a row that isn't labelled.

        Returns:
            - In a single-label task: class indices, (B,) int64. A label that isn't a class has
              `UNKNOWN`.
            - In a multi-label task: (B, C) int8, `PRESENT` for each class that the row has. Rows
              with a label that isn't a class have special numbers.

            `unknown_rows` finds the rows with labels that aren't classes.
        """
        index = self._index
        if not self.multi_label:
            single = (row[0] if row is not None and len(row) == 1 else None for row in rows)
            found = (UNKNOWN if label is None else index.get(label, UNKNOWN) for label in single)
            return np.fromiter(found, dtype=np.int64, count=len(rows))
        marks = np.zeros((len(rows), len(index)), dtype=np.int8)
        for number, row in enumerate(rows):
            known = [index[label] for label in row or () if label in index]
            is_known = row is not None and len(known) == len(row)
            if not is_known:
                marks[number] = ABSENT_WITH_UNKNOWN
            marks[number, known] = PRESENT if is_known else PRESENT_WITH_UNKNOWN
        return marks

    def decode(self, indices: Iterable[int]) -> Labels:
        """Return the names of the classes with these indices, in the order of the indices."""
        return tuple(self.classes[index] for index in indices)

    def unknown(self, row: Labels) -> Labels:
        """Return the labels of a row that aren't classes."""
        return tuple(label for label in row if label not in self._index)

    def join(self, row: Iterable[str]) -> str:
        """Return the labels of one example as one text: see `joined_labels`."""
        return joined_labels(row, self.separator)

    def to_dict(self) -> dict[str, Any]:
        """Return the label set as JSON values."""
        type = {} if self.type == "text" else {"type": self.type}
        return {
            "classes": list(self.classes),
            "multi_label": self.multi_label,
            "separator": self.separator,
            **type,
        }

    @classmethod
    def from_dict(cls, values: Any) -> LabelSet:
        """Build a label set from `to_dict`'s values.

        Raises:
            ValueError: If the values aren't valid.
            KeyError: If a value is missing.
        """
        classes = saved_texts("labels.classes", values["classes"], least=2)
        multi_label = saved_flag("labels.multi_label", values["multi_label"])
        separator = saved_text("labels.separator", values["separator"])
        if (separator is not None) != multi_label:
            raise ValueError("labels.separator: expected a text if multi_label is true, else null")
        type = saved_text("labels.type", values.get("type", "text"))
        if type not in LABEL_TYPES:
            raise ValueError(f"labels.type: expected one of {', '.join(LABEL_TYPES)}")
        found = cls(classes, multi_label, separator, type)
        if len({*found.values}) < len(classes):
            raise ValueError(f"labels.classes: expected different values of the type {type}")
        return found


class ProvisionalLabels:
    """Encoding of labels while the rows of train are read and the classes aren't known yet.

    Each different tuple of labels gets a number.

    Attributes:
        combinations: Maps each tuple of labels to its number, in the order of first appearance.
    """

    def __init__(self) -> None:
        self.combinations: dict[Labels, int] = {}

    def encode(self, rows: Sequence[Labels | None]) -> LabelArray:
        """Return the number of each row's tuple of labels, (B,) int64. New tuples are added.

        A row without labels (None) has `UNKNOWN`.
        """
        numbers = self.combinations
        found = (UNKNOWN if row is None else numbers.setdefault(row, len(numbers)) for row in rows)
        return np.fromiter(found, dtype=np.int64, count=len(rows))

    def unknown(self, row: Labels) -> Labels:
        """Return an empty tuple: every label is known, because `encode` adds it."""
        return ()

    @property
    def are_multi_label(self) -> bool:
        """True if some labelled row has no label at all, or more than one."""
        return any(len(row) != 1 for row in self.combinations)


def joined_labels(row: Iterable[str] | None, separator: str | None) -> str:
    """Return labels as one text for a file or a screen.

    Args:
        row: The labels, or None for none.
        separator: Text between labels, or None to use ", ".
    """
    return (separator or ", ").join(row or ())


def has_class(labels: Any, index: int) -> Any:
    """Return a mask of the rows that have a class, (B,) bool.

    Args:
        labels: Encoded labels, (B,) or (B, C), an array or a tensor.
        index: Index of the class.
    """
    return labels == index if labels.ndim == 1 else labels[:, index] > 0


def unknown_rows(labels: Any) -> Any:
    """Return a mask of the rows that have a label that isn't a class, or aren't labelled at all.

    Args:
        labels: Encoded labels, (B,) or (B, C), an array or a tensor.

    Returns:
        The mask, (B,) bool, of the library of `labels`.
    """
    if labels.ndim == 1:
        return labels < 0
    return ((labels == ABSENT_WITH_UNKNOWN) | (labels == PRESENT_WITH_UNKNOWN)).any(1)


def class_counts(labels: LabelArray, classes: int) -> npt.NDArray[np.int64]:
    """Return the number of rows that have each class, (C,).

    Args:
        labels: Encoded labels, (B,) or (B, C).
        classes: Number of classes C.
    """
    if labels.ndim == 1:
        return np.bincount(labels[labels >= 0], minlength=classes)
    counts: npt.NDArray[np.int64] = (labels > 0).sum(axis=0)
    return counts


def rare_class(counts: Sequence[int]) -> int | None:
    """Return the index of the rarer of two classes, or None if neither is rare.

    A class is rare if its share of the rows is below RARE_CLASS. None is also returned if a class
    has no row, or if the number of classes isn't two.

    Args:
        counts: Number of rows of each class, (C,).
    """
    if len(counts) != 2 or not 0 < min(counts) < RARE_CLASS * sum(counts):
        return None
    return 0 if counts[0] < counts[1] else 1


def _unused_separator(classes: Sequence[str]) -> str:
    for separator in SEPARATORS:
        if not any(separator in label for label in classes):
            return separator
    return "|" * (1 + max(label.count("|") for label in classes))
