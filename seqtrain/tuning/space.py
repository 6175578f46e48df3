"""The values that a search may try: by key, for each kind of data. Free of torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from seqtrain.config import Config, config_from_mapping
from seqtrain.config.document import flow
from seqtrain.errors import ConfigError

LOGARITHMIC = 10
"""A range whose ends differ by this factor or more is searched by factors, not by differences."""
ROWS_OF_DATA = (
    *("train", "validation", "test", "format", "header", "quoting", "delimiter", "kind"),
    *("sequence", "label", "group", "empty", "bad_rows"),
)
FIXED = {
    *(f"data.{name}" for name in ROWS_OF_DATA),
    *("training.monitor", "training.refit", "training.device", "training.checkpoint_every"),
}
"""Keys that decide which rows are scored, and how: trials that differ in them can't be compared."""
TUNED = ("data", "batching", "model", "training", "pretraining")


@dataclass(frozen=True)
class Range:
    """Numbers from low to high.

    Attributes:
        low, high: both included.
        whole: whole numbers alone.
    """

    low: float
    high: float
    whole: bool

    @property
    def logarithmic(self) -> bool:
        """Whether it is searched by factors."""
        return self.low > 0 and self.high / self.low >= LOGARITHMIC

    def holds(self, value: object) -> bool:
        """Whether a value lies in it."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and self.low <= float(str(value)) <= self.high


@dataclass(frozen=True)
class Choices:
    """A few values, told apart by how YAML writes them."""

    values: tuple[Any, ...]

    def holds(self, value: object) -> bool:
        """Whether a value is one of them."""
        return flow(value) in map(flow, self.values)


Space: TypeAlias = dict[str, Range | Choices]
"""What may be tried, by `section.key`."""

DROPOUTS = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
EVERY_KIND: dict[str, list[Any]] = {
    "model.hidden_size": [64, 128, 192, 256],
    "model.bidirectional": [False, True],
    "model.pooling": ["last", "max", "attention", ["last", "mean", "max"]],
    "model.dropout": DROPOUTS,
    "batching.batch_size": [16, 32, 64, 128],
    "training.label_smoothing": [0.0, 0.1],
}
TOKENS: dict[str, list[Any]] = {
    "model.embedding_dim": [32, 64, 128, 200, 300],
    "model.embedding_std": [0.1, 0.3, 1.0],
    "model.embedding_dropout": DROPOUTS,
}
WORDS: dict[str, list[Any]] = {
    "data.min_count": [1, 2, 3],
    "model.ngrams": [None, [1, 2], [1, 3]],
    "model.subwords": [None, [3, 5], [2, 6]],
}
KINDS: dict[str, dict[str, list[Any]]] = {
    "words": {**TOKENS, **WORDS},
    "characters": {**TOKENS, "model.ngrams": [None, [1, 3], [1, 4], [1, 5], [1, 6]]},
    "symbols": {**TOKENS, "model.ngrams": [None, [1, 2], [1, 3], [1, 6]]},
    "features": {
        "data.standardize": ["train", "series", "both"],
        "model.embedding_dim": [16, 32, 64, 128],
        "model.convolutions": [None, [[32, 7, 2]], [[32, 7, 2], [64, 5, 2]]],
        "training.augment": [None, {"shift": 0.1}, {"shift": 0.3}, {"slice": 0.2}],
    },
}
"""What is tried beside EVERY_KIND and the learning rate."""


def kind_of(config: Config) -> str:
    """Return which of KINDS a config's sequences are of."""
    data = config.data
    if data.kind != "text":
        return "features" if data.kind == "features" else "symbols"
    return "characters" if data.tokenizer in ("char", "byte") else "words"


def space_of(config: Config) -> Space:
    """Return what a search may try for a config: its kind's space, changed as tune.space says.

    A value that the rest of the config doesn't go with is left out, and the config's own value is
    always among those to try.

    Raises:
        ConfigError: tune.space has a key or value that the config can't take.
    """
    lr = config.training.lr
    space: Space = {"training.lr": Range(rounded(lr / 5), rounded(lr * 3), whole=False)}
    tried = {**EVERY_KIND, **KINDS[kind_of(config)]}
    if config.model.vectors is not None:
        del tried["model.embedding_dim"]  # the file says it
    for key, values in tried.items():
        fitting = [value for value in values if _fits(config, {key: value})]
        if key != "batching.batch_size" or config.batching.max_tokens is None:
            space[key] = Choices(tuple(fitting))
    for key, wanted in (config.tune.space or {}).items():
        space.pop(key, None)
        if wanted is not None:
            space[key] = _given(config, key, wanted)
    space = {key: _with_own(tried, value_at(config, key)) for key, tried in space.items()}
    return {key: t for key, t in space.items() if isinstance(t, Range) or len(t.values) > 1}


def holds(space: Space, settings: Mapping[str, Any]) -> bool:
    """Whether settings are among those that may be tried."""
    return all(key in space and space[key].holds(value) for key, value in settings.items())


def changed(config: Config, settings: Mapping[str, Any]) -> Config:
    """Return a config with other values at some keys.

    Raises:
        ConfigError: it can't be so.
    """
    mapping: dict[str, Any] = {}
    for name in config.model_fields_set:
        section = getattr(config, name)
        mapping[name] = section if name == "seed" else section.model_dump(exclude_unset=True)
    for key, value in settings.items():
        section, _, name = key.partition(".")
        mapping.setdefault(section, {})[name] = value
    return config_from_mapping(mapping)


def differing(config: Config, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings whose values aren't the config's own."""
    return {k: v for k, v in settings.items() if flow(v) != flow(value_at(config, k))}


def value_at(config: Config, key: str) -> Any:
    """Return what a config has at a `section.key`."""
    section, _, name = key.partition(".")
    return getattr(getattr(config, section), name)


def rounded(value: float) -> float:
    """Return a number of three digits, as people write it."""
    return float(f"{value:.3g}")


def _fits(config: Config, settings: Mapping[str, Any]) -> bool:
    try:
        changed(config, settings)
    except ConfigError:
        return False
    return True


def _given(config: Config, key: str, wanted: list[Any] | Mapping[Any, float]) -> Range | Choices:
    """Check what tune.space says of a key."""
    if key in FIXED or key.partition(".")[0] not in TUNED:
        raise ConfigError(f"tune.space: {key}: trials that differ in it can't be compared")
    values = list(wanted.values()) if isinstance(wanted, dict) else wanted
    whole = all(float(v).is_integer() for v in values) if isinstance(wanted, dict) else False
    if isinstance(wanted, dict):
        if wanted["low"] >= wanted["high"]:
            raise ConfigError(f"tune.space: {key}: found low {values[0]:g}, not below high")
        whole = whole and not _fits(config, {key: wanted["low"] + 0.5})
        values = [int(value) if whole else float(value) for value in values]
    for value in values:
        try:
            changed(config, {key: value})
        except ConfigError as error:
            raise ConfigError(*(f"tune.space: {line}" for line in error.problems)) from None
    if isinstance(wanted, dict):
        return Range(wanted["low"], wanted["high"], whole)
    return Choices(tuple(values))


def _with_own(tried: Range | Choices, own: Any) -> Range | Choices:
    """Return what is tried, the config's own value included where it can be."""
    if tried.holds(own):
        return tried
    if isinstance(tried, Choices):
        return Choices((own, *tried.values))
    if isinstance(own, bool) or not isinstance(own, int | float):
        return tried
    return Range(min(tried.low, own), max(tried.high, own), tried.whole)
