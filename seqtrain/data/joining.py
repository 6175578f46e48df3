"""Stores one after another as one, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data.growing import GrowingArray, blocks
from seqtrain.data.sources import FileLines
from seqtrain.data.spelling import WordGrams
from seqtrain.data.store import Ints, SequenceStore


class StoreJoiner:
    """Puts stores side by side as they come; large ones leave memory.

    Args:
        grouped: groups have the same numbers in all stores, and are kept.
    """

    def __init__(self, *, grouped: bool = False) -> None:
        self._grouped = grouped
        self._arrays: dict[str, GrowingArray] = {}
        self._rows = self._steps = 0
        self._tables: list[WordGrams] = []
        self._files: list[FileLines | None] = []
        self._lines: list[int] = []

    def add(self, store: SequenceStore) -> None:
        """Append a store; its lines are counted on from those before, where its files are known."""
        start = sum(self._lines) if store.files is not None else 0
        self._append("values", store.values)
        self._append("lengths", store.lengths)
        self._append("labels", store.labels)
        self._append("lines", store.lines, start)
        if self._grouped and store.groups is not None:
            if "groups" not in self._arrays and self._rows:
                self._append("groups", np.full(self._rows, -1))
            self._append("groups", store.groups)
        elif "groups" in self._arrays:
            self._append("groups", np.full(len(store), -1))
        if store.words is not None and store.spellings is not None:
            self._append_spellings(store.spellings, store.words)
        self._files.append(store.files)
        self._lines.append(int(store.lines.max(initial=0)))
        self._rows += len(store)
        self._steps += len(store.values)

    def _append_spellings(self, spellings: npt.NDArray[np.int32], words: WordGrams) -> None:
        if words not in self._tables:
            self._tables.append(words)
        start = sum(map(len, self._tables[: self._tables.index(words)]))
        for block in blocks(spellings):
            shifted = np.where(block < 0, block, block + start)
            self._append("spellings", shifted.astype(np.int32))

    def _append(self, name: str, array: npt.NDArray[Any], shift: int = 0) -> None:
        whole = self._arrays.get(name)
        if whole is None:
            whole = self._arrays[name] = GrowingArray(array.dtype, array.shape[1:])
        for block in blocks(array):
            whole.append(np.ascontiguousarray(block + shift if shift else block))

    def build(self) -> SequenceStore:
        """Return all, at least one; append no more afterwards."""
        arrays = {name: array.build() for name, array in self._arrays.items()}
        lengths = arrays.pop("lengths")
        files = None
        known = [each for each in self._files if each is not None]
        if len(known) == len(self._files):
            files = FileLines.joined(known, self._lines)
        return SequenceStore(
            offsets=offsets_of(lengths),
            words=WordGrams.concatenate(self._tables) if self._tables else None,
            files=files,
            **arrays,
        )


def joined_stores(stores: Iterable[SequenceStore]) -> SequenceStore:
    """Return the sequences of all stores, at least one, as one store without groups."""
    whole = StoreJoiner()
    for store in stores:
        whole.add(store)
    return whole.build()


def offsets_of(lengths: Ints) -> Ints:
    """Return where sequences of these lengths begin side by side, and where the last ends."""
    whole, end = GrowingArray(np.int64), 0
    whole.append(np.zeros(1, dtype=np.int64))
    for block in blocks(lengths):
        ends = np.cumsum(block, dtype=np.int64) + end
        end = int(ends[-1]) if len(ends) else end
        whole.append(ends)
    return whole.build()
