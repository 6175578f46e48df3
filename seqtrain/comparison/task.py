"""What `compare` sets side by side, and what it gives each: rows to learn, hold out, and probe."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqtrain.api.environment import check_longest, check_model
from seqtrain.config import Config, values_by_key
from seqtrain.config.document import flow
from seqtrain.data.cache import default_folder
from seqtrain.data.dataset import prepare
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.sources import check_files
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.data.word_vectors import with_width
from seqtrain.errors import ConfigError
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.model.engines.choice import choose_engine
from seqtrain.runs.model_folder import new_network
from seqtrain.text import listed

PROBE_TOKENS = 20_000
"""Tokens of the sequences whose logits are compared, at most (but one sequence)."""
LEFT_OUT = (
    *("model.ngrams", "model.subwords", "model.convolutions", "model.vectors", "model.kernels"),
    "model.trees",
    *("model.vectors_keep", "model.freeze", "model.pooling", "data.standardize", "data.static"),
    "training.augment",
)
"""Keys that no plain script has, and several poolings."""
HELD_OUT_SHARE, HELD_OUT_ROWS = 0.1, 2_000
"""Of train, where the config has no validation; and rows that accuracy is measured on at most."""
AUTO = {"engine": "auto", "unroll": "packed"}
COLLATE, RANDOM = {"sort": "collate"}, {"bucketing": False}


@dataclass(frozen=True)
class Variant:
    """One variant: keys of the sections model and batching that it changes.

    Attributes:
        kind: engine; option (of seqtrain's, with the engine that auto takes); recipe (how torch's
            module is used elsewhere); wrong (padding is read as if it were data); pooling (what a
            wrong one would be without its mistake).
        pads: whether it computes on padding.
    """

    kind: str
    model: Mapping[str, Any]
    batching: Mapping[str, Any]
    pads: bool = False

    def config(self, config: Config) -> Config:
        """Return a config with the changes made."""
        return config.with_keys(model=self.model, batching=self.batching)

    def setting(self, config: Config) -> str:
        """Return the keys to change in a config to have it; of a recipe none."""
        before, after = values_by_key(config), values_by_key(self.config(config))
        changed = [f"{key}: {flow(value)}" for key, value in after.items() if before[key] != value]
        return ", ".join([] if self.kind == "recipe" else changed)


VARIANTS = {
    "native": Variant("engine", {"engine": "native", "unroll": "packed"}, COLLATE),
    "torch": Variant("engine", {"engine": "torch", "unroll": "packed"}, COLLATE),
    "unroll-padded": Variant("option", {"engine": "torch", "unroll": "padded"}, COLLATE, True),
    "unroll-masked": Variant("option", {"engine": "torch", "unroll": "masked"}, COLLATE, True),
    "sort-in-module": Variant("option", AUTO, {"sort": "module"}),
    "random-batches": Variant("option", AUTO, RANDOM),
    "padded-sorted": Variant("recipe", {}, {"bucketing": True}, pads=True),
    "padded-sorted-mask": Variant("recipe", {}, {"bucketing": True}, pads=True),
    "padded": Variant("recipe", {}, RANDOM, pads=True),
    "packed-sorted": Variant("recipe", {}, {"bucketing": True}),
    "packed": Variant("recipe", {}, RANDOM),
    "last-of-padding": Variant("wrong", {**AUTO, "pooling": "last"}, RANDOM | COLLATE, pads=True),
    "last-valid": Variant("pooling", {**AUTO, "pooling": "last"}, RANDOM | COLLATE),
    "mean-over-padding": Variant("wrong", {**AUTO, "pooling": "mean"}, RANDOM | COLLATE, pads=True),
    "mean-valid": Variant("pooling", {**AUTO, "pooling": "mean"}, RANDOM | COLLATE),
}
"""By name. Packed recipes take the last valid state from h_n, padded ones gather it at length - 1
or, by name, find it with a mask. "sorted": batches of like length, else random ones. The wrong
ones take the state after a padded row's last time step, and the mean of all of them."""


def variants_for(config: Config, device: torch.device) -> dict[str, str]:
    """Return by name why each variant can't run a config here; empty where it can."""
    left_out = {f"{config.model.pooling}-valid"}
    if not config.batching.bucketing:
        left_out.add("random-batches")
    if config.model.pooling != "last":
        left_out.add("padded-sorted-mask")
    problems = {name: "" for name in VARIANTS if name not in left_out}
    for name in problems:
        variant = VARIANTS[name]
        if variant.kind == "recipe" and variant.pads and config.model.bidirectional:
            problems[name] = "nn.GRU would read the padding first, backwards"
        elif variant.kind == "wrong" and config.model.initial_state == "carried":
            carried = "with model.initial_state: carried"
            problems[name] = f"{carried}, the next row would start from the padding"
        elif variant.kind != "recipe":
            try:
                choose_engine(variant.config(config).model, device)
            except ConfigError as error:
                problems[name] = str(error)
    return problems


@dataclass(frozen=True)
class Task:
    """What every variant is given.

    Attributes:
        held_out: the sequences that accuracy is measured on.
        probe: rows of train whose logits are compared, before any training.
    """

    config: Config
    train: SequenceStore
    held_out: SequenceStore
    preprocessing: Preprocessing
    device: torch.device
    warnings: list[str]
    probe: Ints

    def new_model(self, config: Config) -> ClassifierNetwork:
        """Draw a config's model: the same weights for the same seed, whatever the variant."""
        model = new_network(config.model, self.preprocessing)
        model.initialize(config.seed)
        return model.to(self.device)


def prepare_task(config: Config, device: torch.device, beside: Path | None) -> Task:
    """Read the data as `fit` does, and draw what is held out and what is probed."""
    check_files(config, beside)
    config, left_out = recurrent_alone(with_width(config))
    if config.data.validation is None and config.data.group is None:
        config = config.with_keys(data={"validation": HELD_OUT_SHARE})
    data = prepare(config, cache_folder=default_folder())
    preprocessing, train = data.preprocessing, data.splits["train"]
    if preprocessing.multi_label:
        raise ConfigError("data.label: compare measures models of one label per row, not several")
    check_model(config.model, preprocessing, device)
    check_longest(config, train, device)
    held_out = data.splits.get("validation", train.selection(np.arange(0)))
    draw = np.random.default_rng(config.seed).permutation
    order = draw(len(train))
    fitting = int((np.cumsum(train.lengths[order]) <= PROBE_TOKENS).sum())
    left_out += [line for name, report in data.reports.items() for line in report.notices(name)]
    return Task(
        config=config,
        train=train,
        held_out=held_out.selection(np.sort(draw(len(held_out))[:HELD_OUT_ROWS])),
        preprocessing=preprocessing,
        device=device,
        warnings=left_out,
        probe=order[: min(config.batching.batch_size, max(1, fitting))],
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
            config = config.with_keys(**{name: {field: plain}})
    return config, [f"compared without {listed(named, len(named))}"] if named else []
