"""Rules between keys of a config: what doesn't go together, and what to set instead."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from seqtrain.config.document import brief, flow
from seqtrain.config.formats import (
    ENDINGS,
    FEATURE_FORMATS,
    FIXED_COLUMNS,
    TABLE_FORMATS,
    WIDE_FORMATS,
    advice,
    holds,
    names_of,
    resolve_format,
)
from seqtrain.text import one_of

Broken: TypeAlias = Iterator[tuple[str, str]]
"""The key to complain about, as `section.key`, and the text of the problem."""

Keys: TypeAlias = dict[str, Any]
"""The values of a config by `section.key`, defaults included; each is right by itself."""

FILES = ("data.train", "data.validation", "data.test")
CLASHES = """
data.id set | data.steps null | name the columns of a time step there
data.steps set | data.id null | name the column there by which rows are one sequence
data.steps set | data.kind not steps | expected auto
data.kind steps | data.steps null | name the columns there
data.order set | data.steps null | expected null
data.sequence set | data.steps set | which takes its place; leave this key out
data.standardize not train | data.kind text tokens | expected train
training.augment set | data.kind text tokens | expected null
model.freeze set | data.kind features steps | expected false
model.kernels true | data.kind text tokens | expected false
model.ngrams set | data.kind features | expected null
model.attention_size set | model.pooling last mean max | expected null
model.ngrams_spelling true | model.ngrams null | expected false
model.ngrams_spelling true | model.subwords null | whose sizes it takes; expected false
training.ngrams_lr set | model.ngrams null | expected null
model.subwords set | data.kind features steps | expected null
model.subwords set | data.tokenizer char byte bpe | whose tokens are no words; expected null
model.vectors set | data.kind features steps | expected null
model.vectors set | data.tokenizer byte bpe | whose tokens are no words; expected null
model.vectors_keep not 20000 | model.vectors null | name the file there
model.engine native | model.unroll not packed | expected auto or torch
model.join not concat | model.bidirectional false | expected concat
model.initial_scale not 0.1 | model.initial_state not random | expected 0.1
model.initial_state carried | data.group null | name the column there
model.initial_state carried | model.bidirectional true | which reads from the end; set that to false
model.initial_state carried | model.unroll padded | which changes the last state; set another one
data.group set | model.initial_state not carried | which doesn't use it; expected null
training.bptt set | model.bidirectional true | which reads from the end; set that to false
training.bptt set | model.unroll padded | which changes the last state; set another one
training.logit_adjustment not 0.0 | data.label_separator set | which has thresholds; expected 0.0
training.refit true | data.validation null | so no epoch is the best; expected false
training.refit true | data.group set | which it doesn't support; expected false
training.refit true | pretraining.objective set | which it doesn't support; expected false
training.refit true | training.schedule plateau | which it doesn't support; expected false
pretraining.data set | pretraining.objective null | set autoencoder or language_model there
pretraining.objective set | data.kind features steps | which it can't predict; expected null
pretraining.objective set | model.convolutions set | which merge time steps; expected null
pretraining.objective language_model | model.bidirectional true | model.num_layers not 1 \
| which see the next token; expected autoencoder
"""
"""A value of a key, the values of others that it doesn't go with, and what to say. A value is
written as YAML does; `set` is any but null and false, `not` any but those that follow."""


def broken_rules(keys: Keys) -> Broken:
    """Yield what doesn't go together."""
    for rule in (_files, _columns, _steps, _ngrams, _groups, _vectors):
        yield from rule(keys)
    for clash in CLASHES.strip().splitlines():
        *sides, text = map(str.split, clash.split("|"))
        if all(_is(keys[key], values) for key, *values in sides):
            key, *others = (key for key, *_ in sides)
            found = " and ".join(f"{other} is {brief(keys[other])}" for other in others)
            found = f"found {brief(keys[key])}, but {found}"
            separator = ", " if text[0] in ("which", "whose", "so") else "; "
            yield key, found + separator + " ".join(text)


def _is(value: object, words: list[str]) -> bool:
    """Whether a value is among those that words of `CLASHES` stand for."""
    if words == ["set"]:
        return value not in (None, False)
    negated = words[0] == "not"
    return (flow(value) in words[negated:]) != negated


def _formats(keys: Keys) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in FILES:
        for name in names_of(keys[key]):
            format = resolve_format(name, keys["data.format"])
            if format is not None:
                found.setdefault(format, key)
    return found


def _files(keys: Keys) -> Broken:
    """Each file has a format, those of a key the same one, which holds this kind of sequence."""
    for key in (*FILES, "pretraining.data"):
        formats = {resolve_format(n, keys["data.format"]): n for n in names_of(keys[key])}
        if None in formats:
            usual = one_of([ending for ending, format in ENDINGS.items() if ending == f".{format}"])
            expected = f"expected an ending such as {usual}, or set data.format"
            yield key, f"found {brief(formats[None])}; {advice(formats[None]) or expected}"
        elif len(formats) > 1 and key in FILES:
            found = ", ".join(f"{brief(name)} ({format})" for format, name in formats.items())
            yield key, f"found {found}; expected files of one format, or set data.format"
    kind = keys["data.kind"]
    for format, key in _formats(keys).items():
        if kind != "steps" and not holds(format, kind):
            held = one_of([name for name in ("text", "tokens", "features") if holds(format, name)])
            where = f"; for features: {one_of(FEATURE_FORMATS)}" if kind == "features" else ""
            yield "data.kind", f"found {kind}, but {key} is {format}; expected {held}{where}"


def _columns(keys: Keys) -> Broken:
    """Columns are named where the format has some: sequence and label are different ones."""
    formats = _formats(keys)
    for key in ("data.group", "data.steps", "data.static"):
        for format, file in formats.items():
            if keys[key] is not None and format in FIXED_COLUMNS:
                found = f"{file} is {format}, which has no columns"
                yield key, f"{found}; expected null, or {one_of(TABLE_FORMATS)}"
    with_columns = [format for format in formats if format not in FIXED_COLUMNS]
    is_wide = keys["data.kind"] == "features" and {*with_columns} <= {*WIDE_FORMATS, "memory"}
    has_no_sequence = is_wide or keys["data.steps"] is not None
    for key in ("data.sequence", "data.label"):
        if with_columns and keys[key] is None and not (has_no_sequence and key == "data.sequence"):
            yield key, f"missing; expected a column name or index (format {with_columns[0]})"
    sequence, label = keys["data.sequence"], keys["data.label"]
    if label is not None and label in (sequence if isinstance(sequence, list) else [sequence]):
        yield "data.label", f"found {brief(label)}, a column of data.sequence; expected another"


def _steps(keys: Keys) -> Broken:
    """A column has one role; steps that grow by the order have one."""
    steps, static = keys["data.steps"] or {}, keys["data.static"] or {}
    named = ("data.id", "data.label", "data.sequence")
    roles = {keys[key]: f"is {key}" for key in named if isinstance(keys[key], str | int)}
    for key, columns in (("data.steps", steps), ("data.static", static)):
        for name in (name for name in columns if name in roles):
            yield key, f"found {brief(name)}, which {roles[name]}; leave it out here"
        roles |= dict.fromkeys(columns, f"is in {key}")
    if "order" in steps.values() and keys["data.order"] is None:
        grown = next(name for name in steps if steps[name] == "order")
        yield "data.steps", f"found {grown}: order, but data.order is null; name the column there"
    kinds, numbers = {*map(str, steps.values())}, {"number", "order"}
    if kinds and not kinds & numbers and keys["data.standardize"] != "train":
        yield "data.standardize", "data.steps has no column of numbers; expected train"
    for key, default in (("model.kernels", "false"), ("training.augment", "null")):
        if keys[key] and not kinds <= numbers:
            yield key, f"data.steps has a column of tokens; expected {default}"


def _ngrams(keys: Keys) -> Broken:
    """N-grams of several columns of tokens say which."""
    sizes, steps = keys["model.ngrams"], keys["data.steps"]
    tokens = [name for name, kind in (steps or {}).items() if kind not in ("number", "order")]
    if sizes is None or (steps is None and not isinstance(sizes, dict)):
        return
    if steps is None:
        yield (
            "model.ngrams",
            "found a mapping, but data.steps is null; expected [shortest, longest]",
        )
    elif not tokens:
        yield "model.ngrams", "data.steps has no column of tokens; expected null"
    elif not isinstance(sizes, dict) and len(tokens) > 1:
        form = f"{{{tokens[0]}: {brief(sizes)}}}"
        yield "model.ngrams", f"data.steps has {len(tokens)} columns of tokens; say which: {form}"
    for name in sizes if tokens and isinstance(sizes, dict) else ():
        if name not in tokens:
            found = f"found {brief(name)}, which data.steps doesn't have as a token"
            yield "model.ngrams", f"{found}; expected {one_of(tokens)}"


def _groups(keys: Keys) -> Broken:
    """Groups are not divided; held-out fractions leave rows to train on."""
    group, validation, test = (keys[f"data.{key}"] for key in ("group", "validation", "test"))
    for key, share in (("data.validation", validation), ("data.test", test)):
        if group is not None and isinstance(share, float):
            yield key, f"found {share:g}, which would divide data.group; expected a file"
    if isinstance(validation, float) and isinstance(test, float) and validation + test >= 1:
        left = f"with data.validation: {validation:g} no row is left to train on"
        yield "data.test", f"found {test:g}; {left}; expected a number below {1 - validation:g}"


def _vectors(keys: Keys) -> Broken:
    path = keys["model.vectors"] or ""
    how = "a binary file; expected text, such as a .vec file or one of GloVe"
    found = how if path.lower().endswith(".bin") else advice(path)
    if found is not None:
        yield "model.vectors", f"found {brief(path)}; {found}"
