"""From a config to the three splits, encoded: read, split, fit, encode; or taken from the cache."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from seqtrain.config import resolve_format
from seqtrain.config.schema import Config, DataConfig
from seqtrain.data import cache
from seqtrain.data.configured import SPLITS, data_files, read_options, read_with
from seqtrain.data.digests import Digested
from seqtrain.data.encoding import EncodingReport
from seqtrain.data.fitting import Fitting
from seqtrain.data.joining import joined_stores
from seqtrain.data.ngram_vocabulary import NgramVocabulary, fit_ngrams
from seqtrain.data.pieces import Files, read_encoded
from seqtrain.data.prepared import PreparedData, entry_of, from_entry
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import read_examples
from seqtrain.data.row_numbers import places
from seqtrain.data.sources import files_of
from seqtrain.data.splits import Part, fingerprints, hold_out
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.data.tokenizers import bpe_version, train_bpe
from seqtrain.data.vocabulary import SPECIAL
from seqtrain.errors import DataError
from seqtrain.text import display_name, quote


def prepare(
    config: Config, *, cache_folder: Path | None, known: Preprocessing | None = None
) -> PreparedData:
    """Read, split, fit and encode the data of a config.

    Args:
        config: data paths are relative to the current directory.
        cache_folder: where encoded data is kept between runs; None: nowhere.
        known: an older preprocessing, which is kept and grows by the tokens and labels of train;
            then nothing is taken from the cache.

    Raises:
        DataError: a file is missing, has rows that can't be used (all named by line), or was
            changed while it was read.
    """
    files = data_files(config)
    digested = {path: _digest_of(config.data, path) for _, path in files}
    digests = {path: found.digest for path, found in digested.items()}
    _refuse_same_files(config.data, files, digests)
    cache_folder = cache_folder if known is None else None
    key = _cache_key(config, digests)
    found = cache.load(cache_folder, key) if cache_folder else None
    if found:
        return from_entry(config, *found, digests, from_cache=True)
    data = _read(config, digests, known)
    for found_before in digested.values():
        found_before.check_unchanged()
    _check_rows(data, config.data)
    if cache_folder:
        cache.save(cache_folder, key, *entry_of(data))
    return data


def held_out_fractions(data: DataConfig) -> dict[str, Part]:
    """Return the splits that are held out of train's file, and how much of it each is.

    A fold comes last: whichever it is, the test split is the same.
    """
    named = {"validation": data.validation, "test": data.test}
    if isinstance(data.validation, dict):
        named = {"test": data.test, "validation": data.validation}
    return {name: value for name, value in named.items() if isinstance(value, float | dict)}


def _digest_of(data: DataConfig, path: str) -> Digested:
    """Read the SHA-256 of a data file; a folder is read for format txt alone.

    Raises:
        DataError: it can't be read, or is a folder of another format.
    """
    if os.path.isdir(path) and resolve_format(path, data.format) != "txt":
        raise DataError(f"{display_name(path)}: is a folder; expected a regular file")
    return Digested.read(path)


def _refuse_same_files(
    data: DataConfig, files: list[tuple[str, str]], digests: dict[str, str]
) -> None:
    learned = {digests[path]: path for key, path in files if key == "data.train"}
    for key, path in files:
        same = learned.get(digests[path])
        if same is None or key not in ("data.validation", "data.test"):
            continue
        which = "data.train" if isinstance(data.train, str) and len(learned) == 1 else quote(same)
        hint = "; 0.1 would hold out a tenth of train" if key == "data.validation" else ""
        raise DataError(
            f"{key}: {display_name(path)} has the same content as {which}, so it "
            f"would score rows that were learned{hint}"
        )


def _cache_key(config: Config, digests: dict[str, str]) -> str:
    """All that the encoded data depends on; the paths too, for messages name them."""
    seed = config.seed if held_out_fractions(config.data) else None
    versions = [unicodedata.unidata_version]
    if (config.data.kind, config.data.tokenizer) == ("text", "bpe"):
        versions.append(bpe_version())
    pretraining = config.pretraining.objective is not None, config.pretraining.data
    model = config.model
    grams = model.subwords, model.ngrams, model.max_ngrams if model.ngrams else None
    data = config.data.model_dump()
    vectors = model.vectors, model.vectors_keep if model.vectors else None
    return cache.content_key([data, seed, digests, versions, pretraining, grams, vectors])


def _read(config: Config, digests: dict[str, str], known: Preprocessing | None) -> PreparedData:
    """Read and encode all splits."""
    data = config.data
    named = {name: files_of(f"data.{name}", getattr(data, name)) for name in SPLITS}
    train = read_with(data, named["train"])
    reading = train[0][1]
    bpe = (data.kind, data.tokenizer) == ("text", "bpe")
    merges, held_out = _train_bpe(config, train) if bpe else (None, None)
    merges = merges if known is None else known.bpe_model
    subwords = config.model.subwords
    sizes = None if subwords is None else (subwords[0], subwords[1])
    vectors = config.model.vectors, config.model.vectors_keep
    fitting = Fitting(data, reading, merges, sizes, known, vectors)
    read = fitting.read(train)
    parts, reports = _parts(config, *read, held_out)
    del read  # it may be large
    more = _unlabelled_files(config)
    for key, file in more:
        options = replace(read_options(data, file), group=None)
        parts[key], reports[key] = fitting.read([(file, options)], labelled=False)
    fitted = fitting.fit(parts)
    splits = dict(fitted.parts)
    ngrams = _fit_ngrams(config, splits["train"]) if known is None else known.ngrams
    preprocessing = replace(fitted.preprocessing, ngrams=ngrams)
    unlabelled = None
    if config.pretraining.objective is not None:
        stores = [splits["train"], *(splits.pop(key) for key, _ in more)]
        unlabelled = joined_stores(stores) if more else stores[0]
    for name in ("validation", "test"):
        if named[name]:
            files = read_with(data, named[name])
            splits[name], reports[name] = read_encoded(preprocessing, files)
    return PreparedData(
        splits,
        preprocessing,
        reports,
        fitted.eligible_tokens,
        digests,
        from_cache=False,
        unlabelled=unlabelled,
        vectors=fitted.vectors,
    )


def _fit_ngrams(config: Config, train: SequenceStore) -> NgramVocabulary | None:
    """Choose the n-grams of model.ngrams."""
    sizes = config.model.ngrams
    if sizes is None or not len(train):
        return None
    try:
        return fit_ngrams(
            train.values,
            train.offsets,
            shortest=sizes[0],
            longest=sizes[1],
            most=config.model.max_ngrams,
        )
    except ValueError:
        raise DataError(
            f"model.ngrams: no sequence of train has {sizes[0] - 2} tokens, as an n-gram of "
            f"{sizes[0]} needs (both ends count); lower it"
        ) from None


def _unlabelled_files(config: Config) -> list[tuple[str, str]]:
    """Return each file of pretraining.data, under a key of its own."""
    paths = [path for key, path in data_files(config) if key.startswith("pretraining.")]
    return [(f"pretraining.data.{i}", path) for i, path in enumerate(paths)]


def _parts(
    config: Config, read: SequenceStore, report: EncodingReport, held_out: dict[str, Ints] | None
) -> tuple[dict[str, SequenceStore], dict[str, EncodingReport]]:
    """Part what was read of the train file as the config says; equal rows stay together."""
    fractions = held_out_fractions(config.data)
    if not fractions:
        return {"train": read}, {"train": report}
    if read.groups is not None:
        alone = np.arange(len(read)) + len(read)
        groups = np.where(read.groups < 0, alone, read.groups)
        held_out = hold_out(read.labels, fractions, config.seed, groups)
    elif held_out is None:
        held_out = hold_out(read.labels, fractions, config.seed, fingerprints(read))
    parts = {name: read.selection(rows) for name, rows in held_out.items()}
    reports = {name: EncodingReport(rows=len(rows)) for name, rows in held_out.items()}
    away = np.concatenate(list(held_out.values()))
    kept = np.ones(len(read), dtype=bool)
    kept[away] = False
    parts["train"] = read.selection(places(kept))
    reports["train"] = replace(report, held_out=len(away))
    return {name: parts[name] for name in SPLITS if name in parts}, reports


def _train_bpe(config: Config, files: Files) -> tuple[str, dict[str, Ints]]:
    """Learn merges from the training part alone; return them, and the rows of each part held out.

    One pass for labels and which texts are equal, one for the texts.
    """
    data = config.data

    def kept() -> Iterator[tuple[str | None, str]]:
        for example in chain.from_iterable(read_examples(*file) for file in files):
            text = str(example.sequence).strip()
            if text or data.empty == "unk":
                yield example.label, text.lower() if data.lowercase else text

    numbers: dict[str | None, int] = {}
    rows = [(numbers.setdefault(label, len(numbers)), hash(text)) for label, text in kept()]
    labels, texts = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    held_out = hold_out(labels, held_out_fractions(data), config.seed, texts)
    chosen = np.ones(len(rows), dtype=bool)
    for part in held_out.values():
        chosen[part] = False
    train = (text for (_, text), keep in zip(kept(), chosen, strict=True) if keep)
    merges = train_bpe(train, vocab_size=data.max_vocab_size, lowercase=data.lowercase)
    return merges, held_out


def _check_rows(prepared: PreparedData, data: DataConfig) -> None:
    """Every split needs rows, and train two classes."""
    for name, store in prepared.splits.items():
        if len(store) == 0:
            value = getattr(data, name)
            if isinstance(value, dict):
                raise DataError(
                    f"data.{name}: too few rows for {value['of']} parts: every class keeps a row "
                    "in train, and equal sequences stay together; take fewer parts, or give more "
                    "rows"
                )
            hint = (
                f"{value:g} holds out no row: every class keeps a row in train, and equal "
                "sequences stay together; give more rows, or see whether data.label is right"
                if isinstance(value, float)
                else "no rows are left, for every sequence is empty (data.empty: drop)"
            )
            raise DataError(f"data.{name}: {hint}")
        if (store.labels < 0).all():
            raise DataError(f"data.{name}: none of its labels occurs in train; is it another set?")
    vocabulary = prepared.preprocessing.vocabulary
    if vocabulary is not None and len(vocabulary) == len(SPECIAL):
        raise DataError(
            f"data.min_count: no token of train occurs {data.min_count} times; lower it"
        )
    labels = prepared.preprocessing.labels
    if len(labels) < 2:
        rows = len(prepared.splits["train"])
        raise DataError(
            f"data.label: all {rows} rows of train are of one class ({quote(labels[0])}); "
            "expected at least two"
        )
