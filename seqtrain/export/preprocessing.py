"""Preprocessing as JSON that other programs can follow: values alone, nothing left to find out."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from seqtrain.data.encoding import LengthPolicy
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import ReadOptions
from seqtrain.data.tokenizers import read_merges
from seqtrain.errors import ConfigError

FORMAT_VERSION = 1
KNOWN = {
    Preprocessing: {
        *("reading", "tokenizer", "lowercase", "bpe_model", "lengths", "missing", "labels"),
        *("vocabulary", "mean", "std", "standardize", "subwords", "ngrams"),
    },
    LengthPolicy: {"max_length", "overlong", "empty"},
    ReadOptions: {
        *("format", "kind", "header", "quoting", "sequence", "label", "group", "bad_rows"),
        *("by_name", "delimiter", "whole_files", "keep"),
    },
}
"""What `predict.py` or the graph follows, and what can't change an answer."""


def exported_preprocessing(fitted: Preprocessing) -> dict[str, Any]:
    """Return what preprocessing.json holds.

    Args:
        fitted: as it was saved with the model.

    Raises:
        ConfigError: there is a step that `predict.py` doesn't know.
    """
    rules = fitted.for_prediction(empty="blank" if fitted.lengths.empty == "error" else None)
    for part in (rules, rules.reading, rules.lengths):
        unknown = [f.name for f in fields(part) if f.name not in KNOWN[type(part)]]
        used = [name for name in unknown if getattr(part, name)]
        if used:
            raise ConfigError(
                f"data.{used[0]} can't be exported yet; seqtrain predict reads such a model"
            )
    text, ngrams = rules.kind == "text", rules.ngrams
    return {
        "format_version": FORMAT_VERSION,
        "kind": rules.kind,
        "labels": list(rules.labels),
        "reading": _reading(rules.reading),
        "tokenizer": rules.tokenizer if text else None,
        "lowercase": rules.lowercase if text else None,
        "merges": read_merges(rules.bpe_model) if text and rules.bpe_model else None,
        "subwords": _sizes(rules.subwords),
        "ngrams": _sizes((ngrams.shortest, ngrams.longest) if ngrams else None),
        **asdict(rules.lengths),
        "missing": rules.missing,
        "mean": list(rules.mean),
        "std": list(rules.std),
    }


def _sizes(bounds: tuple[int, int] | None) -> dict[str, int] | None:
    return None if bounds is None else {"shortest": bounds[0], "longest": bounds[1]}


def _reading(options: ReadOptions) -> dict[str, Any]:
    """Return how files are read; whether tables have a header is settled here."""
    columns = options.sequence if isinstance(options.sequence, list) else [options.sequence]
    named = any(isinstance(c, str) for c in (*columns, options.label, options.group))
    return {
        "format": options.format,
        "by_name": options.by_name,
        "header": named if options.header == "auto" else options.header,
        "quoting": options.quoting,
        "delimiter": options.delimiter,
        "sequence": None if options.sequence is None else columns,
        "whole_files": options.whole_files,
    }
