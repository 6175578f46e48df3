"""Search space: the values that a search tries, by key, for each kind of data (no torch)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from seqtrain.config import Config, config_from_mapping, values_by_key
from seqtrain.config.document import flow
from seqtrain.data.read_options import token_columns
from seqtrain.errors import ConfigError

LOGARITHMIC = 10
"""Ratio of high to low from which a range is searched on a logarithmic scale."""
FIXED = {
    *("data.train", "data.validation", "data.test", "data.format", "data.header", "data.quoting"),
    *("data.delimiter", "data.kind", "data.sequence", "data.label", "data.group", "data.empty"),
    *("data.bad_rows", "data.encoding", "training.monitor", "training.refit", "training.device"),
    *("data.id", "training.checkpoint_every"),
}
"""Keys that decide which rows are scored, and how: trials that differ in them can't be compared."""
TUNED = ("data", "batching", "model", "training", "pretraining")


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both included; only whole numbers if `whole` is True."""

    low: float
    high: float
    whole: bool


Space: TypeAlias = dict[str, Range | list[Any]]
"""Values to try by `section.key`: a range, or a list."""

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
        "model.kernels": [False, True],
        "model.convolutions": [None, [[32, 7, 2]], [[32, 7, 2], [64, 5, 2]]],
        "training.augment": [None, {"shift": 0.1}, {"shift": 0.3}, {"slice": 0.2}],
    },
}
"""Values to try for each kind of data, in addition to EVERY_KIND and the learning rate."""


def kind_of(config: Config) -> str:
    """Return the key in KINDS of a config's sequences."""
    data = config.data
    if data.kind != "text":
        return "features" if data.kind == "features" else "symbols"
    return "characters" if data.tokenizer in ("char", "byte") else "words"


def space_of(config: Config) -> Space:
    """Return the values that a search tries for a config, by key.

    They are the values for the kind of data, as `tune.space` changes them. A value that conflicts
    with the rest of the config is left out. The value of the config itself is always included.

    Raises:
        ConfigError: If tune.space has a key or a value that the config can't take.
    """
    lr = config.training.lr
    space: Space = {"training.lr": Range(rounded(lr / 5), rounded(lr * 3), whole=False)}
    columns = token_columns(config.data.steps)
    tried = {**EVERY_KIND, **KINDS[kind_of(config)]}
    if len(columns) > 1:
        tried["model.ngrams"] = [None, *(dict.fromkeys(columns, x) for x in ([1, 1], [1, 2]))]
    for key, values in tried.items():
        space[key] = [value for value in values if not _problems(config, key, value)]
    if config.batching.max_tokens is not None:
        del space["batching.batch_size"]
    if config.model.vectors is not None:
        space.pop("model.embedding_dim", None)  # the file says it
    for key, wanted in (config.tune.space or {}).items():
        space.pop(key, None)
        if wanted is not None:
            space[key] = _given(config, key, wanted)
    for key, each in space.items():
        own = values_by_key(config)[key]
        if isinstance(each, list):
            space[key] = each if flow(own) in map(flow, each) else [own, *each]
        elif not isinstance(own, bool) and isinstance(own, int | float):
            space[key] = Range(min(each.low, own), max(each.high, own), each.whole)
    return {key: t for key, t in space.items() if isinstance(t, Range) or len(t) > 1}


def setting(tried: Range | list[Any], chosen: Any, own: Any) -> Any:
    """Return the value of a key that belongs to a choice of Optuna.

    Args:
        tried: Values to try for the key.
        chosen: Optuna's choice: a number of the range, or a value of the list as YAML text.
        own: Value of the config. Any other number of a range is rounded to three digits.
    """
    if isinstance(tried, list):
        return next(value for value in tried if flow(value) == chosen)
    is_exact = tried.whole or chosen == own
    return chosen if is_exact else min(max(rounded(chosen), tried.low), tried.high)


def changed(config: Config, settings: Mapping[str, Any]) -> Config:
    """Return a config with other values at some keys.

    Raises:
        ConfigError: If the config can't have these values.
    """
    mapping = config.model_dump(exclude_unset=True)
    for key, value in settings.items():
        section, _, name = key.partition(".")
        mapping.setdefault(section, {})[name] = value
    return config_from_mapping(mapping)


def differing(config: Config, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings whose values differ from those in the config."""
    own = values_by_key(config)
    return {key: value for key, value in settings.items() if flow(value) != flow(own[key])}


def rounded(value: float) -> float:
    """Return a number rounded to three digits."""
    return float(f"{value:.3g}")


def _problems(config: Config, key: str, value: Any) -> tuple[str, ...]:
    """Return why a config can't have a value at a key, or an empty tuple if it can."""
    try:
        changed(config, {key: value})
    except ConfigError as error:
        return error.problems
    return ()


def _given(config: Config, key: str, wanted: list[Any] | Mapping[Any, float]) -> Range | list[Any]:
    """Return the values that `tune.space` gives a key.

    Raises:
        ConfigError: If trials with other values of the key can't be compared, or the config can't
            take one of the values.
    """
    if key in FIXED or key.partition(".")[0] not in TUNED:
        raise ConfigError(f"tune.space: {key}: trials that differ in it can't be compared")
    values, whole = list(wanted), False
    if isinstance(wanted, dict):
        values = [wanted["low"], wanted["high"]]
        if values[0] >= values[1]:
            raise ConfigError(f"tune.space: {key}: found low {values[0]:g}, not below high")
        whole = all(float(value).is_integer() for value in values)
        whole = whole and bool(_problems(config, key, values[0] + 0.5))
        values = [int(value) if whole else float(value) for value in values]
    for value in values:
        if problems := _problems(config, key, value):
            raise ConfigError(*(f"tune.space: {line}" for line in problems))
    return Range(values[0], values[1], whole) if isinstance(wanted, dict) else values
