"""What `compare` gives every variant: sequences to learn from, to hold out, and to probe."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from seqtrain.api.resources import check_longest, check_model
from seqtrain.config import Config
from seqtrain.data.cache import default_folder
from seqtrain.data.dataset import prepare
from seqtrain.data.plan import plan_epoch
from seqtrain.data.sources import check_files
from seqtrain.data.splits import hold_out
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.data.word_vectors import with_width
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.text import listed

SAMPLE_TOKENS = 8_000_000
"""Tokens of train that are measured on at most: as many as a fast engine takes in its time."""
PROBE_TOKENS = 20_000
"""Tokens of the sequences whose logits are compared, at most (but one sequence)."""
LEFT_OUT = (
    *("model.ngrams", "model.subwords", "model.convolutions", "model.vectors", "model.kernels"),
    *("model.vectors_keep", "model.freeze", "model.pooling", "data.standardize"),
    "training.augment",
)
"""Keys that no plain script has, and several poolings."""
HELD_OUT_SHARE, HELD_OUT_ROWS = 0.1, 2_000
"""Of train, where the config has no validation; and rows that accuracy is measured on at most."""


@dataclass(frozen=True)
class Task:
    """What every variant is given.

    Attributes:
        held_out: the sequences that accuracy is measured on.
        input_size: of the vocabulary, or width of the feature vectors.
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

    def new_model(self, config: Config) -> ClassifierNetwork:
        """Draw a config's model: the same weights for the same seed, whatever the variant."""
        features = self.train.values.ndim == 2
        model = ClassifierNetwork(
            config.model,
            input_size=self.input_size,
            num_classes=len(self.labels),
            features=features,
        )
        model.initialize(config.seed)
        return model.to(self.device)


def prepare_task(config: Config, device: torch.device, beside: Path | None) -> Task:
    """Read the data as `fit` does, and draw what is measured on."""
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
    """Leave out what no plain script has; return also a line that names it, where there is some."""
    named = []
    for key in LEFT_OUT:
        name, _, field = key.partition(".")
        section = getattr(config, name)
        value, plain = getattr(section, field), type(section).model_fields[field].default
        if key == "model.pooling":
            plain = value if isinstance(value, str) else value[0]
        if value != plain:
            named.append(key)
            changed = section.model_copy(update={field: plain})
            config = config.model_copy(update={name: changed})
    return config, [f"compared without {listed(named, len(named))}"] if named else []


def _hold_out(
    train: SequenceStore, validation: SequenceStore | None, seed: int
) -> tuple[SequenceStore, SequenceStore]:
    """Return what to learn from, and what accuracy is measured on; groups aren't divided."""
    if validation is None:
        if train.groups is not None:
            return train, train.selection(np.arange(0))
        rest = hold_out(train.labels, {"validation": HELD_OUT_SHARE}, seed)["validation"]
        kept = np.delete(np.arange(len(train)), rest)
        train, validation = train.selection(kept), train.selection(rest)
    chosen = np.random.default_rng(seed).permutation(len(validation))[:HELD_OUT_ROWS]
    return train, validation.selection(np.sort(chosen))


def typical_first(lengths: Ints, config: Config) -> list[Ints]:
    """Return the batches of an epoch such that the first few are like all of them.

    The median by length comes first, then the quartiles, the eighths and so on (van der Corput's
    sequence), so a slow variant is measured on typical batches.
    """
    plan = plan_epoch(lengths, config.batching, seed=config.seed, epoch=0)
    plan.sort(key=lambda rows: int(lengths[rows].max()))
    bits = len(plan).bit_length()
    ranks = (int(f"{n:0{bits}b}"[::-1], 2) * len(plan) >> bits for n in range(1, 1 << bits))
    return [plan[rank] for rank in dict.fromkeys(ranks)]
