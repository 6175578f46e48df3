"""Keys of sequences: a hash of the content, so that equal sequences have equal keys.

B sequences, N steps of all sequences.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from seqtrain.sequences.examples import Sequences, Steps
from seqtrain.tables.blocks import Ints


def keys_of(sequences: Sequences, *, lowers: bool) -> Ints:
    """Return a hash of each sequence with its row features, (B,). Empty sequences have 0.

    Args:
        sequences: The sequences.
        lowers: True if texts that differ only in case are equal.
    """
    contents = _contents(sequences, lowers=lowers)
    own = [b""] * len(sequences)
    if sequences.static is not None:
        facts = _step_hashes(sequences.static)
        own = [b"\x1d" + each.tobytes() for each in facts]
    keys = bytearray()
    for content, feature in zip(contents, own, strict=True):
        keys += blake2b(content + feature, digest_size=8).digest() if content else bytes(8)
    return np.frombuffer(bytes(keys), dtype="<i8").astype(np.int64)


def _contents(sequences: Sequences, *, lowers: bool) -> Iterator[bytes]:
    """Yield the content of each sequence as bytes that identify it."""
    if sequences.offsets is not None:
        hashes = _step_hashes(sequences.content)
        for begin, end in pairwise(sequences.offsets.tolist()):
            yield hashes[begin:end].tobytes()
        return
    for content in sequences.content:
        if isinstance(content, str):
            text = content.strip()
            yield (text.lower() if lowers else text).encode("utf-8", "surrogatepass")
        elif isinstance(content, list):
            yield json.dumps(content).encode() if content else b""
        else:
            plain = content + np.float32(0)  # -0.0 is 0.0
            yield plain.tobytes() + str(plain.shape).encode() if plain.size else b""


def _step_hashes(steps: Steps) -> npt.NDArray[np.uint64]:
    """Return a hash of each step, (N,)."""
    mixed = np.full(len(steps), 0x9E3779B97F4A7C15, np.uint64)
    prime = np.uint64(0x100000001B3)
    for column in steps.tokens:
        texts = [each.encode("utf-8", "surrogatepass") for each in column.values]
        digests = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
        table = np.frombuffer(digests, "<u8").astype(np.uint64)
        mixed = (mixed ^ table[column.codes]) * prime
    for numbers in np.ascontiguousarray(steps.numbers.T + np.float32(0)).view(np.uint32):
        spread = numbers.astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
        mixed = (mixed ^ spread ^ (spread >> np.uint64(32))) * prime
    return mixed
