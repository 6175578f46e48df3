"""Search space: the values that a search tries for each key of a config. Imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from seqtrain.config import Config, config_from_mapping, values_by_key
from seqtrain.config.document import flow
from seqtrain.errors import ConfigError
from seqtrain.sequences.schema import token_columns

LOGARITHMIC = 10
"""Smallest ratio of high to low of a range that is searched on a logarithmic scale."""
FIXED = {
    "data.train",
    "data.validation",
    "data.test",
    "data.format",
    "data.header",
    "data.quoting",
    "data.delimiter",
    "data.kind",
    "data.sequence",
    "data.label",
    "data.group",
    "data.empty",
    "data.bad_rows",
    "data.encoding",
    "training.monitor",
    "training.refit",
    "training.device",
    "data.id",
    "training.checkpoint_every",
}
"""Keys that a search can't change.

Most of them decide which rows are scored and how, so that scores couldn't be compared. The device
and the interval of checkpoints have no effect on scores.
"""
TUNED = ("data", "batching", "model", "training", "pretraining")
"""Sections of a config whose other keys a search can change."""


@dataclass(frozen=True)
class ValueRange:
    """Range of numbers that a search tries.

    Attributes:
        low: Smallest number.
        high: Largest number.
        whole: True if only whole numbers are tried.
    """

    low: float
    high: float
    whole: bool


Space: TypeAlias = dict[str, ValueRange | list[Any]]
"""Maps each key, such as "model.dropout", to the values to try: a range or a list of values."""

DROPOUTS = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
EVERY_KIND: dict[str, list[Any]] = {
    "model.hidden_size": [64, 128, 192, 256],
    "model.bidirectional": [False, True],
    "model.pooling": ["last", "max", "attention", ["last", "mean", "max"]],
    "model.dropout": DROPOUTS,
    "batching.batch_size": [16, 32, 64, 128],
    "training.label_smoothing": [0.0, 0.1],
}
TOKEN_VALUES: dict[str, list[Any]] = {
    "model.embedding_dim": [32, 64, 128, 200, 300],
    "model.embedding_std": [0.1, 0.3, 1.0],
    "model.embedding_dropout": DROPOUTS,
}
WORD_VALUES: dict[str, list[Any]] = {
    "data.min_count": [1, 2, 3],
    "model.ngrams": [None, [1, 2], [1, 3]],
    "model.subwords": [None, [3, 5], [2, 6]],
}
VALUES_BY_KIND: dict[str, dict[str, list[Any]]] = {
    "words": {**TOKEN_VALUES, **WORD_VALUES},
    "characters": {**TOKEN_VALUES, "model.ngrams": [None, [1, 3], [1, 4], [1, 5], [1, 6]]},
    "symbols": {**TOKEN_VALUES, "model.ngrams": [None, [1, 2], [1, 3], [1, 6]]},
    "features": {
        "data.standardize": ["train", "series", "both"],
        "model.embedding_dim": [16, 32, 64, 128],
        "model.kernels": [False, True],
        "model.convolutions": [None, [[32, 7, 2]], [[32, 7, 2], [64, 5, 2]]],
        "training.augment": [None, {"shift": 0.1}, {"shift": 0.3}, {"slice": 0.2}],
    },
}
"""Maps each kind of data to values to try, in addition to EVERY_KIND and the learning rate."""


def kind_of(config: Config) -> str:
    """Return the kind of a config's sequences, a key of VALUES_BY_KIND.

    Tables with a row per time step (data.kind: steps) count as symbols.
    """
    data = config.data
    if data.kind != "text":
        if data.kind == "features":
            return "features"
        return "symbols"
    if data.tokenizer in ("char", "byte"):
        return "characters"
    return "words"


def space_of(config: Config) -> Space:
    """Return the search space of a config.

    It is built in this order:

    - Learning rates from a fifth to three times the config's own rate.
    - The values in EVERY_KIND, and in VALUES_BY_KIND for the config's kind of data. Values that
      conflict with other keys of the config are left out.
    - Without batching.batch_size if batching.max_tokens is set, and without model.embedding_dim if
      model.vectors is set.
    - The keys of `tune.space`, which are added or replace earlier values. A key with null is
      removed.
    - The config's own value of each key is added to its list or range.
    - Lists with a single value are left out.

    Raises:
        ConfigError: If tune.space has a key that a search can't change, or a value that the config
            can't have.
    """
    lr = config.training.lr
    space: Space = {"training.lr": ValueRange(rounded(lr / 5), rounded(lr * 3), whole=False)}
    columns = token_columns(config.data.steps)
    tried = {**EVERY_KIND, **VALUES_BY_KIND[kind_of(config)]}
    if len(columns) > 1:
        tried["model.ngrams"] = [None, *(dict.fromkeys(columns, x) for x in ([1, 1], [1, 2]))]
    for key, values in tried.items():
        space[key] = [value for value in values if not _problems(config, key, value)]
    if config.batching.max_tokens is not None:
        del space["batching.batch_size"]
    if config.model.vectors is not None:
        space.pop("model.embedding_dim", None)  # the file says it
    for key, searched in (config.tune.space or {}).items():
        space.pop(key, None)
        if searched is not None:
            space[key] = _checked_values(config, key, searched)
    for key, each in space.items():
        own = values_by_key(config)[key]
        if isinstance(each, list):
            if flow(own) in map(flow, each):
                space[key] = each
            else:
                space[key] = [own, *each]
        elif not isinstance(own, bool) and isinstance(own, int | float):
            space[key] = ValueRange(min(each.low, own), max(each.high, own), each.whole)
    return {key: t for key, t in space.items() if isinstance(t, ValueRange) or len(t) > 1}


def value_of_choice(tried: ValueRange | list[Any], chosen: Any, own: Any) -> Any:
    """Return the value of a key that Optuna chose, converted from the form that Optuna uses.

    A number of a range is rounded to three significant digits, within the limits of the range.
    Whole numbers, and a number that equals `own`, aren't rounded.

    Args:
        tried: Values to try for the key.
        chosen: Optuna's choice: a number of the range, or a value of the list as YAML text.
        own: Value of the key in the config that is tuned.
    """
    if isinstance(tried, list):
        return next(value for value in tried if flow(value) == chosen)
    is_exact = tried.whole or chosen == own
    if is_exact:
        return chosen
    return min(max(rounded(chosen), tried.low), tried.high)


def changed(config: Config, settings: Mapping[str, Any]) -> Config:
    """Return a copy of a config with other values at some keys.

    Args:
        config: The config. It doesn't change.
        settings: Maps keys, such as "model.dropout", to their new values.

    Raises:
        ConfigError: If a key is unknown, or the config can't have these values.
    """
    mapping = config.model_dump(exclude_unset=True)
    for key, value in settings.items():
        section, _, name = key.partition(".")
        mapping.setdefault(section, {})[name] = value
    return config_from_mapping(mapping)


def differing(config: Config, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of `settings` whose values differ from the values in a config.

    Args:
        config: The config.
        settings: Maps keys, such as "model.dropout", to values.
    """
    own = values_by_key(config)
    return {key: value for key, value in settings.items() if flow(value) != flow(own[key])}


def rounded(value: float) -> float:
    """Return a number rounded to three significant digits."""
    return float(f"{value:.3g}")


def _problems(config: Config, key: str, value: Any) -> tuple[str, ...]:
    """Return the messages about a wrong value of a key, or an empty tuple if the value is valid."""
    try:
        changed(config, {key: value})
    except ConfigError as error:
        return error.problems
    return ()


def _checked_values(
    config: Config, key: str, searched: list[Any] | Mapping[str, Any]
) -> ValueRange | list[Any]:
    """Return the values to try for a key of `tune.space`, after checking them.

    Args:
        config: The config that is tuned.
        key: The key, such as "model.dropout".
        searched: Value of the key in `tune.space`: a list, or a mapping with "low" and "high".

    Raises:
        ConfigError: If a search can't change the key, if the config can't have one of the values,
            or if low isn't below high.
    """
    if key in FIXED or key.partition(".")[0] not in TUNED:
        raise ConfigError(
            f"tune.space: {key}: a search can't change this key, as scores couldn't be compared; "
            "remove it"
        )
    values = list(searched)
    whole = False
    if isinstance(searched, dict):
        values = [searched["low"], searched["high"]]
        if values[0] >= values[1]:
            raise ConfigError(f"tune.space: {key}: found low {values[0]:g}, not below high")
        whole = all(float(value).is_integer() for value in values)
        whole = whole and bool(_problems(config, key, values[0] + 0.5))
        values = [int(value) if whole else float(value) for value in values]
    for value in values:
        if problems := _problems(config, key, value):
            raise ConfigError(*(f"tune.space: {line}" for line in problems))
    if isinstance(searched, dict):
        return ValueRange(values[0], values[1], whole)
    return values
