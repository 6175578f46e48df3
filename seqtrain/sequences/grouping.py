"""Sequences from tables with a row per time step or per turn: the rows of each id, in their order.

N rows, B ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from seqtrain.sequences.content import joined_turns
from seqtrain.sequences.examples import Sequences, Steps, entries
from seqtrain.sequences.labels import BLANK_LABEL
from seqtrain.sequences.schema import Column, Schema, number_columns, token_columns
from seqtrain.sequences.vocabulary import runs
from seqtrain.sequences.windows import cut
from seqtrain.tables.blocks import Array, Block, Coded, Ints, Mask, Reasons
from seqtrain.tables.cells import KeyColumns, name_of, note_problems
from seqtrain.tables.time_column import TimeColumn, sorting_times
from seqtrain.text import quote


class IdColumns:
    """Codes of the ids of rows, block by block. An id is in one column, or in several together.

    An id in several columns is shown as a line of csv of their cells, such as P07,3.

    Args:
        names: Names of the columns.
    """

    def __init__(self, names: Sequence[Column]) -> None:
        self._names = names
        self._keys = KeyColumns(len(names), lambda text: name_of(text.strip()))

    def read(self, block: Block, problems: Reasons) -> tuple[Coded, Mask]:
        """Return the ids of the rows of a block, and a mask of those that are blank in a column.

        The code of a blank id is -1 if its row can't be read.

        Args:
            block: The block.
            problems: Maps the index of each row that can't be used to the reason. The method adds
                rows with a blank id.
        """
        parts = []
        is_blank = np.zeros(len(block), bool)
        for name, column in zip(self._names, self._keys.columns, strict=True):
            codes, wrong = column.codes_of(block.columns[name])
            note_problems(problems, name, wrong)
            parts.append(codes)
            own = codes == column.known.code("")
            for row in np.flatnonzero(own).tolist():
                problems.setdefault(row, f"{name}: the id is blank")
            is_blank |= own
        found = Coded(self._keys.joined(parts), self._keys.spellings)
        for row in block.problems:
            if is_blank[row]:
                found.codes[row] = -1
        return found, is_blank


def grouped(rows: Sequences, times: list[TimeColumn], schema: Schema) -> Sequences:
    """Return the sequence of each id, in the order in which the ids first occur.

    A row that can't be used makes its sequence one that can't be used. If a row has no id because
    it can't be read, it belongs to the sequence of the row before it, or at the start to that of
    the next row.

    Args:
        rows: The rows in the order of the file. Each has one step, and an id. Reasons why some
            can't be used are added to their problems. If labels were read, every id must have one.
        times: Times of the rows in each column of the order.
        schema: Meaning of the columns.
    """
    ids, names = _ids_of(rows)
    first = np.zeros(len(names), np.int64)
    first[ids[::-1]] = np.arange(len(ids))[::-1]
    moments = sorting_times(times)
    order = sorted_rows(ids, moments)
    offsets = np.searchsorted(ids[order], np.arange(len(names) + 1))

    def check(what: str, values: Array, texts: list[str] | None = None) -> None:
        """Add a problem for each row whose value isn't that of the first row of its id.

        Args:
            what: Name of the column with a separator, for the message.
            values: Value of each row: a number, NaN if it is missing, or a code.
            texts: Text of each code, or None for numbers.
        """
        before = first[ids]
        other = values[before]
        differs = (values != other) & ((values == values) | (other == other))
        for row in np.flatnonzero(differs).tolist():
            pair = values[row], other[row]
            here, there = (quote(f"{x:g}" if texts is None else texts[x]) for x in pair)
            line = rows.lines[before[row]]
            rows.problems.setdefault(
                row,
                f"id {quote(names[ids[row]])} has {what}{here} here, but {there} on line {line}",
            )

    labels = None
    if rows.labels is not None:
        labels = _labels_of(rows, rows.labels, ids, first)
        if schema.window is None:
            own = np.where(_has_label(rows.labels), rows.labels.codes, labels.codes[ids])
            check("label ", own, [", ".join(each) for each in labels.values])
    if rows.static is not None:
        tokens = token_columns(schema.static)
        for name, column in zip(tokens, rows.static.tokens, strict=True):
            check(f"{name}: ", column.codes, column.values)
        for name, numbers in zip(number_columns(schema.static), rows.static.numbers.T, strict=True):
            check(f"{name}: ", numbers)
    if rows.weights is not None:
        check(f"{schema.weight}: ", rows.weights)
    if schema.steps is None:
        content: Any = joined_turns(rows.content, order, offsets)
    else:
        content = rows.content[order]
    for place, name in enumerate(number_columns(schema.steps)):
        if moments and schema.steps is not None and schema.steps[name] == "order":
            growth, too_large = times[0].growth(moments[0][order], offsets[:-1])
            numbers = np.insert(content.numbers, place, growth, axis=1)
            content = Steps(content.tokens, numbers)
            for step, reason in too_large.items():
                rows.problems.setdefault(int(order[step]), f"{name}: {reason}")
    found = replace(
        rows.at(first),
        content=content,
        offsets=None if schema.steps is None else offsets,
        labels=labels,
        ids=Coded(np.arange(len(names), dtype=np.int32), names),
        kept=entries(rows.kept, order[offsets[:-1]]),
        problems={},
    )
    for row, reason in sorted(rows.problems.items()):
        index = int(ids[row])
        if index not in found.problems:
            found.problems[index] = reason
            found.lines[index] = rows.lines[row]
            if found.files is not None and rows.files is not None:
                found.files.codes[index] = rows.files.codes[row]
    if schema.window is None:
        return found
    return _windows(found, rows, order, schema.window)


def _windows(found: Sequences, rows: Sequences, order: Ints, window: dict[str, Any]) -> Sequences:
    """Return the windows of sequences. A sequence that can't be used stays one sequence.

    Args:
        found: The sequences.
        rows: The rows, in the order of the file. If labels were read, every window must have one.
        order: The rows, sorted by sequence and time.
        window: Value of data.window.
    """
    assert found.offsets is not None
    assert found.ids is not None
    codes = None if rows.labels is None else rows.labels.codes[order]
    windows = cut(found.offsets, codes, window)
    is_first = np.ones(len(windows.owners), bool)
    is_first[1:] = np.diff(windows.owners) != 0
    is_bad = np.isin(windows.owners, list(found.problems))
    windows = windows.at(np.flatnonzero(is_first | ~is_bad))
    problems = Reasons()
    own = replace(rows.at(order[windows.starts]), problems=problems)
    if rows.labels is not None and codes is not None:
        labels = windows.labels(codes, str(window.get("label", "last")))
        problems.update(dict.fromkeys(np.flatnonzero(labels < 0).tolist(), BLANK_LABEL))
        own.labels = Coded(labels, rows.labels.values)
    for at in np.flatnonzero(np.isin(windows.owners, list(found.problems))).tolist():
        owner = int(windows.owners[at])
        problems[at] = found.problems[owner]
        own.lines[at] = found.lines[owner]
    ids = found.ids[windows.owners]
    steps, offsets = runs(windows.starts, windows.ends - windows.starts)
    return replace(
        own,
        content=found.content[steps],
        offsets=offsets,
        ids=ids,
        # The windows of an id are held out together.
        groups=ids if found.groups is None else found.groups[windows.owners],
        static=entries(found.static, windows.owners),
        weights=entries(found.weights, windows.owners),
        last_lines=rows.lines[order[windows.ends - 1]],
    )


def _ids_of(rows: Sequences) -> tuple[Ints, list[str]]:
    """Return the index of each row's sequence, (N,), and the ids as they are first written."""
    assert rows.ids is not None
    codes = rows.ids.codes
    known = np.flatnonzero(codes >= 0)
    if not len(known):
        return np.zeros(len(codes), np.int64), [""]
    before = np.searchsorted(known, np.arange(len(codes)), side="right") - 1
    codes = codes[known[before.clip(0)]]
    found, first, ids = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks[ids], [rows.ids.values[code].strip() for code in found[order].tolist()]


def _has_label(labels: Coded) -> Mask:
    """Return a mask of the rows with at least one label, (N,)."""
    found: Mask = np.array([bool(each) for each in labels.values] + [False])
    return found[labels.codes]


def _labels_of(rows: Sequences, labels: Coded, ids: Ints, first: Ints) -> Coded:
    """Return the label of each id: that of its first row with a label.

    An id without a label is added to the problems.
    """
    found = np.full(len(first), -1, np.int32)
    # Of equal indices, the last one counts: the first row, and a row with a label before it.
    for chosen in (labels.codes >= 0, _has_label(labels)):
        own = np.flatnonzero(chosen)[::-1]
        found[ids[own]] = labels.codes[own]
    for row in first[found < 0].tolist():
        rows.problems.setdefault(row, BLANK_LABEL)
    return Coded(found, labels.values)


def sorted_rows(ids: Ints, times: list[Array]) -> Ints:
    """Return the rows sorted by id, then by their times, then by their place in the file."""
    keys = [ids]
    for each in times:
        keys.append(np.unique(each, return_inverse=True)[1] if each.dtype == object else each)
    return np.lexsort(keys[::-1])
