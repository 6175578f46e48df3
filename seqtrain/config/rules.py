"""Rules that join several keys of a section: format, kind of sequence, columns; engine and cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from seqtrain.config.expectation import one_of
from seqtrain.config.formats import ENDINGS, FEATURE_FORMATS, FIXED_COLUMNS, resolve_format
from seqtrain.config.problems import show


def data_faults(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check the keys of the data section against one another.

    Args:
        data: its valid values, defaults included; keys whose values are wrong are left out.

    Yields:
        The key to complain about, and the text of the problem.
    """
    formats: dict[str, str] = {}
    for key in ("train", "validation", "test"):
        path = data.get(key)
        if not isinstance(path, str) or "format" not in data:
            continue
        format = resolve_format(path, data["format"])
        if format is None:
            endings = one_of(list(ENDINGS))
            yield key, f"found {show(path)}; expected an ending {endings}, or set data.format"
        else:
            formats.setdefault(format, key)
    for format, key in formats.items():
        if "kind" in data:
            yield from _kind_faults(data["kind"], format, key)
    yield from _column_faults(data, [name for name in formats if name not in FIXED_COLUMNS])


def _kind_faults(kind: str, format: str, key: str) -> Iterator[tuple[str, str]]:
    """Check that a format can hold the kind of sequence."""
    if kind == "features" and format not in FEATURE_FORMATS:
        yield (
            "kind",
            f"found features, but data.{key} is {format}; expected {one_of(FEATURE_FORMATS)}",
        )
    if kind != "features" and format == "ts":
        yield (
            "kind",
            f"found {kind}, but data.{key} is ts, which holds features; write kind: features",
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


def model_faults(model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check the keys of the model section against one another; as `data_faults`."""
    rnn = model.get("rnn")
    engine = model.get("engine")
    if engine in ("native", "fused") and rnn not in ("gru", None):
        yield (
            "engine",
            f"found {engine}, which computes gru alone; expected auto or torch for {rnn}",
        )
    unroll = model.get("unroll")
    if engine in ("native", "fused") and unroll in ("padded", "masked"):
        yield (
            "engine",
            f"found {engine}, which reads packed sequences alone; expected auto or torch for "
            f"unroll {unroll}",
        )
    join = model.get("join")
    if join in ("sum", "mean") and model.get("bidirectional") is False:
        yield (
            "join",
            f"found {join}, but with bidirectional: false there is one direction and nothing to "
            "join; expected concat, or set bidirectional: true",
        )


def joint_faults(config: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Check the keys of different sections against one another.

    Args:
        config: the valid values of each section, as for `data_faults`.

    Yields:
        The section and key to complain about, and the text of the problem.
    """
    model = config["model"]
    bptt = config["training"].get("bptt")
    if bptt is not None and model.get("bidirectional") is True:
        yield (
            "training",
            "bptt",
            f"found {bptt}, but the backward direction begins at a sequence's end, so no piece can "
            "be done before the whole is read; expected null, or set model.bidirectional: false",
        )
    if bptt is not None and model.get("unroll") == "padded":
        yield (
            "training",
            "bptt",
            f"found {bptt}, but padding changes the state that the next piece begins with; "
            "expected null, or set model.unroll: packed or masked",
        )


RULES: dict[str, Callable[[Mapping[str, Any]], Iterator[tuple[str, str]]]] = {
    "data": data_faults,
    "model": model_faults,
}
"""What checks the keys of each section against one another."""
