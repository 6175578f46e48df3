"""What `compare` gives every candidate: the data to learn from, to hold out, and to probe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from seqtrain.config import Config
from seqtrain.data.cache import default_folder
from seqtrain.data.plan import plan_epoch
from seqtrain.data.preparation import PreparedData, check_files, prepare
from seqtrain.data.splits import stratified_split
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.workflows.memory import check_longest, check_model

SAMPLE_TOKENS = 8_000_000
"""Tokens of train that are measured on at most: as many as a fast engine takes in its time."""
PROBE_TOKENS = 20_000
"""Tokens of the sequences whose logits are compared, at most (but one sequence)."""
HELD_OUT_SHARE, HELD_OUT_ROWS = 0.1, 2_000
"""Of train, where the config has no validation; and rows that accuracy is measured on at most."""


@dataclass(frozen=True)
class Task:
    """What every candidate is given.

    Attributes:
        config: resolved.
        train: the sequences to learn from and to classify.
        held_out: the sequences that accuracy is measured on.
        input_size: of the vocabulary, or width of the feature vectors.
        labels: of each class index.
        device: where to compute.
        threads: of torch, on the CPU.
        warnings: what was done to rows as they were read, a line each.
        probe: rows of train whose logits are compared, before any training.
    """

    config: Config
    train: SequenceStore
    held_out: SequenceStore
    input_size: int
    labels: tuple[str, ...]
    device: torch.device
    threads: int
    warnings: list[str]
    probe: Ints

    @property
    def features(self) -> bool:
        """Whether steps are feature vectors instead of ids."""
        return self.train.values.ndim == 2


def prepare_task(config: Config, device: torch.device, beside: Path | None) -> Task:
    """Read the data as `fit` does, and draw what is measured on.

    Args:
        config: resolved.
        device: where to compute.
        beside: folder of the YAML file, for the message where a data file is missing.

    Raises:
        ConfigError, DataError: what was given is wrong.
    """
    check_files(config, beside)
    data = prepare(config, cache_folder=default_folder())
    preprocessing = data.preprocessing
    check_model(config.model, preprocessing.input_size, len(preprocessing.labels))
    check_longest(config, data.splits["train"])
    train, held_out = _hold_out(data, config.seed)
    sample = _sample(train, config)
    order = np.random.default_rng(config.seed).permutation(len(sample))
    fitting = np.cumsum(sample.lengths[order]) <= PROBE_TOKENS
    return Task(
        config=config,
        train=sample,
        held_out=held_out,
        input_size=preprocessing.input_size,
        labels=preprocessing.labels,
        device=device,
        threads=torch.get_num_threads(),
        warnings=[line for name, report in data.reports.items() for line in report.notices(name)],
        probe=order[: min(config.batching.batch_size, max(1, int(fitting.sum())))],
    )


def _hold_out(data: PreparedData, seed: int) -> tuple[SequenceStore, SequenceStore]:
    """Return train, and what accuracy is measured on: of validation, or held out of train.

    Rows of one group can't be parted: without validation nothing is held out of these.
    """
    train, held_out = data.splits["train"], data.splits.get("validation")
    if held_out is None:
        kept, rest = stratified_split(train.labels, HELD_OUT_SHARE, seed)
        if train.groups is not None:
            return train, train.selection(rest[:0])
        train, held_out = train.selection(kept), train.selection(rest)
    chosen = np.random.default_rng(seed).permutation(len(held_out))[:HELD_OUT_ROWS]
    return train, held_out.selection(np.sort(chosen))


def _sample(train: SequenceStore, config: Config) -> SequenceStore:
    """Return as many whole batches of an epoch as SAMPLE_TOKENS allow, at least one, in order."""
    chosen: list[Ints] = []
    tokens = 0
    for rows in plan_epoch(train.lengths, config.batching, seed=config.seed, epoch=1):
        tokens += int(train.lengths[rows].sum())
        if chosen and tokens > SAMPLE_TOKENS:
            break
        chosen.append(rows)
    return train.selection(np.sort(np.concatenate(chosen)))
