"""Sequences given from Python: checked as strictly as the rows of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from seqtrain.data.examples import BadRow, Features, Sequence
from seqtrain.data.readers.sequences import features_from_array
from seqtrain.data.store import Array

EXPECTED = {
    "features": "an array of shape (T, C)",
    "tokens": "a list of symbols",
    "text": "a string",
}


def given_sequence(sequence: Any, kind: str, channels: int) -> Sequence:
    """Return a sequence as a reader would yield it; what isn't of the kind is a BadRow.

    Args:
        sequence: a string (kind text), a list of symbols (tokens), or an array, tensor or list of
            shape (T, C) (features), of one channel also (T,).
        kind: text, tokens or features.
        channels: values per time step (features).
    """
    if kind == "text" and isinstance(sequence, str):
        return sequence
    if kind == "tokens" and isinstance(sequence, list | tuple):
        try:
            return [str(symbol) for symbol in sequence]
        except ValueError:
            raise BadRow("found an integer of thousands of digits as a symbol") from None
    vectors = _array(sequence) if kind == "features" else None
    if vectors is not None and vectors.ndim == 1 and channels == 1:
        vectors = vectors[:, None]
    if vectors is None or vectors.ndim != 2:
        raise BadRow(f"found {type(sequence).__name__}; this model expects {EXPECTED[kind]}")
    return _features(vectors)


def _array(sequence: Any) -> Array | None:
    """Return an array of any type, what is masked as missing; or None."""
    if isinstance(sequence, torch.Tensor):
        dense = sequence.detach().to_dense().cpu()
        return np.asarray(dense.double() if dense.is_floating_point() else dense)
    if isinstance(sequence, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(sequence.astype(np.float64), np.nan))
    try:
        return np.asarray(sequence)
    except (TypeError, ValueError, RuntimeError):
        return None


def _features(vectors: Array) -> Features:
    """Convert numbers to float32; refuse all else."""
    if vectors.dtype.kind == "O":
        odd = next((v for v in vectors.flat if isinstance(v, str | bytes | complex)), None)
        try:
            vectors = vectors if odd is not None else vectors.astype(np.float64)
        except OverflowError:
            raise BadRow("a number is too large for float32") from None
        except (TypeError, ValueError):
            raise BadRow("found values that are no numbers") from None
    if vectors.dtype.kind not in "biuf":
        raise BadRow(f"found values of type {vectors.dtype}; expected numbers")
    return features_from_array(vectors)
