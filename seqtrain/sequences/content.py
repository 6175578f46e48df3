"""Content of sequences: cells of a row as a text, a list of symbols, or a series of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from seqtrain.sequences.columns.scaling import Features
from seqtrain.tables.blocks import Cells, Name, as_list
from seqtrain.tables.cells import BadCellError, items_of, numbers_of, objects_of, text_of
from seqtrain.tables.json_lines import json_type
from seqtrain.tables.series import channels_of, series_of
from seqtrain.text import listed, quote

TURN = " ¶ "
"""Separator between the sentences of a list, or between the turns of a chat."""
ROLES = ("role", "from", "speaker", "author", "sender", "user", "name")
"""Usual names of the field of a turn with its speaker."""
TEXT_FIELDS = (
    "content",
    "value",
    "text",
    "utterance",
    "message",
    "body",
    "sentence",
    "comment",
    "msg",
)
"""Usual names of the field of a turn with its text."""


class ContentReader:
    """Reader of the sequences of rows, from the cells of their sequence columns.

    Args:
        kind: text, tokens or features.
        decimal: Decimal mark of numbers in text.
        separator: Text between the symbols of a cell, or None for blanks.
        named: False if columns have no names, so that messages can't give them.
    """

    def __init__(
        self, kind: str, decimal: str, separator: str | None = None, *, named: bool = True
    ) -> None:
        self.kind, self.decimal, self.named = kind, decimal, named
        self.separator = separator

    def read(
        self, columns: dict[Name, Cells], rows: int, problems: dict[int, str]
    ) -> Sequence[Any]:
        """Return the sequence of each row.

        - Kind text: the texts are joined with blanks.
        - Kind tokens: the symbols of all cells are joined into one list.
        - Kind features: cells of one number each are the time steps of one channel. If any cell
          holds several numbers, each cell is a channel.

        Args:
            columns: The cells of the sequence columns, by name.
            rows: Number of rows.
            problems: Maps the index of each row that can't be used to the reason. The method adds
                rows whose cells it can't read. Their sequences are empty.
        """
        if self.kind == "features" and len(columns) > 1:
            return self._wide(columns, rows, problems)
        read = {"text": sentence_of, "tokens": self._symbols, "features": self._series}[self.kind]
        parts = list[Sequence[Any]]()
        for name, cells in columns.items():
            if self.kind == "text" and _are_texts(cells):
                parts.append(as_list(cells))
                continue
            parts.append(self._each(read, cells, self._place(name, columns), problems))
        if len(parts) == 1:
            return parts[0]
        joined = zip(*parts, strict=True)
        if self.kind == "text":
            return [" ".join(texts) for texts in joined]
        return [[*chain.from_iterable(lists)] for lists in joined]

    def _each(self, read: Any, cells: Cells, where: str, problems: dict[int, str]) -> list[Any]:
        found, nothing = list[Any](), read(None)
        for row, cell in enumerate(as_list(cells)):
            if row in problems:
                found.append(nothing)
                continue
            try:
                found.append(read(cell))
            except BadCellError as error:
                problems[row] = f"{where}{error}"
                found.append(nothing)
        return found

    def _place(self, name: Name, columns: dict[Name, Cells]) -> str:
        """Return the beginning of a message about a cell, or "" if it needs none."""
        if isinstance(name, str):
            return f"{name}: " if self.named else ""
        return f"column {name}: " if len(columns) > 1 else ""

    def _symbols(self, cell: Any) -> list[str]:
        return symbols_of(cell, self.separator)

    def _series(self, cell: Any) -> Features:
        if isinstance(cell, float) and cell != cell:  # a missing cell of pandas
            cell = None
        if isinstance(cell, set | frozenset):
            raise BadCellError("expected a list of vectors or numbers, found a set")
        return series_of(cell, self.decimal)

    def _wide(
        self, columns: dict[Name, Cells], rows: int, problems: dict[int, str]
    ) -> list[Features]:
        """Return series whose steps, or whose channels, are in several columns."""
        numbers = list[Any]()
        for cells in columns.values():
            values, wrong = numbers_of(cells, self.decimal)
            if wrong:
                break
            numbers.append(values.astype(np.float32))
        if len(numbers) == len(columns):
            return _without_missing_ends(np.array(numbers, np.float32).T)
        found, nothing = list[Features](), np.zeros((0, 1), np.float32)
        lists = [as_list(cells) for cells in columns.values()]
        for row, cells in enumerate(zip(*lists, strict=True)):
            if row in problems:
                found.append(nothing)
                continue
            try:
                found.append(channels_of(cells, self.decimal))
            except BadCellError as error:
                problems[row] = str(error)
                found.append(nothing)
        return found


def sentence_of(cell: Any) -> str:
    """Return the text in a cell. The sentences of a list, or the turns of a chat, are joined.

    Raises:
        BadCellError: If the cell is an object, or a list of other things.
    """
    cell = objects_of(cell) or cell
    if not isinstance(cell, list):
        if isinstance(cell, dict):
            raise BadCellError("expected a string, found an object (data.kind is text)")
        return text_of(cell)
    return TURN.join([_turn(each) for each in cell])


def _turn(value: Any) -> str:
    """Return a sentence, or a turn of a chat as ``role : text``.

    Raises:
        BadCellError: If the value is neither.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        found = json_type(value)
        raise BadCellError(f"expected strings or turns in the list, found {found}")
    role = next((value[name] for name in ROLES if isinstance(value.get(name), str)), "")
    text = next((value[name] for name in TEXT_FIELDS if isinstance(value.get(name), str)), None)
    if text is None:
        fields = listed([quote(str(name)) for name in value]) or "none"
        raise BadCellError(
            f"found a list of objects with the fields {fields}; expected turns with a text, such "
            'as {"role": …, "content": …}; the fields of events belong into data.steps'
        )
    return f"{role} : {text}" if role else text


def symbols_of(cell: Any, separator: str | None = None) -> list[str]:
    """Return the symbols in a cell: the items of a list, or the words of a text.

    Args:
        cell: The cell.
        separator: Text between the symbols of a text, or None for blanks.

    Raises:
        BadCellError: If the cell is neither, or an item is no text and no whole number.
    """
    if cell is None or (isinstance(cell, float) and cell != cell):
        return []
    if isinstance(cell, set | frozenset):
        raise BadCellError("expected a list of strings or a string, found a set")
    is_list = not isinstance(cell, str) or cell[:1] in "[({"
    items = items_of(cell, bare=True) if is_list else None
    if items is None and isinstance(cell, str):
        return [part.strip() for part in cell.split(separator) if part.strip()]
    if items is None:
        found = json_type(cell)
        raise BadCellError(f"expected a list of strings or a string, found {found}")
    return [_symbol(item) for item in items]


def _symbol(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, int) and not isinstance(item, bool):
        try:
            return str(item)
        except ValueError:
            problem = "found an integer of thousands of digits as a symbol"
            raise BadCellError(problem) from None
    found = "a number with a fraction" if isinstance(item, float) else json_type(item)
    raise BadCellError(f"expected strings or integers in the list, found {found}")


def _are_texts(cells: Cells) -> bool:
    if not isinstance(cells, list | tuple) or not set(map(type, cells)) <= {str}:
        return False
    return not any(cell.startswith("[{") for cell in cells)


def _without_missing_ends(numbers: Features) -> list[Features]:
    """Return the rows of a table, (B, T), as series (T, 1) without missing numbers at the end."""
    known = ~np.isnan(numbers)
    last = numbers.shape[1] - known[:, ::-1].argmax(axis=1)
    lengths = np.where(known.any(axis=1), last, 0)
    return [row[:length, None] for row, length in zip(numbers, lengths.tolist(), strict=True)]
