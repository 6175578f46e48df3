"""Checks of preprocessing read from a model folder, which anybody may have written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from seqtrain.config.schema import DataConfig, ModelConfig
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.tokenizers import read_merges
from seqtrain.data.vocabulary import SPECIAL


def check_preprocessing(preprocessing: Preprocessing) -> None:
    """Refuse what no fit writes, so that prediction can't stumble over it later.

    Raises:
        ValueError: a value isn't one that the configuration allows, or parts don't fit together.
    """
    rules = {
        "tokenizer": preprocessing.tokenizer,
        "lowercase": preprocessing.lowercase,
        "missing": preprocessing.missing,
        "standardize": preprocessing.standardize,
        **asdict(preprocessing.reading),
        **asdict(preprocessing.lengths),
    }
    for name in ("by_name", "whole_files"):
        if not isinstance(rules.pop(name), bool):
            raise ValueError(f"reading.{name}: expected true or false")
    if rules.pop("keep"):
        raise ValueError("reading.keep: expected none")
    if rules["kind"] == "auto":
        raise ValueError("reading.kind: expected text, tokens or features")
    DataConfig.model_validate({"train": "-", **rules})
    _check_names("labels", preprocessing.labels, least=2)
    _check_sizes(preprocessing.subwords)
    if preprocessing.kind == "features":
        if preprocessing.subwords or preprocessing.ngrams:
            raise ValueError("subwords, ngrams: expected none, for the kind is features")
        _check_scales(preprocessing.mean, preprocessing.std)
        return
    if preprocessing.standardize != "train":
        raise ValueError("standardize: expected train, for the kind isn't features")
    if preprocessing.mean or preprocessing.std:
        raise ValueError("mean, std: expected none, for the kind isn't features")
    tokens = preprocessing.vocabulary.tokens if preprocessing.vocabulary else ()
    _check_names("tokens", tokens, least=len(SPECIAL))
    if tokens[: len(SPECIAL)] != SPECIAL:
        raise ValueError(f"tokens: expected {' and '.join(SPECIAL)} first")
    if preprocessing.kind == "text":
        _check_tokenizer(preprocessing)


def _check_sizes(subwords: tuple[int, int] | None) -> None:
    """Characters of subwords, at least and at most."""
    sizes = None if subwords is None else list(subwords)
    shortest, longest = ModelConfig.model_validate({"subwords": sizes}).subwords or (1, 1)
    if shortest > longest:
        raise ValueError(f"subwords: found {sizes}")


def _check_names(what: str, names: Sequence[object], *, least: int) -> None:
    """Different texts, and enough of them."""
    if len(names) < least or len(set(names)) < len(names):
        raise ValueError(f"{what}: expected at least {least} different texts")
    for name in names:
        if not (isinstance(name, str) and _is_unicode(name)):
            raise ValueError(f"{what}: found {name!r}; expected a text")


def _is_unicode(text: str) -> bool:
    """Tell a text from one with lone surrogates, which can't be written as UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _check_scales(mean: Sequence[object], std: Sequence[object]) -> None:
    """A finite mean and a finite deviation above 0 for each channel."""
    if not mean or len(mean) != len(std):
        raise ValueError("mean, std: expected one number a channel each")
    for number in (*mean, *std):
        if not isinstance(number, float) or not math.isfinite(number):
            raise ValueError(f"mean, std: found {number!r}; expected finite numbers")
    if any(number <= 0 for number in std if isinstance(number, float)):
        raise ValueError("std: expected numbers above 0")


def _check_tokenizer(preprocessing: Preprocessing) -> None:
    """Merges stand where the tokenizer needs them, and can be read."""
    merges = preprocessing.bpe_model
    if (preprocessing.tokenizer == "bpe") != (merges is not None):
        raise ValueError("bpe_model: expected merges for tokenizer bpe, and for no other")
    if merges is not None:
        if not isinstance(merges, str):
            raise ValueError(f"bpe_model: found {merges!r:.40}; expected a text")
        try:
            read_merges(merges)
        except ValueError as error:
            raise ValueError(f"bpe_model: {error}") from None
