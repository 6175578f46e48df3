"""Batches: sequences sorted by length and packed, the loop over batches, and augmentation.

B batch, T longest length, N packed time steps, C channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from seqtrain.errors import DataError, RunError, ran_out_of_memory
from seqtrain.sequences.precision import float32_products
from seqtrain.sequences.store import SequenceStore, StoredSequence, joined_stores
from seqtrain.sequences.transfer import move_together
from seqtrain.sequences.vocabulary import WordGrams
from seqtrain.tables.blocks import Array, Codes, Ints

SomeGrams = TypeVar("SomeGrams", bound="Grams")
Result = TypeVar("Result")
Results = TypeVar("Results", Tensor, list[Any])
DRAWS = 0x617567
"""Part of the seed of `augmented`, so that its random numbers differ from the batch plan's."""
SHORTER = "data.max_length, or cut the sequences"
"""Advice if memory runs out in prediction: the config keys to lower."""


@dataclass(frozen=True)
class Grams:
    """Character n-grams of U words: `WordGrams` as tensors.

    Attributes:
        buckets: Bucket of each n-gram, word after word, (G,) int64.
        offsets: Index in `buckets` of the first n-gram of each word, then G: (U + 1,) int64.
    """

    buckets: Tensor
    offsets: Tensor

    @classmethod
    def of(cls, words: WordGrams) -> Grams:
        buckets = words.buckets.astype(np.int64)
        offsets = np.array(words.offsets)
        return cls(torch.from_numpy(buckets), torch.from_numpy(offsets))

    def to(self: SomeGrams, device: torch.device) -> SomeGrams:
        return type(self)(*(tensor.to(device) for tensor in vars(self).values()))

    def gather(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return the n-grams of some words.

        Args:
            words: Index of each word, (W,).

        Returns:
            The buckets of all these words, word after word. Then the number of n-grams of each
            word, (W,).
        """
        index, counts = entries_of(self.offsets, words)
        return self.buckets[index], counts


def entries_of(offsets: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the positions of some rows' entries in a flat array.

    Args:
        offsets: Position of the first entry of each row, then the total number of entries.
            (R + 1,).
        rows: Index of each row, (B,).

    Returns:
        The positions, row after row, (P,). Then the number of entries of each row, (B,).
    """
    starts = offsets[rows]
    counts = offsets[rows + 1] - starts
    total = counts.cumsum(0)
    index = torch.arange(int(total[-1]) if len(total) else 0, device=rows.device)
    return index + (starts - total + counts).repeat_interleave(counts), counts


@dataclass(frozen=True)
class Spellings(Grams):
    """Character n-grams of the unknown words of a batch.

    Attributes:
        numbers: Index of the unknown word at each step, or -1. It has the shape of the batch's
            ids: packed (N,) or padded (B, T).
    """

    numbers: Tensor

    def packed(self, lengths: Tensor) -> Spellings:
        """Return a copy whose padded `numbers` are sorted and packed by `sort_and_pack`.

        Args:
            lengths: Number of steps of each row, (B,), on the CPU.
        """
        return replace(self, numbers=sort_and_pack(self.numbers, lengths)[0].data)


def spellings(numbers: Codes, words: WordGrams) -> Spellings | None:
    """Return the character n-grams of the unknown words of a batch, or None if it has none.

    Args:
        numbers: Index in `words` of the unknown word at each step of the batch, or -1.
        words: Character n-grams of all unknown words of the store.
    """
    if numbers.max(initial=-1) < 0:
        return None
    distinct, own = np.unique(numbers, return_inverse=True)
    none = int(distinct[0] < 0)
    buckets, counts = words.gather(distinct[none:])
    arrays = buckets, np.append(0, counts.cumsum()), own.reshape(numbers.shape) - none
    return Spellings(*map(torch.from_numpy, arrays))


@dataclass(frozen=True)
class Batch:
    """Sequences as the classifier takes them.

    The rows of a packed batch are sorted by length, longest first. The rows of a padded batch have
    the order of `examples`. All attributes have the order of the rows, except `unsorted_indices`
    and `examples`.

    Attributes:
        inputs: Steps, packed, or padded with 0.
        lengths: Number of steps of each sequence, on the CPU.
        labels: Encoded labels of each sequence, as `LabelSet.encode` returns them.
        groups: Number of the group of each sequence, or -1 without one. The attribute is None if no
            sequence of the store has a group.
        sorted_indices: Index in `examples` of each row of the batch, on the CPU.
        unsorted_indices: Row in the batch of each of the `examples`, on the CPU.
        examples: Row numbers in the store, in the order in which they were requested.
        spellings: Character n-grams of unknown words. None if the batch has no such n-grams.
        static: Row features of each sequence, or None without any.
        vectors: Vector of each text by model.pretrained, or None without it.
        on_host: The batch on the CPU from which this one was copied, or None.

    Shape:
        static: (B, K) float32. vectors: (B, E) float32.
        inputs: (N,) or (N, C) packed, (B, T) or (B, T, C) padded; int64, or float32 with channels.
        labels: (B,) int64; in a multi-label task (B, number of classes) int8.
        All others: (B,) int64.
    """

    inputs: PackedSequence | Tensor
    lengths: Tensor
    labels: Tensor
    groups: Ints | None
    sorted_indices: Tensor
    unsorted_indices: Tensor
    examples: Ints
    spellings: Spellings | None = None
    static: Tensor | None = None
    vectors: Tensor | None = None
    on_host: Batch | None = None

    @property
    def host(self) -> Batch:
        """The same batch on the CPU. Nothing is copied if it was made there."""
        if self.on_host is None:
            return self.to(torch.device("cpu"))
        return self.on_host

    @property
    def packed(self) -> PackedSequence:
        """The steps of all sequences without padding, time by time, longest sequence first."""
        if isinstance(self.inputs, PackedSequence):
            return self.inputs
        return sort_and_pack(self.inputs, self.lengths)[0]

    @property
    def input_ids(self) -> Tensor:
        """The steps row by row, padded with 0: (B, T) int64, or (B, T, C) float32."""
        if isinstance(self.inputs, PackedSequence):
            return pad_packed_sequence(self.inputs, batch_first=True)[0]
        return self.inputs

    def restore(self, results: Results) -> Results:
        """Return results in the order of `examples`.

        Args:
            results: One result per row of the batch: a tensor (B, …) or a list.
        """
        if isinstance(results, Tensor):
            return results[self.unsorted_indices]
        return [results[row] for row in self.unsorted_indices.tolist()]

    def to(self, device: torch.device) -> Batch:
        """Return the batch with its inputs, labels, spellings and row features on a device.

        A batch that is already on the device is returned itself. On CUDA the copy is asynchronous:
        the CPU doesn't wait for it.
        """
        own = self.inputs.data.device
        if own == device or own.type == device.type == "cpu":
            return self
        names = [
            name for name in ("labels", "static", "vectors") if getattr(self, name) is not None
        ]
        tensors = [self.inputs.data, *(getattr(self, name) for name in names)]
        if self.spellings is not None:
            tensors += vars(self.spellings).values()
        data, *moved = move_together(tensors, device)
        found: dict[str, Any] = dict(zip(names, moved, strict=False))
        if self.spellings is not None:
            found["spellings"] = Spellings(*moved[len(names) :])
        sizes = getattr(self.inputs, "batch_sizes", None)
        if sizes is None:
            found["inputs"] = data
        else:
            found["inputs"] = PackedSequence(data, sizes)
        return replace(self, **found, on_host=self if own.type == "cpu" else None)


def collate(rows: SequenceStore | Sequence[StoredSequence], sort: str = "collate") -> Batch:
    """Make a batch on the CPU. The function can be the `collate_fn` of a torch DataLoader.

    Args:
        rows: All sequences of the batch: a store, or a list of items of one or more stores.
        sort: "collate" to sort by length, longest first, and to pack. "module" to pad only: the
            classifier sorts later.

    Returns:
        The batch. Its `examples` are 0, 1, 2, …: positions in `rows`.

    Raises:
        DataError: If there are no sequences, or something else is given.
    """
    store = _store_of(rows)
    values = store.values
    if values.dtype == np.int32:
        values = values.astype(np.int64)
    lengths = store.lengths
    if sort == "module":
        order = np.arange(len(store))
        inputs: PackedSequence | Tensor = torch.from_numpy(_padded(values, lengths))
    else:
        order = np.argsort(-lengths, kind="stable")
        lengths = lengths[order]
        steps, batch_sizes = _packed_steps(store.offsets[:-1][order], lengths)
        data = torch.from_numpy(values[steps])
        inputs = PackedSequence(data, torch.from_numpy(batch_sizes))
    found: dict[str, Any] = {}
    for name in ("static", "vectors"):
        array = getattr(store, name)
        if array is not None:
            found[name] = torch.from_numpy(array[order])
    if store.spellings is not None and store.words is not None:
        if sort == "module":
            numbers = _padded(store.spellings, lengths, -1)
        else:
            numbers = store.spellings[steps]
        found["spellings"] = spellings(numbers, store.words)
    return Batch(
        inputs=inputs,
        lengths=torch.from_numpy(lengths),
        labels=torch.from_numpy(store.labels[order]),
        groups=None if store.groups is None else store.groups[order],
        sorted_indices=torch.from_numpy(order),
        unsorted_indices=torch.from_numpy(np.argsort(order)),
        examples=np.arange(len(order)),
        **found,
    )


def _store_of(rows: SequenceStore | Sequence[StoredSequence]) -> SequenceStore:
    """Return the rows that are given to `collate` as one store with at least one row."""
    if not isinstance(rows, SequenceStore):
        others = [type(row).__name__ for row in rows if not isinstance(row, StoredSequence)]
        if others:
            raise DataError(
                f"collate: found a {others[0]} in the list; expected a SequenceStore, or a list "
                "of its rows, such as [store[0]]"
            )
    if not len(rows):
        raise DataError("collate: found no sequences; expected at least one for a batch")
    if isinstance(rows, SequenceStore):
        return rows
    # Items of one or more stores, as a torch ConcatDataset returns them.
    sources = (item.source for item in rows)
    return joined_stores([store.__getitems__(np.array([row])) for store, row in sources])


def map_batches(
    compute: Callable[[Batch], Result],
    store: SequenceStore,
    plan: Iterable[Ints],
    device: torch.device,
    *,
    collate: Callable[[SequenceStore], Batch] = collate,
    lower: str = SHORTER,
    before_batch: Callable[[], None] = lambda: None,
    tf32: bool = False,
) -> Iterator[tuple[Batch, Result]]:
    """Yield each batch of a plan on a device, and the result of `compute` for it.

    On CUDA, a thread collates the next batch while the device computes.

    Args:
        compute: Function that is called with each batch.
        store: Store of all sequences.
        plan: Row numbers of each batch. They become `Batch.examples`.
        device: Device that computes.
        collate: Function that makes a batch on the CPU.
        lower: Names of config keys. If memory runs out, the error message advises to lower them.
        before_batch: Function that is called before `compute`, once per batch.
        tf32: True to compute float32 matrix products in TF32 on CUDA.

    Raises:
        RunError: If memory runs out.
    """
    batches = _batches(store, plan, device, collate, lower)
    if device.type == "cuda":
        batches = _one_ahead(batches)
    for batch in batches:
        before_batch()
        with memory_errors(batch.lengths.numpy(), lower), float32_products(device, tf32=tf32):
            result = compute(batch)
        yield batch, result


def _batches(
    store: SequenceStore,
    plan: Iterable[Ints],
    device: torch.device,
    collate: Callable[[SequenceStore], Batch],
    lower: str,
) -> Iterator[Batch]:
    """Yield the batches of a plan on a device: see `map_batches` for the arguments."""
    for rows in plan:
        examples = np.asarray(rows, dtype=np.int64)  # a plan may have them in 32 bits
        with memory_errors(store.lengths[examples], lower):
            batch = replace(collate(store.__getitems__(examples)), examples=examples)
            if device.type != "cpu":
                batch = batch.to(device)
        yield batch


def _one_ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield the same batches. A thread makes the next one while the caller uses the last one."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        coming = thread.submit(next, batches, None)
        while True:
            batch = coming.result()
            if batch is None:
                return
            coming = thread.submit(next, batches, None)
            yield batch


@contextmanager
def memory_errors(lengths: Ints, lower: str) -> Iterator[None]:
    """Raise RunError with the size of the batch if the body of the `with` runs out of memory.

    Args:
        lengths: Number of steps of each sequence of the batch.
        lower: Names of config keys that the message advises to lower.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not ran_out_of_memory(error):
            raise
        raise RunError(
            f"memory ran out on {len(lengths)} sequences, the longest of {lengths.max()} steps; "
            f"lower {lower}"
        ) from None


def sort_and_pack(padded: Tensor, lengths: Tensor) -> tuple[PackedSequence, Tensor, Tensor]:
    """Sort padded rows by length, longest first, and pack them.

    Rows of equal length keep their order.

    Args:
        padded: The rows, (B, T) or (B, T, C).
        lengths: Number of valid steps of each row, (B,) int64, on the CPU.

    Returns:
        The packed rows. Then `sorted_indices` and `unsorted_indices` as in `Batch`, (B,) each.

    Raises:
        ValueError: As `check_lengths`.
    """
    check_lengths(lengths, *padded.shape[:2])
    order = lengths.argsort(descending=True, stable=True)
    sorted_indices = order.to(padded.device)
    packed = pack_padded_sequence(padded[sorted_indices], lengths[order], batch_first=True)
    return packed, sorted_indices, sorted_indices.argsort()


def check_lengths(lengths: Tensor, rows: int, longest: int) -> None:
    """Raise ValueError if lengths don't fit padded sequences of shape (rows, longest, …).

    Valid lengths are `rows` int64 numbers from 1 to `longest`, on the CPU.
    """
    if lengths.dtype != torch.int64 or lengths.device.type != "cpu":
        raise ValueError(
            f"lengths: found {lengths.dtype} on {lengths.device}; expected torch.int64 on cpu"
        )
    if lengths.shape != (rows,):
        raise ValueError(
            f"lengths: found shape {tuple(lengths.shape)}; expected ({rows},), one for each row"
        )
    wrong = (lengths < 1) | (lengths > longest)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ValueError(f"row {row}: found length {int(lengths[row])}; expected 1 to {longest}")


def _padded(values: Array, lengths: Ints, fill: int = 0) -> Array:
    """Return the steps row by row, (B, T) or (B, T, C)."""
    valid = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full((*valid.shape, *values.shape[1:]), fill, values.dtype)
    padded[valid] = values
    return padded


def _packed_steps(starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Return the index of each step in packed order, (N,), and the number of rows at each time.

    Args:
        starts: Index of the first step of each row, (B,).
        lengths: Number of steps of each row, descending, (B,).
    """
    longest = int(lengths[0])
    # As many sequences have a step number t as are longer than t.
    batch_sizes = len(lengths) - np.bincount(lengths)[:longest].cumsum()
    step = np.arange(longest).repeat(batch_sizes)
    sequence = np.arange(len(step)) - (batch_sizes.cumsum() - batch_sizes).repeat(batch_sizes)
    return starts[sequence] + step, batch_sizes


def augmented(
    rows: SequenceStore,
    *,
    shift: float,
    slice: float,
    channels: int,
    seed: int,
    epoch: int,
    batch: int,
) -> SequenceStore:
    """Return randomly changed copies of sequences: augmentation of the training data.

    - First only a window of consecutive steps of each sequence is kept, at a random place. The
      share of steps that is kept is drawn from U(1 - slice, 1). At least one step is kept.
    - Then each channel of each sequence is shifted by one number from N(0, shift²).

    Args:
        rows: Sequences of a batch. Their numbers are standardized, so that `shift` is in standard
            deviations of the channel in train.
        shift: Standard deviation of the shift, or 0 for none.
        slice: Largest share of the steps that is left out, or 0 to keep all steps.
        channels: Number of channels, which are the first numbers of a step. The other numbers of a
            step aren't shifted.
        seed: Seed of the run. The changes depend on it, the epoch and the batch.
        epoch: Number of the epoch.
        batch: Number of the batch in the epoch.
    """
    generator = np.random.default_rng([seed, epoch, batch, DRAWS])
    share, left = generator.random((2, len(rows)))
    shifts = generator.standard_normal((len(rows), channels), dtype=np.float32)
    if slice:
        lengths = np.maximum(1, np.rint(rows.lengths * (1 - slice * share)).astype(np.int64))
        starts = rows.offsets[:-1] + (left * (rows.lengths - lengths + 1)).astype(np.int64)
        rows = rows.windows(np.arange(len(rows)), starts, lengths)
    if shift:
        values = rows.values.copy()
        values[:, :channels] += (shift * shifts).repeat(rows.lengths, axis=0)
        absent = values[:, channels:] > 0
        if absent.shape[1] == channels:  # else numbers were carried forward, or are never missing
            values[:, :channels][absent] = 0
        rows = replace(rows, values=values)
    return rows
