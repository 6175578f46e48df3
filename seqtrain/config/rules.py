"""Rules that join several keys of a section: format, kind, columns; engine and unroll."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from seqtrain.config.formats import (
    ENDINGS,
    FEATURE_FORMATS,
    FIXED_COLUMNS,
    advice,
    holds,
    names_of,
    resolve_format,
)
from seqtrain.config.problems import show
from seqtrain.config.render import flow
from seqtrain.config.schema import ModelConfig
from seqtrain.text import listed, one_of

PLAIN = ModelConfig()
INITIAL_SCALE = PLAIN.initial_scale


def data_faults(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check the keys of the data section against one another.

    Args:
        data: its valid values, defaults included; keys whose values are wrong are left out.

    Yields:
        The key to complain about, and the text of the problem.
    """
    formats: dict[str, str] = {}
    for key in ("train", "validation", "test"):
        of_key: dict[str, str] = {}
        for name in names_of(data.get(key)) if "format" in data else ():
            format = resolve_format(name, data["format"])
            if format is None:
                yield key, _no_format(name)
                break
            of_key.setdefault(format, name)
        if len(of_key) > 1:
            yield (
                key,
                f"found {_of_formats(of_key)}; expected files of one format, or set data.format",
            )
        for format in of_key:
            formats.setdefault(format, key)
    for format, key in formats.items():
        if "kind" in data:
            yield from _kind_faults(data["kind"], format, key)
    validation, test = data.get("validation"), data.get("test")
    if isinstance(validation, dict) and not 1 <= validation["fold"] <= validation["of"] >= 2:
        yield (
            "validation",
            f"found {{fold: {validation['fold']}, of: {validation['of']}}}; expected two parts or "
            "more, and one of them",
        )
    yield from _column_faults(data, [name for name in formats if name not in FIXED_COLUMNS])
    yield from _group_faults(data, formats)
    if isinstance(validation, float) and isinstance(test, float) and validation + test >= 1:
        yield (
            "test",
            f"found {show(test)}, which with data.validation: {validation:g} leaves nothing to "
            f"train on; expected a number below {1 - validation:g}",
        )


def _of_formats(files: Mapping[str, str]) -> str:
    return listed([f"{show(name)} ({format})" for format, name in files.items()])


def _no_format(path: str) -> str:
    how = advice(path)
    if how is not None:
        return f"found {show(path)}; {how}"
    return f"found {show(path)}; expected an ending {one_of(list(ENDINGS))}, or set data.format"


def _kind_faults(kind: str, format: str, key: str) -> Iterator[tuple[str, str]]:
    """Check that a format can hold the kind of sequence."""
    if holds(format, kind):
        return
    if kind == "features":
        yield (
            "kind",
            f"found features, but data.{key} is {format}; expected {one_of(FEATURE_FORMATS)}",
        )
    else:
        what = "features" if format == "ts" else "features or tokens"
        yield (
            "kind",
            f"found {kind}, but data.{key} is {format}, which holds {what}; write kind: {what}",
        )


def _column_faults(data: Mapping[str, Any], formats: list[str]) -> Iterator[tuple[str, str]]:
    """Check that sequence and label are named where a format has columns, and differ."""
    for key in ("sequence", "label"):
        if formats and key in data and data[key] is None:
            yield key, f"missing; expected a column name or index (format {formats[0]} needs it)"
    sequence, label = data.get("sequence"), data.get("label")
    if label is not None and label in (sequence if isinstance(sequence, list) else [sequence]):
        yield (
            "label",
            f"found {show(label)}, a column of data.sequence too; expected another column",
        )


def _group_faults(data: Mapping[str, Any], formats: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Check that every format has columns, and that no group is parted."""
    group = data.get("group")
    if group is None:
        return
    for format, key in formats.items():
        if format in FIXED_COLUMNS:
            yield (
                "group",
                f"found {show(group)}, but data.{key} is {format}, which has no such column; "
                "expected null",
            )
    for key in ("validation", "test"):
        if isinstance(data.get(key), float):
            yield (
                key,
                f"found {show(data[key])}, which would part the groups of data.group; "
                "expected a file or null",
            )


def model_faults(model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check the keys of the model section against one another; as `data_faults`."""
    engine = model.get("engine")
    unroll = model.get("unroll")
    if engine == "native" and unroll in ("padded", "masked"):
        yield (
            "engine",
            "found native, which reads packed sequences alone; expected auto or torch for unroll "
            f"{unroll}",
        )
    yield from _carried_faults(model)
    scale, start = model.get("initial_scale"), model.get("initial_state")
    if scale not in (None, INITIAL_SCALE) and start not in (None, "random"):
        yield (
            "initial_scale",
            f"found {scale:g}, but initial_state is {start}, which draws nothing; expected "
            f"{INITIAL_SCALE:g}, or set initial_state: random",
        )
    yield from part_faults(model)
    yield from _vectors_faults(model)
    join = model.get("join")
    if join in ("sum", "mean") and model.get("bidirectional") is False:
        yield (
            "join",
            f"found {join}, but with bidirectional: false there is one direction and nothing to "
            "join; expected concat, or set bidirectional: true",
        )


def _vectors_faults(model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check what is said of a file of word vectors."""
    path, keep = model.get("vectors"), model.get("vectors_keep", PLAIN.vectors_keep)
    if path is None:
        if "vectors" in model and keep != PLAIN.vectors_keep:
            yield "vectors_keep", f"found {keep}, but vectors is null; set the file there"
        return
    how = advice(path)
    if path.lower().endswith(".bin"):
        how = "a binary file; expected text, as .vec files and GloVe's are"
    if how is not None:
        yield "vectors", f"found {show(path)}; {how}"


def part_faults(model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check n-grams, subwords, convolutions and a list of poolings, each by itself."""
    for key in ("ngrams", "subwords"):
        shortest, longest = model.get(key) or (1, 1)
        if shortest > longest:
            yield key, f"found [{shortest}, {longest}]; expected the shorter size first"
    for width, kernel, stride in model.get("convolutions") or []:
        if kernel % 2 == 0:
            yield (
                "convolutions",
                f"found [{width}, {kernel}, {stride}], whose kernel is {kernel}; expected an odd "
                "one, which has a middle",
            )
    pooling = model.get("pooling")
    if isinstance(pooling, list) and len(set(pooling)) < len(pooling):
        yield "pooling", f"found [{', '.join(pooling)}]; expected each of them once"


def _carried_faults(model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check that the state at a row's end is known, and is where the next row begins."""
    if model.get("initial_state") != "carried":
        return
    if model.get("bidirectional") is True:
        yield (
            "initial_state",
            "found carried, but the backward direction begins where no row before ended; expected "
            "zeros, random or learned, or set bidirectional: false",
        )
    if model.get("unroll") == "padded":
        yield (
            "initial_state",
            "found carried, but padding changes the state that the next row begins with; expected "
            "zeros, random or learned, or set unroll: packed or masked",
        )


def joint_faults(config: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Check the keys of different sections against one another.

    Args:
        config: the valid values of each section, as for `data_faults`.

    Yields:
        The section and key to complain about, and the text of the problem.
    """
    model, group = config["model"], config["data"].get("group")
    carried = model.get("initial_state") == "carried"
    if carried and "group" in config["data"] and group is None:
        yield (
            "model",
            "initial_state",
            "found carried, but no group says which rows follow one another; set data.group "
            "(pieces of one long sequence are carried on anyway: training.bptt)",
        )
    if group is not None and "initial_state" in model and not carried:
        yield (
            "data",
            "group",
            f"found {show(group)}, but model.initial_state is {model['initial_state']}, which "
            "doesn't use it; expected null, or set model.initial_state: carried",
        )
    bptt = config["training"].get("bptt")
    if bptt is not None and model.get("bidirectional") is True:
        yield (
            "training",
            "bptt",
            f"found {bptt}, but the backward direction begins at a sequence's end, so that no "
            "piece comes first; expected null, or set model.bidirectional: false",
        )
    if bptt is not None and model.get("unroll") == "padded":
        yield (
            "training",
            "bptt",
            f"found {bptt}, but padding changes the state that the next piece begins with; "
            "expected null, or set model.unroll: packed or masked",
        )
    yield from _kind_of_part_faults(config)
    yield from (("pretraining", *fault) for fault in _pretraining_faults(config))


def _kind_of_part_faults(
    config: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, str, str]]:
    """Check that parts are asked for of the kind of sequence that they work on."""
    data, model, training = config["data"], config["model"], config["training"]
    kind, tokenizer = data.get("kind"), data.get("tokenizer")
    if kind == "features":
        for key in ("ngrams", "subwords", "vectors", "freeze"):
            if model.get(key):
                wanted = flow(getattr(PLAIN, key))
                yield (
                    "model",
                    key,
                    f"found {flow(model[key])}, but data.kind is features; expected {wanted}",
                )
    elif kind is not None:
        standardize = data.get("standardize", "train")
        if standardize != "train":
            yield (
                "data",
                "standardize",
                f"found {standardize}, but data.kind is {kind}; expected train",
            )
        if training.get("augment"):
            yield (
                "training",
                "augment",
                f"found {training['augment']}, but data.kind is {kind}; expected null",
            )
    no_words = {"subwords": ("char", "byte", "bpe"), "vectors": ("byte", "bpe")}
    for key, tokenizers in no_words.items():
        if kind == "text" and model.get(key) and tokenizer in tokenizers:
            yield (
                "model",
                key,
                f"found {flow(model[key])}, but data.tokenizer is {tokenizer}, whose tokens are "
                "no words; expected null, or set data.tokenizer: word or whitespace",
            )
    if training.get("refit") and "validation" in data and data["validation"] is None:
        yield (
            "training",
            "refit",
            "found true, but without data.validation no epoch is the best and nothing is held out; "
            "expected false, or set data.validation",
        )
    clashes = {
        "pretraining.objective": config["pretraining"].get("objective"),
        "data.group": data.get("group"),
        "training.schedule": "plateau" if training.get("schedule") == "plateau" else None,
    }
    for key, found in clashes.items():
        if training.get("refit") and found is not None:
            yield (
                "training",
                "refit",
                f"found true, but {key} is {found}, which doesn't go with it; expected false",
            )


def _pretraining_faults(
    config: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, str]]:
    """Check that the objective can be had of these sequences and this encoder."""
    objective, model = config["pretraining"].get("objective"), config["model"]
    if objective and config["data"].get("kind") == "features":
        yield (
            "objective",
            f"found {objective}, which predicts tokens, but data.kind is features; expected null",
        )
    layers = model.get("num_layers", 1)
    if objective == "language_model" and model.get("bidirectional") is True and layers > 1:
        yield (
            "objective",
            f"found language_model, but of {layers} bidirectional layers the upper ones see what "
            "they predict; expected autoencoder, or set model.num_layers: 1",
        )
    if objective and model.get("convolutions"):
        yield (
            "objective",
            f"found {objective}, which predicts a token at each step, but model.convolutions joins "
            "steps; expected null, or set model.convolutions: null",
        )
    named = config["pretraining"].get("data") or []
    files = [named] if isinstance(named, str) else named
    if files and objective is None:
        yield (
            "data",
            f"found {show(files)}, but pretraining.objective is null; set autoencoder or "
            "language_model there",
        )
    for path in files:
        if resolve_format(path, config["data"].get("format", "auto")) is None:
            yield "data", _no_format(path)


def training_faults(training: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check the keys of the training section against one another; as `data_faults`."""
    steps = (training.get("checkpoint_every") or {}).get("steps", 1)
    if steps != int(steps):
        yield (
            "checkpoint_every",
            f"found {show(steps)} steps; expected a whole number",
        )
    cut_off = (training.get("augment") or {}).get("slice", 0.0)
    if cut_off >= 1:
        yield "augment", f"found slice {cut_off:g}, a share of a series; expected a number below 1"


RULES: dict[str, Callable[[Mapping[str, Any]], Iterator[tuple[str, str]]]] = {
    "data": data_faults,
    "model": model_faults,
    "training": training_faults,
}
"""What checks the keys of each section against one another."""
