"""Rules between keys of a config: combinations that are refused, and keys without effect.

A key is written as `section.key`, such as "training.lr".
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from seqtrain.config.document import brief
from seqtrain.tables.formats import (
    FORMATS,
    IN_MEMORY,
    columns_of_format,
    formats_holding,
    holds,
    names_of,
    resolve_format,
)
from seqtrain.tables.formats import (
    advice as advice_on,
)
from seqtrain.text import one_of

if TYPE_CHECKING:
    from seqtrain.config.schema import Config

Problems: TypeAlias = "Iterator[tuple[str, str]]"
"""Problems of a config: pairs of the key that is wrong, and the message."""
Condition: TypeAlias = "tuple[str, ...] | bool"
"""Condition on the value of a key: it is one of these values, or `SET`, or `DEFAULT`."""
Conflict: TypeAlias = "tuple[str, Condition, dict[str, Condition], str]"
"""A conflict: a key, its condition, conditions on other keys, and advice for the message."""
Rule: TypeAlias = "Callable[[Config], Problems]"
"""Function that yields the problems of a config whose values are valid one by one."""

RULES: list[Rule] = []
"""All rules, in the order of this module."""
FILES = ("data.train", "data.validation", "data.test")
SET, DEFAULT = True, False
"""Conditions: the value isn't the default of the key, or it is the default."""
TEXTS = ("text", "tokens")
"""Values of data.kind for sequences of tokens from a vocabulary."""
STEPS = ("features", "steps")
"""Values of data.kind for sequences that may have numbers."""
NOT_WORDS = ("char", "byte", "bpe")
"""Tokenizers whose tokens aren't words."""
READS_BACKWARD = "it reads from the end; set model.bidirectional to false"
CHANGES_LAST_STATE = "it changes the last state; set model.unroll to packed"
NO_REFIT = "refit doesn't support it; expected false"
CONFLICTS: tuple[Conflict, ...] = (
    ("data.kind", (*TEXTS, "features"), {"data.steps": SET}, "expected steps or auto"),
    ("data.kind", ("steps",), {"data.steps": DEFAULT}, "name the columns in data.steps"),
    ("data.sequence", SET, {"data.steps": SET}, "data.steps takes its place, so leave it out"),
    ("data.id", SET, {"data.steps": DEFAULT}, "name the columns of a time step in data.steps"),
    ("data.steps", SET, {"data.id": DEFAULT}, "name the column of the sequence id in data.id"),
    ("data.order", SET, {"data.steps": DEFAULT}, "expected null"),
    ("data.window", SET, {"data.steps": DEFAULT}, "name the columns of a time step in data.steps"),
    ("data.missing", ("last",), {"data.steps": DEFAULT}, "expected mask"),
    ("data.missing", ("last",), {"data.standardize": SET}, "expected mask"),
    ("data.standardize", SET, {"data.kind": TEXTS}, "expected train"),
    ("data.number_bins", SET, {"data.kind": (*TEXTS, "features")}, "expected null"),
    ("model.kernels", SET, {"data.kind": TEXTS}, "expected false"),
    ("model.trees", SET, {"data.kind": ("text",)}, "expected false"),
    ("model.freeze", SET, {"data.kind": STEPS}, "expected false"),
    ("model.ngrams", SET, {"data.kind": ("features",)}, "expected null"),
    ("model.subwords", SET, {"data.kind": STEPS}, "expected null"),
    ("model.subwords", SET, {"data.tokenizer": NOT_WORDS}, "expected null: no tokens are words"),
    ("model.vectors", SET, {"data.kind": STEPS}, "expected null"),
    (
        "model.vectors",
        SET,
        {"data.tokenizer": ("byte", "bpe")},
        "expected null: no tokens are words",
    ),
    ("model.pretrained", SET, {"data.kind": ("tokens", *STEPS)}, "expected null"),
    ("model.engine", ("native",), {"model.unroll": SET}, "expected auto or torch"),
    (
        "model.initial_state",
        ("carried",),
        {"data.group": DEFAULT},
        "name the column of the group in data.group",
    ),
    ("model.initial_state", ("carried",), {"model.bidirectional": SET}, READS_BACKWARD),
    ("model.initial_state", ("carried",), {"model.unroll": ("padded",)}, CHANGES_LAST_STATE),
    ("training.augment", SET, {"data.kind": TEXTS}, "expected null"),
    ("training.bptt", SET, {"model.bidirectional": SET}, READS_BACKWARD),
    ("training.bptt", SET, {"model.unroll": ("padded",)}, CHANGES_LAST_STATE),
    (
        "training.logit_adjustment",
        SET,
        {"data.label_separator": SET},
        "multi-label tasks have thresholds instead; expected 0.0",
    ),
    ("training.refit", SET, {"model.initial_state": ("carried",)}, NO_REFIT),
    ("training.refit", SET, {"data.validation": DEFAULT}, "no row is left to add; expected false"),
    ("training.refit", SET, {"pretraining.objective": SET}, NO_REFIT),
    ("training.refit", SET, {"training.schedule": ("plateau",)}, NO_REFIT),
    ("pretraining.objective", SET, {"data.kind": STEPS}, "expected null"),
    (
        "pretraining.objective",
        SET,
        {"model.convolutions": SET},
        "convolutions merge time steps; expected null",
    ),
    (
        "pretraining.objective",
        ("language_model",),
        {"model.bidirectional": SET, "model.num_layers": SET},
        "these see the next token; expected autoencoder",
    ),
)
"""Conflicts between keys. A config is refused if all conditions of one of them hold.

The message names the first key and its value, the other keys and their values, and the advice.
"""
FRACTION_AS_TEXT = re.compile(r"([0-9]+),([0-9]+)|([0-9]+)(\.[0-9]+)?\s*%")
"""Pattern of texts that are probably meant as a fraction, not as a file: "0,1" and "10 %"."""
HAS_EFFECT: dict[str, Callable[[Config], bool]] = {
    "model.vectors_keep": lambda config: config.model.vectors is not None,
    "model.ngrams_spelling": lambda config: (
        config.model.ngrams is not None and config.model.subwords is not None
    ),
    "model.join": lambda config: config.model.bidirectional,
    "model.attention_size": lambda config: "attention" in config.model.pooling,
    "model.initial_scale": lambda config: config.model.initial_state == "random",
    "pretraining.data": lambda config: config.pretraining.objective is not None,
}
"""Maps each key that only refines another one to a function: True if it has an effect."""


def reset_unused_keys(config: Config) -> None:
    """Set the keys that have no effect in a config to their defaults. The config is changed."""
    for key, has_effect in HAS_EFFECT.items():
        if not has_effect(config):
            section, _, name = key.partition(".")
            getattr(config, section).__dict__[name] = _default(config, key)


def broken_rules(config: Config) -> Problems:
    """Yield the problems of a config by all rules."""
    for check in RULES:
        yield from check(config)


def _rule(check: Rule) -> Rule:
    """Decorate a function: add it to `RULES`, and return it."""
    RULES.append(check)
    return check


def _holds(config: Config, key: str, condition: Condition) -> bool:
    """Return True if the value of a key satisfies a condition."""
    value = config.value(key)
    is_set = value != _default(config, key)
    return is_set is condition if isinstance(condition, bool) else value in condition


def _default(config: Config, key: str) -> Any:
    """Return the default of a key."""
    section, _, name = key.partition(".")
    return type(getattr(config, section)).model_fields[name].default


@_rule
def _keys_go_together(config: Config) -> Problems:
    """Yield a problem for each entry of `CONFLICTS` whose conditions all hold."""
    for key, condition, others, advice in CONFLICTS:
        if all(_holds(config, each, of) for each, of in {key: condition, **others}.items()):
            causes = [f"{other} is {brief(config.value(other))}" for other in others]
            yield key, f"found {brief(config.value(key))}, but {' and '.join(causes)}; {advice}"


@_rule
def _step_columns_fit_the_model(config: Config) -> Problems:
    """Yield a problem for each key that doesn't fit the columns of data.steps.

    data.standardize needs a column of numbers. model.kernels and training.augment allow no tokens.
    """
    tokens, steps = _token_columns(config), config.data.steps or {}
    if steps and len(tokens) == len(steps) and config.data.standardize != "train":
        yield "data.standardize", "data.steps has no column of numbers; expected train"
    for key, default in (("model.kernels", "false"), ("training.augment", "null")):
        if config.value(key) and tokens:
            yield key, f"data.steps has a column of tokens; expected {default}"


@_rule
def _vectors_are_text(config: Config) -> Problems:
    """Yield a problem if model.vectors names a binary file, or a file of another kind."""
    path = config.model.vectors or ""
    problem = advice_on(path)
    if path.lower().endswith(".bin"):
        problem = "a binary file; expected text, such as a .vec file or a text file of GloVe"
    if problem is not None:
        yield "model.vectors", f"found {brief(path)}; {problem}"


@_rule
def _fractions_are_numbers(config: Config) -> Problems:
    """Yield a problem for each fraction that is written as text, such as "10 %" or "0,1"."""
    for key in ("data.validation", "data.test"):
        value = config.value(key)
        if isinstance(value, str) and _looks_like_fraction(value):
            digits = re.split("[,%]", value)
            fraction = float(digits[0]) / 100 if "%" in value else float(".".join(digits))
            yield key, f"found {brief(value)}; expected a number such as {fraction:g}, or a file"


def _looks_like_fraction(name: str) -> bool:
    """Return True if `name` is probably meant as a fraction, and there is no file of this name."""
    return bool(FRACTION_AS_TEXT.fullmatch(name)) and not os.path.exists(name)


@_rule
def _files_have_one_known_format(config: Config) -> Problems:
    """Yield a problem for each key with a file of unknown format, or with files of two formats.

    pretraining.data may have files of two or more formats.
    """
    for key in (*FILES, "pretraining.data"):
        names = [name for name in names_of(config.value(key)) if not _looks_like_fraction(name)]
        formats = {resolve_format(name, config.data.format): name for name in names}
        if None in formats:
            usual = one_of([each.endings[0] for each in FORMATS.values() if each.endings])
            expected = f"expected an ending such as {usual}, or set data.format"
            yield key, f"found {brief(formats[None])}; {advice_on(formats[None]) or expected}"
        elif len(formats) > 1 and key in FILES:
            found = ", ".join(f"{brief(name)} ({format})" for format, name in formats.items())
            yield key, f"found {found}; expected files of one format, or set data.format"


@_rule
def _formats_hold_the_kind(config: Config) -> Problems:
    """Yield a problem for each format of a data file that can't have sequences of data.kind."""
    kind = config.data.kind
    for format, key in _formats(config).items():
        if kind != "steps" and not holds(format, kind):
            kinds = one_of([x for x in ("text", "tokens", "features") if holds(format, x)])
            other = (
                f"; features are in {one_of(formats_holding(kind))}" if kind == "features" else ""
            )
            yield "data.kind", f"found {kind}, but {key} is {format}; expected {kinds}{other}"


def _formats(config: Config) -> dict[str, str]:
    """Return a dict that maps each format of a data file to the first key with such a file."""
    found: dict[str, str] = {}
    for key in FILES:
        for name in names_of(config.value(key)):
            format = resolve_format(name, config.data.format)
            if format is not None:
                found.setdefault(format, key)
    return found


@_rule
def _columns_need_a_table(config: Config) -> Problems:
    """Yield a problem for data.group, data.steps and data.static if a data file has no columns."""
    for key in ("data.group", "data.steps", "data.static"):
        for format, file in _formats(config).items():
            has_columns = columns_of_format(format) != "none" or _gives_columns(config, format)
            if config.value(key) is not None and not has_columns:
                found = f"{file} is {format}, which has no columns"
                yield key, f"{found}; expected null, or {one_of(formats_holding('steps'))}"


def _gives_columns(config: Config, format: str) -> bool:
    """Return True if files of a format without columns have some: from paths, joins, or arrays."""
    data = config.data
    is_table = data.steps is not None and holds(format, "steps")
    return is_table or data.path is not None or data.join is not None


@_rule
def _tables_need_columns(config: Config) -> Problems:
    """Yield a problem if a file is a table, but data.sequence or data.label is missing.

    data.sequence isn't needed

    - if data.steps is set,
    - if data.kind is features, and all tables are delimited text or in memory. All other columns
      are then numbers.
    """
    data = config.data
    formats = [format for format in _formats(config) if columns_of_format(format) != "none"]
    is_wide = data.kind == "features" and all(
        format == IN_MEMORY or columns_of_format(format) == "delimited" for format in formats
    )
    optional = ("data.sequence",) if is_wide or data.steps is not None else ()
    for key in ("data.sequence", "data.label"):
        if formats and config.value(key) is None and key not in optional:
            yield key, f"missing; expected a column name or index (format {formats[0]})"


@_rule
def _columns_have_one_role(config: Config) -> Problems:
    """Yield a problem for each column that has more than one role, or is twice in data.label."""
    data = config.data
    columns = data.sequence if isinstance(data.sequence, list) else [data.sequence]
    labels = data.label if isinstance(data.label, list) else [data.label]
    for label in labels:
        if label is not None and (label in columns or labels.count(label) > 1):
            used = "another time" if labels.count(label) > 1 else "in data.sequence"
            yield (
                "data.label",
                f"found {brief(label)}, which is used {used}; expected another column",
            )
    roles: dict[object, str] = {**dict.fromkeys(labels, "data.label"), data.id: "data.id"}
    if not isinstance(data.sequence, list):
        roles[data.sequence] = "data.sequence"
    for key, names in (("data.steps", data.steps or {}), ("data.static", data.static or {})):
        for name in names:
            if name in roles:
                yield key, f"found {brief(name)}, which is in {roles[name]}, too; leave it out here"
        roles |= dict.fromkeys(names, key)


@_rule
def _increase_needs_order(config: Config) -> Problems:
    """Yield a problem if a column of data.steps has the kind order, but data.order is null."""
    steps = config.data.steps or {}
    if "order" in steps.values() and config.data.order is None:
        name = next(name for name in steps if steps[name] == "order")
        yield "data.steps", f"found {name}: order, but data.order is null; name the column there"


def _token_columns(config: Config) -> list[str]:
    """Return the names of the token columns of data.steps."""
    return [name for name, kind in (config.data.steps or {}).items() if "token" in kind]


@_rule
def _numbers_depend_on_tokens(config: Config) -> Problems:
    """Yield a problem for each `by` in data.steps that doesn't name a token column."""
    kinds: dict[str, Any] = dict(config.data.steps or {})
    tokens = _token_columns(config)
    for name, kind in kinds.items():
        if "by" in kind and kind["by"] not in tokens:
            found = f"{name}: by: found {brief(kind['by'])}, which is no column of tokens here"
            yield "data.steps", f"{found}; expected {one_of(tokens) if tokens else 'number'}"


@_rule
def _only_numbers_are_carried(config: Config) -> Problems:
    """Yield a problem if data.missing is last, but the numbers don't allow it.

    This is the case if all step columns are tokens, or if a number depends on a token.
    """
    kinds: dict[str, Any] = dict(config.data.steps or {})
    if config.data.missing != "last" or not kinds:
        return
    depends = next((name for name, kind in kinds.items() if "by" in kind), None)
    if len(_token_columns(config)) == len(kinds):
        yield "data.missing", "found last, but data.steps has no column of numbers; expected mask"
    elif depends is not None:
        found = f"found last, but the meaning of {depends} depends on a token (by)"
        yield "data.missing", f"{found}; expected mask"


@_rule
def _ngrams_name_token_columns(config: Config) -> Problems:
    """Yield a problem for model.ngrams if it doesn't fit the token columns of data.steps.

    - A mapping may name any of the token columns, and no other column.
    - A list is allowed if there is a single token column.
    - Without data.steps, only a list is allowed.
    """
    sizes, steps = config.model.ngrams, config.data.steps
    if sizes is None:
        return
    if steps is None:
        if isinstance(sizes, dict):
            found = "found a mapping, but data.steps is null"
            yield "model.ngrams", f"{found}; expected [shortest, longest]"
        return
    tokens = _token_columns(config)
    if not tokens:
        yield "model.ngrams", "data.steps has no column of tokens; expected null"
    elif isinstance(sizes, list) and len(tokens) > 1:
        found = f"data.steps has {len(tokens)} columns of tokens"
        yield "model.ngrams", f"{found}; expected {{{tokens[0]}: {brief(sizes)}}}"
    elif isinstance(sizes, dict):
        for name in (name for name in sizes if name not in tokens):
            found = f"found {brief(name)}, which is no column of tokens in data.steps"
            yield "model.ngrams", f"{found}; expected {one_of(tokens)}"


@_rule
def _held_out_fractions_leave_rows(config: Config) -> Problems:
    """Yield a problem if validation and test are fractions that leave no row to train on."""
    validation, test = config.data.validation, config.data.test
    if isinstance(validation, float) and isinstance(test, float) and validation + test >= 1:
        left = f"with data.validation: {validation:g} no row is left to train on"
        yield "data.test", f"found {test:g}; {left}; expected a number below {1 - validation:g}"
