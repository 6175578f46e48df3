"""Rules between keys of a config: combinations that are refused, and keys without effect."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from seqtrain.config.document import brief
from seqtrain.files.formats import (
    FORMATS,
    IN_MEMORY,
    columns_of_format,
    formats_holding,
    holds,
    names_of,
    resolve_format,
)
from seqtrain.files.formats import (
    advice as advice_on,
)
from seqtrain.text import one_of

if TYPE_CHECKING:
    from seqtrain.config.schema import Config

Problems: TypeAlias = "Iterator[tuple[str, str]]"
"""Keys that are wrong, as `section.key`, each with the text of the problem."""
Rule: TypeAlias = "Callable[[Config], Problems]"

RULES: list[Rule] = []
"""All rules. Each receives a config whose values are valid one by one."""
FILES = ("data.train", "data.validation", "data.test")
NUMBERS, STEPS = ("features",), ("features", "steps")
UNSUPPORTED_KINDS = {
    "data.standardize": (("text", "tokens"), "train"),
    "data.number_bins": (("text", "tokens", "features"), "null"),
    "training.augment": (("text", "tokens"), "null"),
    "model.kernels": (("text", "tokens"), "false"),
    "model.trees": (("text",), "false"),
    "model.freeze": (STEPS, "false"),
    "model.ngrams": (NUMBERS, "null"),
    "model.subwords": (STEPS, "null"),
    "model.vectors": (STEPS, "null"),
    "pretraining.objective": (STEPS, "null"),
}
"""Kinds of sequences for which a key must keep its default, and that default."""
REQUIRED = {
    "data.id": ("data.steps", "name the columns of a time step in data.steps"),
    "data.steps": ("data.id", "name the column of the sequence id in data.id"),
    "data.order": ("data.steps", "expected null"),
    "model.initial_state": ("data.group", "name the column of the group in data.group"),
}
"""Keys that need another one, and the advice if that one is missing."""
NOT_WORDS = {"model.subwords": ("char", "byte", "bpe"), "model.vectors": ("byte", "bpe")}
"""Tokenizers whose tokens are no words, by the key that needs words."""
FRACTION_AS_TEXT = re.compile(r"([0-9]+),([0-9]+)|([0-9]+)(\.[0-9]+)?\s*%")
"""A fraction with a decimal comma, or a percentage: a number, not the name of a file."""
HAS_EFFECT: dict[str, Callable[[Config], bool]] = {
    "model.vectors_keep": lambda config: config.model.vectors is not None,
    "model.ngrams_spelling": lambda config: (
        config.model.ngrams is not None and config.model.subwords is not None
    ),
    "model.join": lambda config: config.model.bidirectional,
    "model.attention_size": lambda config: "attention" in config.model.pooling,
    "model.initial_scale": lambda config: config.model.initial_state == "random",
    "training.ngrams_lr": lambda config: config.model.ngrams is not None,
    "training.refit": lambda config: config.data.validation is not None,
    "pretraining.data": lambda config: config.pretraining.objective is not None,
}
"""Keys that only refine another one, with the condition under which they have an effect."""


def unused_keys(config: Config) -> Iterator[tuple[str, str]]:
    """Yield section and name of the keys that have no effect in this config."""
    for key, has_effect in HAS_EFFECT.items():
        if not has_effect(config):
            section, _, name = key.partition(".")
            yield section, name


def broken_rules(config: Config) -> Problems:
    """Yield all combinations of keys that are refused."""
    for check in RULES:
        yield from check(config)


def _rule(check: Rule) -> Rule:
    """Add a function to the rules."""
    RULES.append(check)
    return check


def _conflict(config: Config, key: str, *others: str, advice: str) -> tuple[str, str]:
    """Return the problem of a key whose value conflicts with the values of other keys."""
    causes = " and ".join(f"{other} is {brief(config.value(other))}" for other in others)
    return key, f"found {brief(config.value(key))}, but {causes}; {advice}"


@_rule
def _keys_fit_the_kind(config: Config) -> Problems:
    for key, (kinds, default) in UNSUPPORTED_KINDS.items():
        is_set = config.value(key) not in (None, False, "train")
        if is_set and config.data.kind in kinds:
            yield _conflict(config, key, "data.kind", advice=f"expected {default}")


@_rule
def _keys_have_what_they_need(config: Config) -> Problems:
    for key, (other, advice) in REQUIRED.items():
        is_set = config.value(key) not in (None, "zeros", "random", "learned")
        if is_set and config.value(other) is None:
            yield _conflict(config, key, other, advice=advice)


@_rule
def _steps_and_kind_agree(config: Config) -> Problems:
    if config.data.steps is not None and config.data.kind != "steps":
        yield _conflict(config, "data.kind", "data.steps", advice="expected steps or auto")
    elif config.data.steps is None and config.data.kind == "steps":
        yield _conflict(config, "data.kind", "data.steps", advice="name the columns in data.steps")


@_rule
def _steps_replace_sequence(config: Config) -> Problems:
    if config.data.sequence is not None and config.data.steps is not None:
        advice = "data.steps takes its place, so leave data.sequence out"
        yield _conflict(config, "data.sequence", "data.steps", advice=advice)


@_rule
def _step_columns_fit_the_model(config: Config) -> Problems:
    tokens, steps = _token_columns(config), config.data.steps or {}
    if steps and len(tokens) == len(steps) and config.data.standardize != "train":
        yield "data.standardize", "data.steps has no column of numbers; expected train"
    for key, default in (("model.kernels", "false"), ("training.augment", "null")):
        if config.value(key) and tokens:
            yield key, f"data.steps has a column of tokens; expected {default}"


@_rule
def _word_parts_need_words(config: Config) -> Problems:
    for key, tokenizers in NOT_WORDS.items():
        if config.value(key) is not None and config.data.tokenizer in tokenizers:
            advice = "its tokens are not words; expected null"
            yield _conflict(config, key, "data.tokenizer", advice=advice)


@_rule
def _vectors_are_text(config: Config) -> Problems:
    path = config.model.vectors or ""
    problem = advice_on(path)
    if path.lower().endswith(".bin"):
        problem = "a binary file; expected text, such as a .vec file or a text file of GloVe"
    if problem is not None:
        yield "model.vectors", f"found {brief(path)}; {problem}"


@_rule
def _native_engine_is_packed(config: Config) -> Problems:
    if config.model.engine == "native" and config.model.unroll != "packed":
        yield _conflict(config, "model.engine", "model.unroll", advice="expected auto or torch")


@_rule
def _states_run_forward(config: Config) -> Problems:
    is_carried = config.model.initial_state == "carried"
    for key in ("model.initial_state",) * is_carried + ("training.bptt",):
        if config.value(key) is not None and config.model.bidirectional:
            advice = "it reads from the end; set model.bidirectional to false"
            yield _conflict(config, key, "model.bidirectional", advice=advice)
        if config.value(key) is not None and config.model.unroll == "padded":
            advice = "it changes the last state; set model.unroll to packed"
            yield _conflict(config, key, "model.unroll", advice=advice)


@_rule
def _logit_adjustment_needs_one_label(config: Config) -> Problems:
    if config.training.logit_adjustment and config.data.label_separator is not None:
        advice = "multi-label tasks have thresholds instead; expected 0.0"
        yield _conflict(config, "training.logit_adjustment", "data.label_separator", advice=advice)


@_rule
def _refit_needs_plain_training(config: Config) -> Problems:
    unsupported = {
        "model.initial_state": config.model.initial_state == "carried",
        "pretraining.objective": config.pretraining.objective is not None,
        "training.schedule": config.training.schedule == "plateau",
    }
    for key, is_set in unsupported.items():
        if config.training.refit and is_set:
            advice = "refit doesn't support it; expected false"
            yield _conflict(config, "training.refit", key, advice=advice)


@_rule
def _pretraining_predicts_each_step(config: Config) -> Problems:
    if config.pretraining.objective is not None and config.model.convolutions is not None:
        key, advice = "pretraining.objective", "convolutions merge time steps; expected null"
        yield _conflict(config, key, "model.convolutions", advice=advice)


@_rule
def _language_model_reads_forward(config: Config) -> Problems:
    model, keys = config.model, ("model.bidirectional", "model.num_layers")
    if config.pretraining.objective != "language_model":
        return
    if model.bidirectional and model.num_layers > 1:
        advice = "these see the next token; expected autoencoder"
        yield _conflict(config, "pretraining.objective", *keys, advice=advice)


@_rule
def _fractions_are_numbers(config: Config) -> Problems:
    for key in ("data.validation", "data.test"):
        value = config.value(key)
        if isinstance(value, str) and _looks_like_fraction(value):
            digits = re.split("[,%]", value)
            fraction = float(digits[0]) / 100 if "%" in value else float(".".join(digits))
            yield key, f"found {brief(value)}; expected a number such as {fraction:g}, or a file"


def _looks_like_fraction(name: str) -> bool:
    return bool(FRACTION_AS_TEXT.fullmatch(name)) and not os.path.exists(name)


@_rule
def _files_have_one_known_format(config: Config) -> Problems:
    """Each file has a format, and the files of a key have the same one."""
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
    kind = config.data.kind
    for format, key in _formats(config).items():
        if kind != "steps" and not holds(format, kind):
            kinds = one_of([x for x in ("text", "tokens", "features") if holds(format, x)])
            other = (
                f"; features are in {one_of(formats_holding(kind))}" if kind == "features" else ""
            )
            yield "data.kind", f"found {kind}, but {key} is {format}; expected {kinds}{other}"


def _formats(config: Config) -> dict[str, str]:
    """Return the formats of all data files, each with the first key that has such a file."""
    found: dict[str, str] = {}
    for key in FILES:
        for name in names_of(config.value(key)):
            format = resolve_format(name, config.data.format)
            if format is not None:
                found.setdefault(format, key)
    return found


@_rule
def _columns_need_a_table(config: Config) -> Problems:
    for key in ("data.group", "data.steps", "data.static"):
        for format, file in _formats(config).items():
            if config.value(key) is not None and columns_of_format(format) == "none":
                found = f"{file} is {format}, which has no columns"
                yield key, f"{found}; expected null, or {one_of(formats_holding('steps'))}"


@_rule
def _tables_need_columns(config: Config) -> Problems:
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
    data = config.data
    columns = data.sequence if isinstance(data.sequence, list) else [data.sequence]
    if data.label is not None and data.label in columns:
        yield (
            "data.label",
            f"found {brief(data.label)}, a column of data.sequence; expected another",
        )
    keys = ("data.id", "data.label", "data.sequence")
    roles = {config.value(key): key for key in keys if isinstance(config.value(key), str | int)}
    for key, names in (("data.steps", data.steps or {}), ("data.static", data.static or {})):
        for name in names:
            if name in roles:
                yield key, f"found {brief(name)}, which is in {roles[name]}, too; leave it out here"
        roles |= dict.fromkeys(names, key)


@_rule
def _increase_needs_order(config: Config) -> Problems:
    steps = config.data.steps or {}
    if "order" in steps.values() and config.data.order is None:
        name = next(name for name in steps if steps[name] == "order")
        yield "data.steps", f"found {name}: order, but data.order is null; name the column there"


def _token_columns(config: Config) -> list[str]:
    """Return the names of the token columns of data.steps."""
    return [name for name, kind in (config.data.steps or {}).items() if "token" in kind]


@_rule
def _numbers_depend_on_tokens(config: Config) -> Problems:
    kinds: dict[str, Any] = dict(config.data.steps or {})
    tokens = _token_columns(config)
    for name, kind in kinds.items():
        if "by" in kind and kind["by"] not in tokens:
            found = f"{name}: by: found {brief(kind['by'])}, which is no column of tokens here"
            yield "data.steps", f"{found}; expected {one_of(tokens) if tokens else 'number'}"


@_rule
def _ngrams_name_token_columns(config: Config) -> Problems:
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
    validation, test = config.data.validation, config.data.test
    if isinstance(validation, float) and isinstance(test, float) and validation + test >= 1:
        left = f"with data.validation: {validation:g} no row is left to train on"
        yield "data.test", f"found {test:g}; {left}; expected a number below {1 - validation:g}"
