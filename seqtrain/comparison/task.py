"""What `compare` gives every variant: sequences to learn from, to hold out, and to probe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqtrain.api.memory import check_longest, check_model
from seqtrain.config import Config, ModelConfig
from seqtrain.data.cache import default_folder
from seqtrain.data.configured import check_files
from seqtrain.data.plan import plan_epoch
from seqtrain.data.preparation import prepare
from seqtrain.data.splits import stratified_split
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.data.word_vectors import with_width
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.text import listed

SAMPLE_TOKENS = 8_000_000
"""Tokens of train that are measured on at most: as many as a fast engine takes in its time."""
PROBE_TOKENS = 20_000
"""Tokens of the sequences whose logits are compared, at most (but one sequence)."""
HELD_OUT_SHARE, HELD_OUT_ROWS = 0.1, 2_000
"""Of train, where the config has no validation; and rows that accuracy is measured on at most."""


@dataclass(frozen=True)
class Task:
    """What every variant is given.

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

    def new_model(self, config: Config) -> SequenceClassifier:
        """Draw a config's model: the same weights for the same seed, whatever the variant."""
        features = self.train.values.ndim == 2
        model = SequenceClassifier(
            config.model,
            input_size=self.input_size,
            num_classes=len(self.labels),
            features=features,
        )
        model.initialize(config.seed)
        return model.to(self.device)


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
    config, left_out = recurrent_alone(with_width(config))
    data = prepare(config, cache_folder=default_folder())
    preprocessing = data.preprocessing
    check_model(
        config.model, preprocessing.input_size, len(preprocessing.labels), preprocessing.num_ngrams
    )
    check_longest(config, data.splits["train"])
    train, held_out = _hold_out(data.splits["train"], data.splits.get("validation"), config.seed)
    batches = plan_epoch(train.lengths, config.batching, seed=config.seed, epoch=1)
    tokens = np.cumsum([int(train.lengths[rows].sum()) for rows in batches])
    kept = batches[: max(1, int((tokens <= SAMPLE_TOKENS).sum()))]
    sample = train.selection(np.sort(np.concatenate(kept)))
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
        warnings=left_out
        + [line for name, report in data.reports.items() for line in report.notices(name)],
        probe=order[: min(config.batching.batch_size, max(1, int(fitting.sum())))],
    )


def recurrent_alone(config: Config) -> tuple[Config, list[str]]:
    """Leave out what stands beside the recurrent model: no plain script has it.

    Returns:
        The config without such parts, and a line that names them, if there are any.
    """
    model, plain = config.model, ModelConfig()
    changes: dict[str, Any] = {
        key: getattr(plain, key)
        for key in ("ngrams", "subwords", "convolutions", "vectors", "vectors_keep", "freeze")
        if getattr(model, key) != getattr(plain, key)
    }
    if not isinstance(model.pooling, str):
        changes["pooling"] = model.pooling[0]
    named = [f"model.{key}" for key in changes]
    data, training = config.data, config.training
    if data.standardize != "train":
        named.append("data.standardize")
        data = data.model_copy(update={"standardize": "train"})
    if training.augment is not None:
        named.append("training.augment")
        training = training.model_copy(update={"augment": None})
    if not named:
        return config, []
    sections = {"model": model.model_copy(update=changes), "data": data, "training": training}
    what = listed(named, len(named))
    return config.model_copy(update=sections), [f"compared without {what}"]


def _hold_out(
    train: SequenceStore, validation: SequenceStore | None, seed: int
) -> tuple[SequenceStore, SequenceStore]:
    """Return what to learn from, and what accuracy is measured on.

    Rows of one group can't be parted: without validation nothing is held out of these.
    """
    if validation is None:
        kept, rest = stratified_split(train.labels, HELD_OUT_SHARE, seed)
        if train.groups is not None:
            return train, train.selection(rest[:0])
        train, validation = train.selection(kept), train.selection(rest)
    chosen = np.random.default_rng(seed).permutation(len(validation))[:HELD_OUT_ROWS]
    return train, validation.selection(np.sort(chosen))
