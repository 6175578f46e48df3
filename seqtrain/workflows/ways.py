"""The ways to run a model over sequences of unequal length that `compare` sets side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from seqtrain.config.rules import joint_faults, model_faults
from seqtrain.config.schema import Config
from seqtrain.errors import ConfigError
from seqtrain.model.engines.choice import choose_engine


@dataclass(frozen=True)
class Way:
    """One way, as changes of the config.

    Attributes:
        kind: engine; option (of seqtrain's, with the engine that auto takes); recipe (how torch's
            module is used elsewhere); wrong (padding is read as if it were data); pooling (what the
            wrong ones would be if it weren't).
        changes: keys of each section of the config.
        pads: whether it computes on padding.
    """

    kind: str
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pads: bool = False

    def config(self, config: Config) -> Config:
        """Return a config with the changes made."""
        sections = {
            name: getattr(config, name).model_copy(update=dict(keys))
            for name, keys in self.changes.items()
        }
        return config.model_copy(update=sections)

    def setting(self, config: Config) -> str:
        """Return what to write into a config to have it, but for defaults that the config has."""
        keys = [
            f"{section}.{key}: {str(value).lower()}"
            for section, changed in self.changes.items()
            for key, value in changed.items()
            if (section, key, value) not in DEFAULTS
            or getattr(getattr(config, section), key) != value
        ]
        return ", ".join(keys)


DEFAULTS = {("model", "unroll", "packed"), ("batching", "sort", "collate")}


def _engine(name: str) -> Way:
    return Way("engine", {"model": {"engine": name, "unroll": "packed"}, **SORTED_BEFORE})


def _unroll(how: str) -> Way:
    model = {"engine": "torch", "unroll": how}
    return Way("option", {"model": model, **SORTED_BEFORE}, pads=True)


def _recipe(*, bucketing: bool, pads: bool) -> Way:
    return Way("recipe", {"batching": {"bucketing": bucketing}}, pads=pads)


def _pooling(how: str, *, wrong: bool) -> Way:
    model, batching = {**AUTO, "pooling": how}, {"bucketing": False, "sort": "collate"}
    kind = "wrong" if wrong else "pooling"
    return Way(kind, {"model": model, "batching": batching}, pads=wrong)


SORTED_BEFORE = {"batching": {"sort": "collate"}}
AUTO = {"engine": "auto", "unroll": "packed"}
WAYS = {
    "native": _engine("native"),
    "fused": _engine("fused"),
    "torch": _engine("torch"),
    "unroll-padded": _unroll("padded"),
    "unroll-masked": _unroll("masked"),
    "sort-in-module": Way("option", {"model": AUTO, "batching": {"sort": "module"}}),
    "random-batches": Way("option", {"model": AUTO, "batching": {"bucketing": False}}),
    "padded-sorted": _recipe(bucketing=True, pads=True),
    "padded-sorted-mask": _recipe(bucketing=True, pads=True),
    "padded": _recipe(bucketing=False, pads=True),
    "packed-sorted": _recipe(bucketing=True, pads=False),
    "packed": _recipe(bucketing=False, pads=False),
    "last-of-padding": _pooling("last", wrong=True),
    "last-valid": _pooling("last", wrong=False),
    "mean-over-padding": _pooling("mean", wrong=True),
    "mean-valid": _pooling("mean", wrong=False),
}
"""Packed recipes take the last valid state from h_n, padded ones gather it at length - 1 or, by
name, find it with a last-step mask. "sorted": batches of like length, else random ones. The wrong
ways take the state after a padded row's last step, and the mean of all its steps."""


def ways_for(config: Config) -> list[str]:
    """Return the names of all ways but those that a config is already, or has no use for."""
    left_out = {f"{config.model.pooling}-valid"}
    if not config.batching.bucketing:
        left_out.add("random-batches")
    if config.model.pooling != "last":
        left_out.add("padded-sorted-mask")
    return [name for name in WAYS if name not in left_out]


def usual_engine(config: Config, device: torch.device) -> str:
    """Return the engine that model.engine: auto takes for a config's cell, packed."""
    return choose_engine(config.model.model_copy(update=AUTO), device).name


def why_left_out(name: str, config: Config, device: torch.device) -> str:
    """Return in one line why a way can't run a config here; empty where it can."""
    way = WAYS[name]
    if way.kind == "recipe":
        return ""
    if way.kind == "wrong" and config.model.initial_state == "carried":
        return "with model.initial_state: carried, the next row would start from the padding"
    changed = way.config(config)
    for _, problem in model_faults(changed.model.model_dump()):
        return problem
    for section, key, problem in joint_faults(changed.model_dump()):
        return f"{section}.{key}: {problem}"
    try:
        choose_engine(changed.model, device)
    except ConfigError as error:
        return str(error)
    return ""
