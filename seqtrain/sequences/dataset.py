"""Preparation of the data of a config: read, split, fit and encode, or load from the cache."""

import os
import unicodedata
from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import chain, compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqtrain.config.schema import Config, DataConfig
from seqtrain.errors import DataError
from seqtrain.files.formats import IN_MEMORY
from seqtrain.sequences import cache
from seqtrain.sequences.columns import column_from_config, row_features_from_config
from seqtrain.sequences.columns.text_column import TextColumn
from seqtrain.sequences.encoding import EncodingReport, LengthPolicy
from seqtrain.sequences.fitting import fit
from seqtrain.sequences.labels import Labels, LabelSet, ProvisionalLabels
from seqtrain.sequences.ngram_vocabulary import NgramVocabulary
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.read_options import FileFormat, Schema
from seqtrain.sequences.readers import Digests, Source, TableSource, read_rows, unchanged
from seqtrain.sequences.sources import SPLITS, completed_schema, data_sources
from seqtrain.sequences.splits import Mask, Part, hold_out
from seqtrain.sequences.store import (
    Ints,
    SequenceStore,
    counts_of,
    joined_stores,
    true_rows,
)
from seqtrain.sequences.tokenizers import bpe_version, train_bpe
from seqtrain.sequences.vocabulary import SPECIAL
from seqtrain.sequences.word_vectors import Coverage, WordVectors
from seqtrain.text import listed, quote

UNLABELLED = "unlabelled"


@dataclass(frozen=True)
class PreparedData:
    """The encoded data of a config.

    Attributes:
        splits: Stores of train and, if the config has them, validation and test.
        preprocessing: The fitted preprocessing.
        reports: Counts of encoding. The keys are names of splits, and config keys of the files of
            pretraining.data.
        eligible_tokens: Number of distinct tokens that are frequent enough for the vocabularies. It
            counts tokens for which the vocabularies have no room.
        digests: Maps the path of each data file to its SHA-256.
        from_cache: True if the data was loaded from the cache.
        entry: Folder of the cache in which this data is saved, or None if it wasn't saved. Other
            processes load the data from there.
        unlabelled: Sequences of train and pretraining.data for pretraining, or None without
            pretraining.
        vectors: Initial word vectors, or None without model.vectors.
    """

    splits: dict[str, SequenceStore]
    preprocessing: Preprocessing
    reports: dict[str, EncodingReport]
    eligible_tokens: int
    digests: Digests
    from_cache: bool
    entry: Path | None = None
    unlabelled: SequenceStore | None = None
    vectors: WordVectors | None = None


def prepare(
    config: Config,
    *,
    cache_folder: Path | None,
    known: Preprocessing | None = None,
    read_only: bool = False,
) -> PreparedData:
    """Read, split, fit and encode the data of a config, or load it from the cache.

    Args:
        config: The config.
        cache_folder: Folder of the cache, or None for no cache.
        known: Preprocessing of an earlier model, or None. The result keeps its ids, classes and
            scales, and adds the tokens and labels of train. In this case, data is saved in the
            cache but not loaded from it.
        read_only: True to write nothing to the cache.

    Raises:
        DataError: If a file is missing, has rows that can't be used, or changes while it is read.
    """
    sources = data_sources(config)
    files = [(key, source.path) for key, source in sources]
    entry = cache_folder / _entry_name(config, files, known) if cache_folder else None
    with unchanged(source for _, source in sources):
        data = load_prepared(config, entry) if entry and known is None else None
        if data and data.digests == {source.path: source.digest() for _, source in sources}:
            return data
        data = _Preparation(config, known, sources).run()
    is_saved = entry is not None and not read_only and cache.save(entry, _entry_of(data))
    return replace(data, entry=entry if is_saved else None)


def load_prepared(config: Config, entry: Path) -> PreparedData | None:
    """Return the data that `prepare` saved in the cache, or None if it is absent or damaged.

    Args:
        config: The config for which the data was prepared.
        entry: Folder of the entry.
    """
    found = cache.load(entry)
    if found is None:
        return None
    values, parts = found.values, found.arrays
    stores = {
        name: SequenceStore.from_arrays(parts[name], tuple(zip(*files, strict=True)))
        for name, files in values["files"].items()
    }
    unlabelled = stores.pop(UNLABELLED, stores["train"])
    described, coverage = values["preprocessing"]["ngrams"], values["coverage"]
    ngrams = described and NgramVocabulary.described(described, **parts["ngrams"])
    vectors = coverage and WordVectors(**parts["vectors"], coverage=Coverage(**coverage))
    return PreparedData(
        splits=stores,
        preprocessing=Preprocessing.from_dict(values["preprocessing"], values["tokens"], ngrams),
        reports={name: EncodingReport(**report) for name, report in values["reports"].items()},
        eligible_tokens=values["eligible_tokens"],
        digests=values["digests"],
        from_cache=True,
        entry=entry,
        unlabelled=unlabelled if config.pretraining.objective is not None else None,
        vectors=vectors,
    )


def held_out_fractions(data: DataConfig) -> dict[str, Part]:
    """Return the size of each split that is held out of train, by its name.

    A size is the value of data.validation or data.test: a fraction or a fold. Fractions come before
    folds, so that the test split is the same for every fold.
    """
    both = [("validation", data.validation), ("test", data.test)]
    both.sort(key=lambda part: isinstance(part[1], dict))
    return {name: value for name, value in both if isinstance(value, float | dict)}


def _entry_of(data: PreparedData) -> cache.Entry:
    stores = dict(data.splits)
    if data.unlabelled is not None and data.unlabelled is not data.splits["train"]:
        stores[UNLABELLED] = data.unlabelled
    ngrams, vectors = data.preprocessing.ngrams, data.vectors
    arrays = {name: store.arrays() for name, store in stores.items()}
    if ngrams is not None:
        arrays["ngrams"] = {"keys": ngrams.keys, "idf": ngrams.idf}
    if vectors is not None:
        arrays["vectors"] = {"rows": vectors.rows, "values": vectors.values}
    values = {
        "files": {name: [*zip(*store.files, strict=True)] for name, store in stores.items()},
        "preprocessing": data.preprocessing.to_dict(),
        "tokens": data.preprocessing.token_lists(),
        "reports": {name: asdict(report) for name, report in data.reports.items()},
        "eligible_tokens": data.eligible_tokens,
        "digests": data.digests,
        "coverage": None if vectors is None else asdict(vectors.coverage),
    }
    return cache.Entry(values, arrays)


def _entry_name(config: Config, files: list[tuple[str, str]], known: Preprocessing | None) -> str:
    """Return the name of the cache entry. It depends on all settings that change the encoded data.

    Args:
        config: The config.
        files: Config key and path of each data file.
        known: Preprocessing of an earlier model, or None.
    """
    data, model, pretraining = config.data, config.model, config.pretraining
    recipe = {
        "data": data.model_dump(),
        "ngrams": [model.subwords, model.ngrams, model.ngrams_spelling, model.max_ngrams],
        "model": [model.vectors, model.initial_state == "carried"],
        "vectors_keep": model.vectors_keep if model.vectors else None,
        "pretraining": [pretraining.objective is not None, pretraining.data],
        "seed": config.seed if held_out_fractions(data) else None,
        "files": [os.getcwd(), *files],
        "versions": [unicodedata.unidata_version, bpe_version() if _is_bpe(data) else None],
        "known": None if known is None else [known.to_dict(), known.token_lists()],
    }
    return cache.entry_name(recipe)


def _is_bpe(data: DataConfig) -> bool:
    return (data.kind, data.tokenizer) == ("text", "bpe")


@dataclass(frozen=True)
class _Preparation:
    """Preparation of the data of a config, without the cache: see `prepare`.

    Attributes:
        config: The config.
        known: Preprocessing of an earlier model, or None.
        sources: Config key and source of each data file.
    """

    config: Config
    known: Preprocessing | None
    sources: list[tuple[str, Source]]

    def run(self) -> PreparedData:
        """Read the files of all splits, fit the preprocessing on train, and encode all rows."""
        data = self.config.data
        train = self._sources_of("data.train")
        schema = completed_schema(train)
        train = [source.with_schema(schema) for source in train]
        rules = self._rules(train[0].format, schema)
        if isinstance(train[0], TableSource):
            rules = replace(rules, label_set=LabelSet(type=train[0].label_type()))
        column = rules.sequence
        if _is_bpe(data) and isinstance(column, TextColumn) and column.bpe_model is None:
            column = replace(column, bpe_model=self._trained_bpe(rules, train))
            rules = replace(rules, sequence=column)
        encoder = rules.encoder()
        assert isinstance(encoder.labels, ProvisionalLabels)
        ids = dict[str, int]()
        read = encoder.encode_files(train, ids=ids)
        parts, reports = self._parts([*encoder.labels.combinations], *read)
        del read  # it may be large
        for key, source in self.sources:
            if key.startswith("pretraining."):
                ungrouped = source.with_schema(replace(source.schema, group=None))
                parts[key], reports[key] = encoder.encode_files([ungrouped], labelled=False)
        fitted, parts, eligible, vectors = fit(self.config, self.known, rules, encoder, parts)
        splits, unlabelled = {x: parts.pop(x) for x in SPLITS if x in parts}, None
        if self.config.pretraining.objective is not None:
            unlabelled = (
                joined_stores([splits["train"], *parts.values()]) if parts else splits["train"]
            )
        for name in ("validation", "test"):
            held = [source.with_schema(schema) for source in self._sources_of(f"data.{name}")]
            if held:
                splits[name], reports[name] = fitted.encode_files(held, learned=ids)
        digests = {source.path: source.digest() for _, source in self.sources}
        self._refuse_same_files(digests)
        _check_rows(data, splits, fitted)
        return PreparedData(
            splits=splits,
            preprocessing=fitted,
            reports=reports,
            eligible_tokens=eligible,
            digests=digests,
            from_cache=False,
            unlabelled=unlabelled,
            vectors=vectors,
        )

    def _sources_of(self, key: str) -> list[Source]:
        return [source for name, source in self.sources if name == key]

    def _rules(self, format: FileFormat, schema: Schema) -> Preprocessing:
        """Return the unfitted preprocessing. An earlier model's byte-pair merges are kept.

        Args:
            format: Format of the training files.
            schema: Schema of the training files.
        """
        data, known = self.config.data, self.known
        if format.name == IN_MEMORY:  # a model says how files are read; tables have no format
            format = replace(format, name="jsonl")
        column = column_from_config(self.config)
        if known is not None and isinstance(column, TextColumn):
            old = known.sequence
            assert isinstance(old, TextColumn)
            column = replace(column, bpe_model=old.bpe_model)
        if self.config.model.initial_state != "carried":
            schema = replace(schema, group=None)  # prediction needs no groups
        return Preprocessing(
            file_format=format,
            schema=schema,
            bad_rows=data.bad_rows,
            sequence=column,
            lengths=LengthPolicy(data.max_length, data.overlong, data.empty),
            row_features=row_features_from_config(self.config),
        )

    def _trained_bpe(self, rules: Preprocessing, sources: list[Source]) -> str:
        """Return byte-pair merges as JSON, learned from the rows of train that aren't held out.

        The files are read twice: to choose the rows, and to learn.

        Args:
            rules: The unfitted preprocessing.
            sources: The training files.
        """
        by_words = replace(
            rules,
            sequence=TextColumn(tokenizer_name="whitespace"),
            lengths=LengthPolicy(None, "head", "drop"),
        )
        encoder = by_words.encoder()
        assert isinstance(encoder.labels, ProvisionalLabels)
        rows, _ = encoder.encode_files(sources)
        learned = self._held_out([*encoder.labels.combinations], rows)[1].tolist()
        read = chain.from_iterable(map(read_rows, sources))
        texts = (str(example.sequence) for example in read if example.problem is None)
        return train_bpe(
            compress(filter(str.strip, texts), learned),
            vocab_size=self.config.data.max_vocab_size,
            lowercase=self.config.data.lowercase,
        )

    def _refuse_same_files(self, digests: Digests) -> None:
        """Raise DataError if a file of validation or test has the same content as one of train.

        Args:
            digests: Maps the path of each file to its SHA-256.
        """
        learned = {digests[x.path]: x.name for x in self._sources_of("data.train")}
        for key, source in self.sources:
            same = learned.get(digests[source.path])
            if same is None or key not in ("data.validation", "data.test"):
                continue
            is_one = isinstance(self.config.data.train, str) and len(learned) == 1
            which = "data.train" if is_one else quote(same)
            hint = "; 0.1 would hold out a tenth of train" if key == "data.validation" else ""
            raise DataError(
                f"{key}: {source.name} has the same content as {which}, so it "
                f"would score rows that were learned{hint}"
            )

    def _parts(
        self, combinations: list[Labels], read: SequenceStore, report: EncodingReport
    ) -> tuple[dict[str, SequenceStore], dict[str, EncodingReport]]:
        if not held_out_fractions(self.config.data):
            return {"train": read}, {"train": report}
        held, learned = self._held_out(combinations, read)
        rows_of = {"train": true_rows(learned), **held}
        parts = {name: read.selection(rows_of[name]) for name in SPLITS if name in rows_of}
        reports = {name: EncodingReport(rows=len(rows)) for name, rows in held.items()}
        reports["train"] = replace(report, held_out=len(read) - len(parts["train"]))
        return parts, reports

    def _held_out(
        self, combinations: list[Labels], read: SequenceStore
    ) -> tuple[dict[str, Ints], Mask]:
        """Choose the rows of train's file that are held out: see `hold_out`.

        Args:
            combinations: Tuples of labels, by their provisional numbers.
            read: Encoded rows with provisional labels.

        Returns:
            The row numbers of each held-out split, by its name. Then a mask of the rows that stay
            in train, (B,).
        """
        _, inverse = np.unique(_strata(combinations, read.labels), return_inverse=True)
        ranks: Ints = inverse.astype(np.int32)
        keys = read.keys
        if keys is not None and read.groups is not None:
            keys = np.where(read.groups < 0, keys, read.groups + 1)
        held = hold_out(
            ranks[read.labels], held_out_fractions(self.config.data), self.config.seed, keys
        )
        learned = np.ones(len(read), dtype=bool)
        for rows in held.values():
            learned[rows] = False
        return held, learned


def _check_rows(data: DataConfig, splits: dict[str, SequenceStore], fitted: Preprocessing) -> None:
    keeps = "each class must keep a row in train, and equal sequences aren't separated"
    for name, store in splits.items():
        value, problem = getattr(data, name), ""
        if len(store) and (store.labels < 0).all():
            known = listed([*map(quote, fitted.labels)])
            problem = f"none of its labels occurs in train, which has {known}"
        elif not len(store) and isinstance(value, dict):
            advice = "take fewer parts, or give more rows"
            problem = f"too few rows for {value['of']} parts: {keeps}; {advice}"
        elif not len(store) and isinstance(value, float):
            advice = "give more rows or a file, or check data.label"
            problem = f"{value:g} leaves no row for {name}: {keeps}; {advice}"
        elif not len(store):
            problem = "no rows are left, for every sequence is empty (data.empty: drop)"
        if problem:
            raise DataError(f"data.{name}: {problem}")
    if fitted.vocabulary is not None and len(fitted.vocabulary) == len(SPECIAL):
        least = data.min_count
        raise DataError(f"data.min_count: no token of train occurs {least} times; lower it")


def _strata(combinations: list[Labels], labels: Ints) -> npt.NDArray[np.str_]:
    """Return the rarest label of each combination of labels.

    `hold_out` takes it as the class of the rows with these labels.

    Args:
        combinations: Tuples of labels, by their provisional numbers.
        labels: Number of the combination of each row, (B,).
    """
    rows = Counter[str]()
    for names, count in zip(
        combinations, counts_of(labels, len(combinations)).tolist(), strict=True
    ):
        rows.update(dict.fromkeys(names, count))
    return np.array([min(names, key=lambda x: (rows[x], x), default="") for names in combinations])
