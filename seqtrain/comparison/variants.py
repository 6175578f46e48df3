"""The variants that `compare` sets side by side, each as changes of the config."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from seqtrain.config import Config, config_from_mapping
from seqtrain.errors import ConfigError
from seqtrain.model.engines.choice import choose_engine

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
        model = config.model.model_copy(update=dict(self.model))
        batching = config.batching.model_copy(update=dict(self.batching))
        return config.model_copy(update={"model": model, "batching": batching})

    def setting(self, config: Config) -> str:
        """Return the keys to change in a config to have it; of a recipe none."""
        sections = (("model", self.model), ("batching", self.batching))
        return ", ".join(
            f"{section}.{key}: {str(value).lower()}"
            for section, changes in sections
            for key, value in changes.items()
            if getattr(getattr(config, section), key) != value and self.kind != "recipe"
        )


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
    chosen = {name: variant for name, variant in VARIANTS.items() if name not in left_out}
    return {name: _why_not(variant, config, device) for name, variant in chosen.items()}


def usual_engine(config: Config, device: torch.device) -> str:
    """Return the engine that model.engine: auto takes for a config's cell, packed."""
    return choose_engine(config.model.model_copy(update=AUTO), device).name


def _why_not(variant: Variant, config: Config, device: torch.device) -> str:
    if variant.kind == "recipe":
        return ""
    if variant.kind == "wrong" and config.model.initial_state == "carried":
        return "with model.initial_state: carried, the next row would start from the padding"
    changed = variant.config(config)
    try:
        config_from_mapping(changed.model_dump())
        choose_engine(changed.model, device)
    except ConfigError as error:
        return str(error)
    return ""
