"""Labels of examples: the classes of a task, and their encoding as numbers.

An example has a tuple of labels. In a single-label task the tuple has one entry. In a multi-label
task it has any number of labels, sorted, each once. B examples, C classes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from seqtrain.errors import DataError
from seqtrain.sequences.saved import Saved
from seqtrain.tables.blocks import (
    Array,
    BadCellError,
    Cells,
    Coded,
    Codes,
    Ints,
    Name,
    Reasons,
    as_list,
)
from seqtrain.tables.cells import (
    Names,
    are_marks,
    is_multi_hot,
    is_number,
    items_of,
    label_name_of,
    mark_of,
    marked_positions,
    names_missing,
    text_of,
)
from seqtrain.text import counted, listed, quote

Labels: TypeAlias = tuple[str, ...]
"""The labels of one example."""
LabelArray: TypeAlias = Array
"""Encoded labels: (B,) class indices, or (B, C) int8 marks of a multi-label task."""

BLANK_LABEL = "the label is blank"
UNKNOWN = -1
"""Class index of an example whose label isn't a class, or that has no label."""
ABSENT, PRESENT = 0, 1
"""Marks of a class in multi-label rows: the row lacks the class, or has it."""
ABSENT_WITH_UNKNOWN, PRESENT_WITH_UNKNOWN = -1, 2
"""The same marks in a row that also has labels that aren't classes, or isn't labelled."""
FEWEST_OF_A_CLASS = 10
"""Fewest validation examples of a class with a separate threshold, counted by their weights."""
RARE_CLASS = 0.2
"""Share of the rows below which the smaller of two classes counts as rare."""
SEPARATORS = ("|", ";", ",", "||", "|||")
"""Separators between labels in output, in order of preference, if none is configured."""
LIST_STARTS = ("[", "(", "{", "<", "set(", "frozenset(", "array(", "tensor(")
"""Beginnings of a text that is a list, as JSON or Python writes it, or as ``<a><b>``."""
IS_OBJECT = re.compile(r"\{\s*(?:['\"].*['\"]|\w+)\s*:")
"""Beginning of an object, as JSON or Python writes it."""
MOST_RESPELLED = 5
"""Largest number of labels whose spellings are listed."""
AROUND_LABEL = " \t\r\n\xa0"
"""Characters around a label that don't belong to it."""
NAME_FIELDS = ("name", "label")
"""Names of the fields of an object that hold the name of a label."""

LABEL_TYPES: dict[str, Callable[[str], Any]] = {
    "text": str,
    "integer": lambda name: int(float(name)),
    "boolean": lambda name: name.lower() == "true",
}
"""Maps the name of a type of labels to the function that converts a class name to it."""
TYPE_NAMES = {bool: "boolean", int: "integer", float: "integer"}
"""Maps each Python type of labels to its name in `LABEL_TYPES`. Other types are text.

Floats are integers, because pandas converts integers to floats if a cell is blank.
"""


def label_tuple(names: Iterable[str]) -> Labels:
    """Return a multi-label example's labels as a sorted tuple without duplicates."""
    return tuple(sorted(set(names)))


@dataclass(frozen=True)
class LabelSet(Saved):
    """The classes of a task.

    Attributes:
        classes: Class names, by class index, as train spells them first.
        multi_label: True if an example can have any number of the classes.
        separator: Text between the labels of one example in files, or None in a single-label task.
        type: Type of the labels in a training table (such as a data frame), a key of `LABEL_TYPES`.
            It is "text" for files.
        multi_hot: Number of positions if a label cell is a list of 0s and 1s, else None.
    """

    classes: tuple[str, ...] = ()
    multi_label: bool = False
    separator: str | None = None
    type: Literal["text", "integer", "boolean"] = "text"
    multi_hot: int | None = None

    def __post_init__(self) -> None:
        if len({label_name_of(each) for each in self.classes}) < len(self.classes):
            raise ValueError("classes: expected different values")
        if self.type != "text" and self.classes:
            _ = self.values  # raises a ValueError if a class isn't of the type

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
        type: Literal["text", "integer", "boolean"] = "text",
        multi_hot: int | None = None,
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
            multi_hot: Attribute of the result.

        Raises:
            DataError: If this task is multi-label and the earlier model's isn't, or the reverse. If
                a class contains the separator.
        """
        old = () if known is None else known.classes
        new = {label for row in rows for label in row}
        classes = (*old, *sorted(new.difference(old)))
        if known is not None and known.multi_label != multi_label:
            if multi_label:
                own = "one label"
                found = "several"
            else:
                own = "several labels"
                found = "one"
            raise DataError(f"data.label: the earlier model has {own} per row, train has {found}")
        if (known is not None and known.type != type) or not _are_of_type(classes, type):
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
        return cls(classes, True, separator, type, multi_hot)

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """The class names, converted to `type`."""
        return tuple(map(LABEL_TYPES[self.type], self.classes))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {label_name_of(label): i for i, label in enumerate(self.classes)}

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
            found = np.full(len(rows), UNKNOWN, np.int64)
            for number, row in enumerate(rows):
                if row is not None and len(row) == 1:
                    found[number] = index.get(label_name_of(row[0]), UNKNOWN)
            return found
        marks = np.zeros((len(rows), len(index)), dtype=np.int8)
        for number, row in enumerate(rows):
            names = [label_name_of(label) for label in row or ()]
            known = [index[label] for label in names if label in index]
            if row is not None and len(known) == len(row):
                marks[number, known] = PRESENT
            else:
                marks[number] = ABSENT_WITH_UNKNOWN
                marks[number, known] = PRESENT_WITH_UNKNOWN
        return marks

    def decode(self, indices: Iterable[int]) -> Labels:
        """Return the names of the classes with these indices, in the order of the indices."""
        return tuple(self.classes[index] for index in indices)

    def unknown(self, row: Labels) -> Labels:
        """Return the labels of a row that aren't classes."""
        return tuple(label for label in row if label_name_of(label) not in self._index)

    def join(self, row: Iterable[str]) -> str:
        """Return the labels of one example as one text: see `joined_labels`."""
        return joined_labels(row, self.separator)


def _are_of_type(classes: Labels, type: str) -> bool:
    try:
        values = set(map(LABEL_TYPES[type], classes))
    except ValueError:
        return False
    return len(values) == len(classes)


class LabelReader:
    """Reader of label cells, as codes of tuples of labels.

    - A text, number, true or false is one label. Equal values are one label: 1 and 1.0, true and
      TRUE. It is named as it is spelled first.
    - A list, or the text of a list as JSON or Python writes it, has any number of labels.
    - With a separator, a text is split into any number of labels. A blank text has none.
    - If all cells are lists of 0s and 1s of one length, each position is a label.

    Args:
        separator: Text between the labels of a row, or None.
        may_be_blank: True if a row without a label is allowed, as other rows of its id may have it.
        known: The classes of a model, or None.

    Attributes:
        combinations: The tuples of labels, by code.
    """

    def __init__(
        self,
        separator: str | None,
        *,
        may_be_blank: bool = False,
        known: LabelSet | None = None,
    ) -> None:
        self.separator, self.may_be_blank, self.known = separator, may_be_blank, known
        self.combinations = list[Labels]()
        self._codes = dict[Labels, int]()
        self._codes_of_texts = dict[str, int]()
        self._types = set[type]()
        self._reasons = list[str]()  # of cells that can't be used: those with code -2, -3, …
        self._names = Names(label_name_of)  # of the values, with all of their spellings
        for label in () if known is None else known.classes:
            self._name(label)
        self._marks = dict[int, tuple[list[Any], bool]]()  # lists of 0s and 1s, and if it's a cell

    def read(self, cells: Cells) -> tuple[Codes, Reasons]:
        """Return the code of each cell, or -1 for a cell without labels, and the bad cells.

        Returns:
            The codes, (N,). Then a dict that maps the index of each cell that can't be used to the
            reason.
        """
        if isinstance(cells, Coded):
            own = [self._code_of(value) for value in (*cells.values, None)]
            return self._checked(np.array(own, np.int32)[cells.codes])
        cells = as_list(cells)
        if set(map(type, cells)) <= {str}:  # else True and 1 would be equal keys
            codes = {text: self._code_of(text) for text in dict.fromkeys(cells)}
            return self._checked(np.fromiter(map(codes.__getitem__, cells), np.int32, len(cells)))
        return self._checked(np.array([self._code_of(cell) for cell in cells], np.int32))

    def read_marks(self, columns: Mapping[Name, Cells]) -> tuple[Codes, Reasons]:
        """Return the same for one column per label, whose cell is 1 if the row has the label."""
        codes = []
        for row in zip(*map(as_list, columns.values()), strict=True):
            own = []
            problem = None
            for name, cell in zip(columns, row, strict=True):
                try:
                    if mark_of(cell):
                        own.append(str(name))
                except BadCellError as error:
                    problem = problem or f"{name}: {error}"
            codes.append(self._several(own) if problem is None else self._problem(problem))
        return self._checked(np.array(codes, np.int32))

    @property
    def are_multi_label(self) -> bool:
        """True if some labelled row has no label at all, or more than one."""
        return any(len(row) != 1 for row in self.combinations)

    @property
    def type(self) -> Literal["text", "integer", "boolean"]:
        """Type of all labels that were read; "text" if there are several types."""
        found = {TYPE_NAMES.get(each, "text") for each in self._types}
        return found.pop() if len(found) == 1 else "text"  # type: ignore[return-value]

    def finalize(self) -> int | None:
        """Decide if the cells are lists of 0s and 1s, one for each label.

        Returns:
            The number of positions, or None if labels are written in another way.
        """
        lists = [marks for marks, _ in self._marks.values()]
        if lists and len(lists) == sum(map(bool, self.combinations)) and is_multi_hot(lists):
            for code, marks in zip(self._marks, lists, strict=True):
                self.combinations[code] = label_tuple(marked_positions(marks))
            return len(lists[0])
        for code, (marks, is_list) in self._marks.items():
            if is_list or self.separator is not None:
                self.combinations[code] = label_tuple(self._name(text_of(x)) for x in marks)
        self._spell_plainly()
        return None

    def _spell_plainly(self) -> None:
        """Name classes that are spelled in several ways by the plain number, 3 beside 3.0."""
        if self.known is not None:
            return
        names, plain = self._names, dict[str, str]()
        for code, name in enumerate(names.names):
            if name in names and is_number(name):
                plain[names.spellings[code]] = names.spellings[code] = name
        for code, row in enumerate(self.combinations):
            self.combinations[code] = label_tuple(plain.get(label, label) for label in row)

    def notices(self) -> list[str]:
        """Return a line for each label that is spelled in several ways, or for many of them."""
        spellings: list[list[str]] = [[] for _ in self._names.names]
        for text, code in self._names.items():
            spellings[code].append(quote(text))
        pairs = zip(self._names.spellings, spellings, strict=True)
        lines = [
            f"labels {listed(own)} are equal values, so they are one class, {quote(shown)}"
            for shown, own in pairs
            if len(own) > 1
        ]
        more = len(lines) - MOST_RESPELLED
        if more > 0:
            lines[MOST_RESPELLED:] = [f"{counted(more, 'more label')} with several spellings"]
        return lines

    def _checked(self, codes: Codes) -> tuple[Codes, Reasons]:
        bad = np.flatnonzero(codes < -1)
        problems = {int(row): self._reasons[-2 - codes[row]] for row in bad}
        return np.maximum(codes, -1), problems

    def _code_of(self, cell: Any) -> int:
        """Return the code of a cell. A code below -1 stands for a reason."""
        try:
            if isinstance(cell, str | None):
                items = None
            else:
                items = items_of(cell)
            if items is not None:
                self._types.update(map(type, items))
                return self._code_of_items(items, str(items), is_list=True)
            text = text_of(cell)
            if text or isinstance(cell, str):
                self._types.add(type(cell))
            if text not in self._codes_of_texts:
                self._codes_of_texts[text] = self._read_text(text)
            return self._codes_of_texts[text]
        except BadCellError as error:
            return self._problem(f"the label: {error}")

    def _read_text(self, text: str) -> int:
        if text.startswith(LIST_STARTS) and not names_missing(text):
            items = items_of(text, bare=text[0] in "<{")
        else:
            items = None
        if items is not None:
            # Numbers in brackets are a label, unless they mark positions: "(0, 5]" is a range.
            holds_labels = not items or any(isinstance(label_of(x), str) for x in items)
            if holds_labels or self.separator is not None or are_marks(items):
                return self._code_of_items(items, text)
        elif (
            text.startswith(LIST_STARTS)
            and self.separator is not None
            and text.rstrip()[-1:] == "]"
        ):
            if '"' in text:
                return self._problem("the label looks like a list, but is no valid JSON")
            text = text.strip()[1:-1]
        if items is None and IS_OBJECT.match(text):
            return self._problem("the label is an object; write its name, or a list of names")
        if self.separator is not None:
            return self._code_of_items([part.strip() for part in text.split(self.separator)], text)
        if text.strip():
            return self._code((self._name(text),))
        if self.may_be_blank:
            return -1
        return self._problem(BLANK_LABEL)

    def _code_of_items(self, items: list[Any], text: str, *, is_list: bool = False) -> int:
        """Return the code of a list of labels.

        Args:
            items: The list.
            text: Text of the cell. It is the label if a list of 0s and 1s has no other meaning.
            is_list: True if the cell is a list, False if it is the text of one.
        """
        if are_marks(items):
            if self.known is not None and self.known.multi_hot is not None:
                return self._code(label_tuple(marked_positions(items)))
            if self.known is None and len(items) > 1:
                code = self._code((text,))  # finish() decides what it means
                self._marks[code] = items, is_list
                return code
            is_text = not is_list and self.separator is None
            if is_text and not any(isinstance(each, str) for each in items):
                return self._code((self._name(text),))
        return self._several(text_of(label_of(each)) for each in items)

    def _several(self, texts: Iterable[str]) -> int:
        """Return the code of any number of labels, without blank ones."""
        return self._code(label_tuple(self._name(text) for text in texts if text.strip()))

    def _code(self, labels: Labels) -> int:
        code = self._codes.setdefault(labels, len(self.combinations))
        if code == len(self.combinations):
            self.combinations.append(labels)
        return code

    def _problem(self, reason: str) -> int:
        """Return the code of a cell that can't be used."""
        if reason not in self._reasons:
            self._reasons.append(reason)
        return -2 - self._reasons.index(reason)

    def _name(self, text: str) -> str:
        """Return the name of a label: the first spelling of its value, without blanks around it."""
        return self._names.spellings[self._names[text.strip(AROUND_LABEL)]]


def label_of(item: Any) -> Any:
    """Return an item of a list of labels, or the name in it: ``{"id": 7, "name": "Drama"}``."""
    if not isinstance(item, dict):
        return item
    return next((item[name] for name in NAME_FIELDS if isinstance(item.get(name), str)), item)


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
    if labels.ndim == 1:
        return labels == index
    return labels[:, index] > 0


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


def class_counts(labels: LabelArray, classes: int) -> Ints:
    """Return the number of rows that have each class, (C,).

    Args:
        labels: Encoded labels, (B,) or (B, C).
        classes: Number of classes C.
    """
    if labels.ndim == 1:
        return np.bincount(labels[labels >= 0], minlength=classes)
    counts: Ints = (labels > 0).sum(axis=0)
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
    if counts[0] < counts[1]:
        return 0
    return 1


def _unused_separator(classes: Sequence[str]) -> str:
    for separator in SEPARATORS:
        if not any(separator in label for label in classes):
            return separator
    return "|" * (1 + max(label.count("|") for label in classes))
