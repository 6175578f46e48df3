"""Content of sequences: cells of a row as a text, a list of symbols, or a series of vectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from seqtrain.tables.blocks import BadCellError, CellsByName, Float32s, Ints, Name, Reasons, as_list
from seqtrain.tables.cells import items_of, numbers_of, objects_of, text_of
from seqtrain.tables.json_lines import json_type
from seqtrain.tables.series import channels_of, series_of
from seqtrain.text import listed, quote

TURN, SAID = " ¶ ", " : "
"""Separator between the sentences of a list, or between the turns of a chat; and within a turn."""
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


def read_content(
    columns: CellsByName,
    problems: Reasons,
    *,
    kind: str,
    decimal: str = ".",
    separator: str | None = None,
    named: bool = True,
    are_turns: bool = False,
) -> Sequence[Any]:
    """Return the sequence of each row, from the cells of its sequence columns.

    - Kind text: the texts are joined with blanks.
    - Kind tokens: the symbols of all cells are joined into one list.
    - Kind features: cells of one number each are the time steps of one channel. If any cell
      holds several numbers, each cell is a channel.

    Args:
        columns: The cells of the sequence columns, by name.
        problems: Maps the index of each row that can't be used to the reason. The function adds
            rows whose cells it can't read. Their sequences are empty.
        kind: text, tokens or features.
        decimal: Decimal mark of numbers in text.
        separator: Text between the symbols of a cell, or None for blanks.
        named: False if columns have no names, so that messages can't give them.
        are_turns: True if a row is a turn of a chat: several texts are joined as its speaker and
            its text.
    """
    if kind == "features" and len(columns) > 1:
        return _wide(columns, problems, decimal)
    readers: dict[str, Callable[[Any], Any]] = {
        "text": sentence_of,
        "tokens": partial(symbols_of, separator=separator),
        "features": partial(series_of, decimal=decimal),
    }
    read = readers[kind]
    parts = []
    for name, cells in columns.items():
        found = as_list(cells)
        are_texts = kind == "text" and set(map(type, found)) <= {str}
        if not are_texts or any(text.startswith("[{") for text in found):
            where = ""
            if isinstance(name, int):
                where = _place_of(name) if len(columns) > 1 else ""
            elif named:
                where = _place_of(name)
            found = _read_each(read, found, where, problems, read(None))
        parts.append(found)
    if len(parts) == 1:
        return parts[0]
    joined = zip(*parts, strict=True)
    if kind == "text":
        if are_turns:
            return [SAID.join(filter(None, texts)) for texts in joined]
        return [" ".join(texts) for texts in joined]
    return [list(chain.from_iterable(lists)) for lists in joined]


def _read_each(
    read: Callable[[Any], Any],
    cells: Iterable[Any],
    where: str,
    problems: Reasons,
    nothing: Any,
) -> list[Any]:
    """Return what is read of each cell, and add the cells that can't be read to the problems.

    Args:
        read: Function that reads a cell.
        cells: The cell of each row, or the cells of each row.
        where: Beginning of each reason.
        problems: Maps the index of each row that can't be used to the reason.
        nothing: Value of such rows.
    """
    found = []
    for row, cell in enumerate(cells):
        value = nothing
        if row not in problems:
            try:
                if isinstance(cell, set | frozenset):
                    raise BadCellError("found a set, which has no order; expected a list")
                is_missing = isinstance(cell, float) and cell != cell
                value = read(None if is_missing else cell)
            except BadCellError as error:
                problems[row] = f"{where}{error}"
        found.append(value)
    return found


def _place_of(name: Name) -> str:
    """Return the beginning of a reason that names a column."""
    if isinstance(name, int):
        return f"column {name}: "
    return f"{name}: "


def _wide(columns: CellsByName, problems: Reasons, decimal: str) -> list[Float32s]:
    """Return series whose steps, or whose channels, are in several columns."""
    numbers = []
    for cells in columns.values():
        values, wrong = numbers_of(cells, decimal)
        if wrong:
            return _channels(columns, problems, decimal)
        numbers.append(values.astype(np.float32))
    return _without_missing_ends(np.array(numbers).T)


def _channels(columns: CellsByName, problems: Reasons, decimal: str) -> list[Float32s]:
    """Return series from columns of which some hold lists, or cells that are no numbers."""
    rows = list(zip(*map(as_list, columns.values()), strict=True))
    nothing = np.zeros((0, 1), np.float32)
    found = dict[int, str]()
    series = _read_each(lambda row: channels_of(row, decimal), rows, "", found, nothing)
    for row, reason in found.items():
        where = ""
        for name, cell in zip(columns, rows[row], strict=True):
            if not where and numbers_of([cell], decimal)[1].get(0) == reason:
                where = _place_of(name)
        problems.setdefault(row, f"{where}{reason}")
    return series


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


def joined_turns(texts: Sequence[str], order: Ints, offsets: Ints) -> list[str]:
    """Return the text of each sequence: the texts of its rows that aren't blank, as turns.

    Args:
        texts: Text of each row, (N,).
        order: The rows, sorted by sequence and time, (N,).
        offsets: Index of the first of these rows of each sequence, then N, (B + 1,).
    """
    turns = [texts[row] for row in order.tolist()]
    pairs = itertools.pairwise(offsets.tolist())
    return [TURN.join(filter(None, turns[start:end])) for start, end in pairs]


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
    return SAID.join([role, text]) if role else text


def symbols_of(cell: Any, separator: str | None = None) -> list[str]:
    """Return the symbols in a cell: the items of a list, or the words of a text.

    Args:
        cell: The cell.
        separator: Text between the symbols of a text, or None for blanks.

    Raises:
        BadCellError: If the cell is neither, or an item is no text and no whole number.
    """
    if cell is None:
        return []
    is_list = not isinstance(cell, str) or cell[:1] in "[({"
    items = items_of(cell, bare=True) if is_list else None
    if items is None and isinstance(cell, str):
        text = cell.strip()
        if separator is not None and text[:1] + text[-1:] == "()":  # (up,down)
            text = text[1:-1]
        return [part.strip() for part in text.split(separator) if part.strip()]
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
            raise BadCellError("found an integer of thousands of digits as a symbol") from None
    found = repr(item) if isinstance(item, float) else json_type(item)
    raise BadCellError(f"expected strings or integers in the list, found {found}")


def _without_missing_ends(numbers: Float32s) -> list[Float32s]:
    """Return the rows of a table, (B, T), as series (T, 1) without missing numbers at the end."""
    known = ~np.isnan(numbers)
    last = numbers.shape[1] - known[:, ::-1].argmax(axis=1)
    lengths = np.where(known.any(axis=1), last, 0)
    return [row[:length, None] for row, length in zip(numbers, lengths.tolist(), strict=True)]
