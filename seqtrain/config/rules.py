"""Rules between keys of a config: combinations that are refused.

A key is written as `section.key`, such as "training.lr".
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from seqtrain.config.document import brief, flow
from seqtrain.metrics import MONITORED
from seqtrain.tables.formats import (
    FILE,
    FORMATS,
    IN_MEMORY,
    columns_of_format,
    formats_holding,
    holds,
    names_of,
    resolve_format,
)
from seqtrain.tables.other_programs import advice as advice_on
from seqtrain.text import one_of

if TYPE_CHECKING:
    from seqtrain.config.schema import Config

Problems: TypeAlias = "Iterator[tuple[str, str]]"
"""Problems of a config: pairs of the key that is wrong, and the message."""
Condition: TypeAlias = "tuple[str, ...] | bool"
"""Condition on the value of a key: it is one of these values, or `SET`, or `DEFAULT`."""

KINDS_OF_KEYS: dict[str, tuple[str, ...]] = {
    "data.id": ("text", "steps"),
    "data.order": ("text", "steps"),
    "data.window": ("steps",),
    "data.number_bins": ("steps",),
    "data.symbol_separator": ("tokens",),
    "data.standardize": ("features", "steps"),
    "model.freeze": ("text", "tokens"),
    "model.kernels": ("features", "steps"),
    "model.ngrams": ("text", "tokens", "steps"),
    "model.pretrained": ("text",),
    "model.subwords": ("text", "tokens"),
    "model.trees": ("tokens", "features", "steps"),
    "model.vectors": ("text", "tokens"),
    "training.augment": ("features", "steps"),
    "pretraining.objective": ("text", "tokens"),
}
"""Maps each key that some kinds of sequences don't have to the values of data.kind that have it."""
SET, DEFAULT = True, False
"""Conditions: the value isn't the default of the key, or it is the default."""
READS_BACKWARD = "it reads from the end; set model.bidirectional to false"
CHANGES_LAST_STATE = "it changes the last state; set model.unroll to packed"
NO_WORDS = "expected null: no tokens are words"
NO_REFIT = "refit doesn't support it; expected false"
CONFLICTS: tuple[tuple[str, Condition, str, Condition, str], ...] = (
    ("data.kind", ("text", "tokens", "features"), "data.steps", SET, "expected steps or auto"),
    ("data.kind", ("steps",), "data.steps", DEFAULT, "name the columns in data.steps"),
    ("data.order", SET, "data.id", DEFAULT, "it sorts the rows of an id; expected null"),
    ("data.window", SET, "data.id", DEFAULT, "expected null"),
    ("data.missing", ("last",), "data.steps", DEFAULT, "expected mask"),
    ("data.missing", ("last",), "data.standardize", SET, "expected mask"),
    ("model.subwords", SET, "data.tokenizer", ("char", "byte", "bpe"), NO_WORDS),
    ("model.vectors", SET, "data.tokenizer", ("byte", "bpe"), NO_WORDS),
    ("model.engine", ("native",), "model.unroll", SET, "expected auto or torch"),
    ("model.initial_state", ("carried",), "data.group", DEFAULT, "name its column in data.group"),
    ("model.initial_state", ("carried",), "model.bidirectional", SET, READS_BACKWARD),
    ("model.initial_state", ("carried",), "model.unroll", ("padded",), CHANGES_LAST_STATE),
    ("training.bptt", SET, "model.bidirectional", SET, READS_BACKWARD),
    ("training.bptt", SET, "model.unroll", ("padded",), CHANGES_LAST_STATE),
    (
        "training.logit_adjustment",
        SET,
        "data.label_separator",
        SET,
        "multi-label tasks have thresholds instead; expected 0.0",
    ),
    ("training.refit", SET, "model.initial_state", ("carried",), NO_REFIT),
    ("training.refit", SET, "data.validation", DEFAULT, "no row is left to add; expected false"),
    ("training.refit", SET, "pretraining.objective", SET, NO_REFIT),
    ("training.refit", SET, "training.schedule", ("plateau",), NO_REFIT),
    (
        "pretraining.objective",
        SET,
        "model.convolutions",
        SET,
        "convolutions merge time steps; expected null",
    ),
)
"""Pairs of values that are refused: a key, its condition, another key, its condition, and advice.

The message names both keys and their values, and the advice.
"""


NEED_VALIDATION: dict[str, Condition] = {
    "training.monitor": tuple(x for x in MONITORED if x not in ("accuracy", "loss")),
    "training.min_delta": SET,
    "training.thresholds": ("one",),
}
"""Keys that have no effect without a validation split, and their values that say so."""


def without_effect(config: Config) -> list[str]:
    """Return the keys with their values that have no effect without a validation split."""
    return [
        f"{key}: {flow(config.value(key))}"
        for key, condition in NEED_VALIDATION.items()
        if _holds(config, key, condition)
    ]


def broken_rules(config: Config) -> Problems:
    """Yield the problems of a config whose values are valid one by one."""
    yield from _conflicts(config)
    yield from _problems_of_columns(config)
    yield from _problems_of_steps(config)
    yield from _problems_of_ngrams(config)
    yield from _problems_of_files(config)
    validation = config.data.validation
    test = config.data.test
    if isinstance(validation, float) and isinstance(test, float) and validation + test >= 1:
        yield (
            "data.test",
            (
                f"found {test:g}; with data.validation: {validation:g} no row is left to train on; "
                f"expected a number below {1 - validation:g}"
            ),
        )


def _default(config: Config, key: str) -> Any:
    """Return the default of a key."""
    section, _, name = key.partition(".")
    return type(getattr(config, section)).model_fields[name].default


def _holds(config: Config, key: str, condition: Condition) -> bool:
    """Return True if the value of a key satisfies a condition."""
    value = config.value(key)
    if isinstance(condition, bool):
        return (value != _default(config, key)) is condition
    return value in condition


def _conflicts(config: Config) -> Problems:
    """Yield a problem for each key that data.kind doesn't have, and for each of `CONFLICTS`."""
    kind = config.data.kind
    for key, kinds in KINDS_OF_KEYS.items():
        if kind not in kinds and _holds(config, key, SET):
            found = f"found {brief(config.value(key))}, but data.kind is {kind}"
            advice = f"expected {brief(_default(config, key))}".replace("'", "")
            if "steps" in kinds and "text" in kinds and "ngrams" not in key:
                advice = "name the columns of a time step in data.steps, or data.kind: text"
            elif kinds == ("steps",):
                advice = "name the columns of a time step in data.steps"
            yield key, f"{found}; {advice}"
    for key, condition, other, of_other, advice in CONFLICTS:
        if _holds(config, key, condition) and _holds(config, other, of_other):
            found = f"found {brief(config.value(key))}, but {other} is {brief(config.value(other))}"
            yield key, f"{found}; {advice}"
    model = config.model
    objective = config.pretraining.objective
    if objective == "language_model" and model.bidirectional and model.num_layers > 1:
        found = f"found {objective}, but {model.num_layers} bidirectional layers see the next token"
        yield "pretraining.objective", f"{found}; expected autoencoder"


def _problems_of_columns(config: Config) -> Problems:
    """Yield a problem for each column that has more than one role, or one role twice."""
    roles: dict[object, str] = {}
    for key in ("data.sequence", "data.label", "data.id", "data.steps", "data.static"):
        names = config.value(key)
        for name in names if isinstance(names, list | dict) else [names]:
            if name is not None and name in roles:
                yield (
                    key,
                    f"found {brief(name)}, which is in {roles[name]}, too; expected another column",
                )
            roles[name] = key

    is_wide = config.data.kind == "features" and config.data.sequence is None
    known = {*map(str, roles), "label", "*"}
    order = config.data.order if isinstance(config.data.order, list) else [config.data.order]
    known |= set(map(str, (*order, config.data.group, config.data.weight)))
    for key in ("data.na_values", "data.units"):
        for name in config.value(key) or ():
            if name not in known and not is_wide:
                yield key, f"found {brief(name)}, which no other key names"


def _token_columns(config: Config) -> list[str]:
    """Return the names of the token columns of data.steps."""
    return [name for name, kind in (config.data.steps or {}).items() if "token" in kind]


def _problems_of_steps(config: Config) -> Problems:
    """Yield the problems of data.steps, and of keys that need numbers or no tokens there."""
    data = config.data
    tokens = _token_columns(config)
    steps: dict[str, Any] = dict(data.steps or {})
    if steps and data.id is not None and data.sequence is not None:
        found = f"found {brief(data.sequence)}, but data.id is {brief(data.id)}"
        yield "data.sequence", f"{found}; data.steps takes its place, so leave it out"
    if steps and len(tokens) == len(steps):
        for key, default in (("data.standardize", "train"), ("data.missing", "mask")):
            if config.value(key) not in ("train", "error", "mask"):
                yield key, f"data.steps has no column of numbers; expected {default}"
    for key, default in (("model.kernels", "false"), ("training.augment", "null")):
        if tokens and config.value(key):
            yield key, f"data.steps has a column of tokens; expected {default}"
    for name, kind in steps.items():
        if kind == "order" and data.order is None:
            yield (
                "data.steps",
                f"found {name}: order, but data.order is null; name the column there",
            )
        if "by" in kind and kind["by"] not in tokens:
            found = f"{name}: by: found {brief(kind['by'])}, which is no column of tokens here"
            yield "data.steps", f"{found}; expected {one_of(tokens or ['number'])}"
        if "by" in kind and data.missing == "last":
            found = f"found last, but the meaning of {name} depends on a token (by)"
            yield "data.missing", f"{found}; expected mask"


def _problems_of_ngrams(config: Config) -> Problems:
    """Yield a problem for model.ngrams if it doesn't fit the token columns of data.steps.

    A mapping may name any of the token columns. A list is allowed if there is a single token
    column, and without data.steps.
    """
    sizes = config.model.ngrams
    tokens = _token_columns(config)
    if isinstance(sizes, dict):
        for name in sizes:
            if name not in tokens:
                found = f"found {brief(name)}, which is no column of tokens in data.steps"
                yield "model.ngrams", f"{found}; expected {one_of(tokens or ['null'])}"
    elif sizes is not None and config.data.steps and len(tokens) != 1:
        found = f"data.steps has {len(tokens)} columns of tokens"
        yield "model.ngrams", f"{found}; expected null or {{column: {brief(sizes)}}}"


def _problems_of_files(config: Config) -> Problems:
    """Yield the problems of data files: unknown formats, and formats that don't fit other keys.

    pretraining.data may have files of two or more formats.
    """
    keys: dict[str, str] = {}
    for key in ("data.train", "data.validation", "data.test", "pretraining.data"):
        names = names_of(config.value(key))
        formats = {resolve_format(name, config.data.format) or "": name for name in names}
        unknown = formats.get("")
        if unknown is not None:
            usual = one_of([each.endings[0] for each in FORMATS.values() if each.endings])
            if key in ("data.validation", "data.test"):
                fraction = "a fraction such as 0.1, "
            else:
                fraction = ""
            advice = f"expected {fraction}an ending such as {usual}, or set data.format"
            lines = advice_on(unknown)
            if lines:
                advice = lines[0]
            if len(lines) > 1:
                advice += f" {shlex.join(['seqtrain', 'init', unknown])} prints the command"
            yield key, f"found {brief(unknown)}; {advice}"
        elif key != "pretraining.data":
            if len(formats) > 1:
                found = " and ".join(f"{brief(formats[name])} ({name})" for name in formats)
                yield key, f"found {found}; expected files of one format, or set data.format"
            keys = dict.fromkeys(formats, key) | keys
    yield from _problems_of_formats(config, keys)


def _problems_of_id(config: Config, format: str, key: str) -> Problems:
    """Yield a problem for an id of files whose rows are whole sequences.

    Args:
        config: The config.
        format: The format of the files.
        key: The key with such a file.
    """
    id = config.data.id
    if id is None or (format == "txt" and id == FILE):  # a file is a row
        return
    expected = f"null or {FILE}" if format == "txt" else "null"
    found = f"found {brief(id)}, but each row of {key} ({format}) is a sequence"
    yield "data.id", f"{found}; expected {expected}"


def _problems_of_formats(config: Config, keys: dict[str, str]) -> Problems:
    """Yield a problem for each format of data files that doesn't fit other keys.

    Args:
        config: The config.
        keys: Maps each format to the first key with such a file.
    """
    data = config.data
    kind = config.data.kind
    for format, key in keys.items():
        if kind != "steps" and not holds(format, kind):
            found = f"found {kind}, but {key} is {format}"
            yield "data.kind", f"{found}; {kind} can be in {one_of(formats_holding(kind))}"
        gives_columns = data.path is not None or data.join is not None
        if data.steps is not None and holds(format, "steps"):
            gives_columns = True
        for name in ("data.group", "data.id", "data.steps", "data.static"):
            is_needless = gives_columns or columns_of_format(format) != "none"
            if config.value(name) is not None and not is_needless:
                found = f"{key} is {format}, which has no columns"
                yield name, f"{found}; expected null, or {one_of(formats_holding('steps'))}"
        if columns_of_format(format) == "none" and not holds(format, "steps"):
            yield from _problems_of_id(config, format, key)
    tables = [format for format in keys if columns_of_format(format) != "none"]
    if tables:
        missing = f"missing; expected a column name or index (format {tables[0]})"
    else:
        missing = ""
    if tables and data.label is None:
        yield "data.label", missing
    # In delimited text and in memory, all columns but those with other roles are series of numbers.
    is_wide = kind == "features" and all(
        format == IN_MEMORY or columns_of_format(format) == "delimited" for format in tables
    )
    if tables and data.sequence is None and data.steps is None and not is_wide:
        yield "data.sequence", missing
    if data.steps is not None and data.id is None and data.sequence is None:
        yield (
            "data.steps",
            f"found {brief(data.steps)}, but data.id is null; name the column of the sequence id "
            "in data.id, or that of lists of objects in data.sequence",
        )
