"""The variants that `compare` measures, and the data that all variants share."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqtrain.config import Config, values_by_key
from seqtrain.config.document import flow
from seqtrain.engines.choice import choose_engine
from seqtrain.errors import ConfigError
from seqtrain.model.network import ClassifierNetwork, new_network
from seqtrain.runs.environment import check_longest, check_model
from seqtrain.sequences.cache import default_folder
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.sources import check_files
from seqtrain.sequences.store import Ints, SequenceStore
from seqtrain.sequences.word_vectors import with_width
from seqtrain.text import listed

PROBE_TOKENS = 20_000
"""Largest number of tokens in all sequences whose logits are compared.

At least one sequence is compared, even if it is longer.
"""
LEFT_OUT = (
    *("model.ngrams", "model.subwords", "model.convolutions", "model.vectors", "model.kernels"),
    "model.trees",
    *("model.vectors_keep", "model.freeze", "model.pooling", "data.standardize", "data.static"),
    "training.augment",
)
"""Config keys of features that a plain script lacks. `compare` sets them to their defaults.

In place of several poolings, the first of them is used.
"""
HELD_OUT_SHARE = 0.1
"""Fraction of train that is held out if the config has no validation."""
HELD_OUT_ROWS = 2_000
"""Largest number of sequences that accuracy is measured on."""
AUTO = {"engine": "auto", "unroll": "packed"}
"""Keys of the section model by which the fastest engine runs over packed sequences."""
COLLATE, RANDOM = {"sort": "collate"}, {"bucketing": False}
"""Keys of the section batching: rows are sorted when a batch is made; batches are random."""


@dataclass(frozen=True)
class Variant:
    """A method of handling sequences of unequal length, as changes to a config.

    Attributes:
        kind: One of five words. "engine" is a value of model.engine. "option" is another option of
            seqtrain. "recipe" is a plain torch script. "wrong" reads padding as data. "pooling" has
            the same pooling as a wrong variant, and ignores padding.
        model: New values of keys in the config's section model, by key.
        batching: New values of keys in the config's section batching, by key.
        pads: True if the recurrence also runs over the padding.
    """

    kind: str
    model: Mapping[str, Any]
    batching: Mapping[str, Any]
    pads: bool = False

    def config(self, config: Config) -> Config:
        """Return a copy of a config with the changes of the variant."""
        return config.with_keys(model=self.model, batching=self.batching)

    def kind_for(self, config: Config) -> str:
        """Return the kind of the variant for a config.

        This is `kind`, except for a plain torch script that pads. With a bidirectional model, its
        kind is "wrong", because the backward direction reads the padding first.
        """
        reads_padding = self.kind == "recipe" and self.pads and config.model.bidirectional
        return "wrong" if reads_padding else self.kind

    def setting(self, config: Config) -> str:
        """Return the keys and values that turn a config into the variant, as text.

        An example is "model.engine: torch". For a plain torch script, return "".
        """
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
"""Maps each name to its variant.

Packed recipes take the last valid state from h_n. Padded recipes take the state at length - 1, by
an index or, if "mask" is in the name, by a mask. Recipes with "sorted" in the name have batches of
similar length. The batches of other recipes are random. "last-of-padding" takes the state after
the last time step of a padded row. "mean-over-padding" takes the mean of all states of that row.
"""


def variants_for(config: Config, device: torch.device) -> dict[str, str]:
    """Return a dict that maps the name of each variant to a problem, or to "" if it can run.

    A problem is the reason why the variant can't run with this config on this device. Of variants
    that are equal for this config, the dict has only one.
    """
    left_out = {f"{config.model.pooling}-valid"}
    if not config.batching.bucketing:
        left_out.add("random-batches")
    if config.model.pooling != "last":
        left_out.add("padded-sorted-mask")
    problems = {name: "" for name in VARIANTS if name not in left_out}
    for name in problems:
        variant = VARIANTS[name]
        if variant.kind == "wrong" and config.model.initial_state == "carried":
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
    """Data and settings that all variants share.

    Attributes:
        config: Config without the features that a plain script lacks.
        train: Sequences to train on.
        held_out: Sequences to measure accuracy on, at most HELD_OUT_ROWS. They aren't trained on.
            It may be empty.
        preprocessing: Preprocessing fitted on train.
        device: Device that computes.
        warnings: Lines for the user about data and config.
        probe: Row indices in train of the sequences whose logits are compared before any training.
    """

    config: Config
    train: SequenceStore
    held_out: SequenceStore
    preprocessing: Preprocessing
    device: torch.device
    warnings: list[str]
    probe: Ints

    def new_model(self, config: Config) -> ClassifierNetwork:
        """Return a new model with initial weights, on the task's device.

        The weights depend on the seed of `config`, so all variants start from the same weights.
        Branches that are fitted to data, such as trees, aren't fitted.

        Args:
            config: Config of the variant.
        """
        model = new_network(config.model, self.preprocessing)
        model.initialize(config.seed)
        return model.to(self.device)


def prepare_task(config: Config, device: torch.device, config_folder: Path | None) -> Task:
    """Read the data as `fit` does, and choose the rows that accuracies and logits are compared on.

    Accuracies are measured on at most HELD_OUT_ROWS random rows of validation. If there is neither
    validation nor data.group, a tenth of train is held out. The encoded data is stored in the
    user's cache folder.

    Args:
        config: The config.
        device: Device that computes.
        config_folder: Folder of the YAML file, or None. For a missing data file, the error message
            names the file of the same name in this folder, if there is one.

    Raises:
        ConfigError: If the task is multi-label, or the model doesn't fit into memory.
        DataError: If the data can't be used.
    """
    check_files(config, config_folder)
    config, left_out = reduced_config(with_width(config))
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


def reduced_config(config: Config) -> tuple[Config, list[str]]:
    """Return a config without the features that a plain script lacks.

    Returns:
        The config, and a list with one line that names the removed features. The list is empty if
        nothing was removed.
    """
    removed = []
    for key in LEFT_OUT:
        name, _, field = key.partition(".")
        section = getattr(config, name)
        value, plain = getattr(section, field), type(section).model_fields[field].default
        if key == "model.pooling":
            plain = value if isinstance(value, str) else value[0]
        if value != plain:
            removed.append(key)
            config = config.with_keys(**{name: {field: plain}})
    return config, [f"compared without {listed(removed, len(removed))}"] if removed else []
