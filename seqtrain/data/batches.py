"""The one loop over batches: plan → collate → device → compute; says which batch was too large."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch

from seqtrain.data.batch import Batch, collate
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import RunError, ran_out_of_memory

Result = TypeVar("Result")
SHORTER = "data.max_length, or cut the sequences"
"""What needs less memory where nothing is learned."""


def map_batches(
    compute: Callable[[Batch], Result],
    store: SequenceStore,
    plan: Iterable[Ints],
    device: torch.device,
    *,
    collate: Callable[[SequenceStore], Batch] = collate,
    lower: str = SHORTER,
    before_batch: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Batch, Result]]:
    """Yield each batch of a plan, on a device, with what is computed of it.

    Args:
        compute: takes a batch; its results return to the caller's order by `Batch.restore`.
        store: the sequences.
        plan: rows of the store for each batch.
        device: where to compute.
        collate: puts sequences together.
        lower: the keys that would need less memory if lowered, for the message.
        before_batch: is called before each batch; what it raises ends the work.

    Raises:
        RunError: memory ran out; the message has the size of the batch.
    """
    for rows in plan:
        before_batch()
        examples = np.asarray(rows, dtype=np.int64)  # a plan may have them in 32 bits
        with memory_errors(store.lengths[examples], lower):
            batch = replace(collate(store.__getitems__(examples)), examples=examples).to(device)
            result = compute(batch)
        yield batch, result


@contextmanager
def memory_errors(lengths: Ints, lower: str) -> Iterator[None]:
    """Turn a failed allocation into a RunError.

    Args:
        lengths: time steps of the sequences of the batch under way, (B,).
        lower: the keys that would need less memory if lowered.

    Raises:
        RunError: memory ran out; other errors pass.
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
