"""Failed allocations in words: which batch, and what to lower."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seqtrain.data.store import Ints
from seqtrain.errors import RunError


@contextmanager
def memory_errors(lengths: Ints, lower: str) -> Iterator[None]:
    """Turn a failed allocation into a RunError.

    Args:
        lengths: steps of the sequences of the batch under way, (B,).
        lower: the keys that would need less memory if lowered.

    Raises:
        RunError: memory ran out; other errors pass.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and "memory" not in str(error):
            raise
        raise RunError(
            f"memory ran out on {len(lengths)} sequences, the longest of {lengths.max()} steps; "
            f"lower {lower}"
        ) from None
