"""What to pretrain on: train's sequences and those of more files, whose labels aren't looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

import numpy as np

from seqtrain.config.schema import Config
from seqtrain.data.encoding import EncodingReport, read_encoded
from seqtrain.data.examples import Example
from seqtrain.data.growing import blocks, joined
from seqtrain.data.preparation import PreparedData, digest_of, read_options
from seqtrain.data.store import SequenceStore


def add_unlabelled(config: Config, data: PreparedData) -> tuple[PreparedData, list[str]]:
    """Read the files of pretraining.data as train was; the vocabulary stays train's.

    Args:
        config: paths are relative to the current directory.
        data: prepared.

    Returns:
        The data with `unlabelled` and the files' digests (as it is, where the config has no
        pretraining), and what was done to the files' rows, a line each.

    Raises:
        DataError: rows that can't be used, by line.
    """
    if config.pretraining.objective is None:
        return data, []
    store, digests, notices = data.splits["train"], dict(data.digests), []

    def encode(examples: Iterable[Example], source: str) -> tuple[SequenceStore, EncodingReport]:
        unlabelled = (replace(example, label=None) for example in examples)
        return data.preprocessing.encode(unlabelled, source)

    for path in config.pretraining.data or []:
        digests[path] = digest_of(config.data, path)
        options = replace(read_options(config.data, path), group=None)
        read, report = read_encoded(encode, path, options, labelled=False)
        store = _joined(store, read)
        notices += report.notices(path)
    return replace(data, digests=digests, unlabelled=store), notices


def _joined(one: SequenceStore, other: SequenceStore) -> SequenceStore:
    """Return the sequences of both; groups don't matter here, for each is read on its own."""
    values = joined(chain(blocks(one.values), blocks(other.values)))
    labels, lines = (
        np.concatenate((getattr(one, name), getattr(other, name))) for name in ("labels", "lines")
    )
    offsets = np.concatenate((one.offsets[:-1], one.offsets[-1] + other.offsets))
    return SequenceStore(values, offsets, labels, lines)
