"""From a config to encoded splits: read, split, fit, encode; or taken from the cache."""

import os
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.config.schema import Config, DataConfig
from seqtrain.data import cache
from seqtrain.data.column_coding import CellEncoder, ColumnCoding, fit_columns, statistics_of
from seqtrain.data.encoding import (
    Encoder,
    EncodingReport,
    LengthPolicy,
    chunks,
    class_columns,
    number_groups,
    row_keys,
)
from seqtrain.data.examples import SET, Example, Features, single_labels
from seqtrain.data.ngram_vocabulary import (
    GramColumn,
    NgramVocabulary,
    fit_ngrams,
    with_spelling,
)
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import Digests, Files, digest_of, read_examples
from seqtrain.data.sources import SPLITS, data_files, read_options, split_files
from seqtrain.data.spelling import word_grams
from seqtrain.data.splits import Part, hold_out
from seqtrain.data.store import (
    UNKNOWN_LABEL,
    Array,
    FileLines,
    GrowingArray,
    Ints,
    SequenceStore,
    blocks,
    concatenate,
    counts_of,
    joined_stores,
    true_rows,
)
from seqtrain.data.tokenizers import bpe_version, train_bpe
from seqtrain.data.vocabulary import (
    MOST_SPELLINGS,
    SPECIAL,
    UNK,
    FixedIndex,
    GrowingIndex,
    Vocabulary,
    fit_vocabulary,
    provisional_index,
)
from seqtrain.data.word_vectors import Coverage, WordVectors, read_vectors
from seqtrain.errors import DataError
from seqtrain.text import display_name, quote

UNLABELLED = "unlabelled"
SEPARATOR = "|"
"""Stands between labels where a file has lists of them."""
ONLY_SCORED = ("validation", "test")


@dataclass(frozen=True)
class PreparedData:
    """What training needs to know of the data.

    Attributes:
        splits: the stores of train and, where given, validation and test.
        reports: what encoding did to the rows of each split, and of each file of pretraining.data.
        eligible_tokens: distinct tokens that may enter the vocabulary; 0 for features.
        digests: SHA-256 of each data file, by path as configured.
        entry: of the cache, which `load_prepared` takes in another process; None: there is none.
        unlabelled: what to pretrain on, where the config says so: train and pretraining.data.
        vectors: initial word vectors, where the config names a file.
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
    config: Config, *, cache_folder: Path | None, known: Preprocessing | None = None
) -> PreparedData:
    """Read, split, fit and encode the data of a config; each file is read once.

    `known` is an older preprocessing, which is kept and grows by the tokens and labels of train;
    then the cache isn't used.

    Raises:
        DataError: a file is missing, has bad rows (all named by line), or changes meanwhile.
    """
    files = data_files(config)
    entry = cache_folder / _entry_name(config, files, known) if cache_folder else None
    data = load_prepared(config, entry) if entry and known is None else None
    if data and data.digests == {path: digest_of(path) for _, path in files}:
        return data
    data = _Preparation(config, known).run()
    content = _entry_of(data)
    is_saved = entry is not None and cache.save(entry, content)
    return replace(data, entry=entry if is_saved else None)


def load_prepared(config: Config, entry: Path) -> PreparedData | None:
    """Return data that `prepare` saved for a config as this entry; None: absent or damaged."""
    found = cache.load(entry)
    if found is None:
        return None
    values, parts = found.values, dict[str, dict[str, Array]]()
    for name, array in found.arrays.items():
        part, _, own = name.rpartition(".")
        parts.setdefault(part, {})[own] = array
    stores = {
        name: SequenceStore.from_arrays(parts[name], FileLines(tuple(names), tuple(starts)))
        for name, (names, starts) in values["files"].items()
    }
    unlabelled = stores.pop(UNLABELLED, stores["train"])
    ngrams = vectors = None
    if config.model.ngrams is not None:
        described, arrays = values["preprocessing"]["ngrams"], parts["ngrams"]
        ngrams = NgramVocabulary.described(described, arrays["keys"], arrays["idf"])
    if values["coverage"] is not None:
        arrays = parts["vectors"]
        vectors = WordVectors(arrays["rows"], arrays["values"], Coverage(**values["coverage"]))
    return PreparedData(
        splits=stores,
        preprocessing=Preprocessing.from_json(values["preprocessing"], values["tokens"], ngrams),
        reports={name: EncodingReport(**report) for name, report in values["reports"].items()},
        eligible_tokens=values["eligible_tokens"],
        digests=values["digests"],
        from_cache=True,
        entry=entry,
        unlabelled=unlabelled if config.pretraining.objective is not None else None,
        vectors=vectors,
    )


def held_out_fractions(data: DataConfig) -> dict[str, Part]:
    """Return the splits that are held out of train's file, and how much of it each is.

    A fold comes last: whichever it is, the test split is the same.
    """
    named = {"validation": data.validation, "test": data.test}
    if isinstance(data.validation, dict):
        named = {"test": data.test, "validation": data.validation}
    return {name: value for name, value in named.items() if isinstance(value, float | dict)}


def _entry_of(data: PreparedData) -> cache.Entry:
    stores = dict(data.splits)
    if data.unlabelled is not None and data.unlabelled is not data.splits["train"]:
        stores[UNLABELLED] = data.unlabelled
    ngrams, vectors = data.preprocessing.ngrams, data.vectors
    arrays: dict[str, Array] = {}
    for name, store in stores.items():
        arrays |= {f"{name}.{own}": array for own, array in store.arrays().items()}
    if ngrams is not None:
        arrays |= {"ngrams.keys": ngrams.keys, "ngrams.idf": ngrams.idf}
    if vectors is not None:
        arrays |= {"vectors.rows": vectors.rows, "vectors.values": vectors.values}
    values = {
        "files": {name: (x.files.names, x.files.starts) for name, x in stores.items() if x.files},
        "preprocessing": data.preprocessing.to_json(),
        "tokens": data.preprocessing.token_lists(),
        "reports": {name: asdict(report) for name, report in data.reports.items()},
        "eligible_tokens": data.eligible_tokens,
        "digests": data.digests,
        "coverage": None if vectors is None else asdict(vectors.coverage),
    }
    return cache.Entry(values, arrays)


def _entry_name(config: Config, files: list[tuple[str, str]], known: Preprocessing | None) -> str:
    """Return the name of the cache entry: by all that encoded data depends on but the files."""
    data, model, pretraining = config.data, config.model, config.pretraining
    recipe = {
        "data": data.model_dump(),
        "ngrams": [model.subwords, model.ngrams, model.ngrams_spelling, model.max_ngrams],
        "model": [model.vectors, model.kernels],
        "vectors_keep": model.vectors_keep if model.vectors else None,
        "pretraining": [pretraining.objective is not None, pretraining.data],
        "seed": config.seed if held_out_fractions(data) else None,
        "files": [os.getcwd(), *files],
        "versions": [unicodedata.unidata_version, bpe_version() if _is_bpe(data) else None],
        "known": None if known is None else [known.to_json(), known.token_lists()],
    }
    return cache.entry_name(recipe)


def _is_bpe(data: DataConfig) -> bool:
    return (data.kind, data.tokenizer) == ("text", "bpe")


@dataclass
class _Preparation:
    """The data of a config while they are read, held out, fitted and encoded."""

    config: Config
    known: Preprocessing | None
    digests: Digests = field(default_factory=dict)

    def run(self) -> PreparedData:
        """Read and encode all splits."""
        data, vectors = self.config.data, self.config.model.vectors
        train = split_files(data, "train")
        rules = self._rules(train)
        encoder = rules.encoder(provisional_index(), GrowingIndex())
        read = encoder.encode_files(train, digests=self.digests)
        parts, reports = self._parts([*encoder.labels], *read)
        del read  # it may be large
        more = [path for key, path in data_files(self.config) if key.startswith("pretraining.")]
        for number, path in enumerate(more):
            key, options = f"pretraining.data.{number}", read_options(data, path)
            files = [(path, replace(options, group=None))]
            encoded = encoder.encode_files(files, labelled=False, digests=self.digests)
            parts[key], reports[key] = encoded
        prepared = self._fit(rules, encoder, parts)
        splits, unlabelled = {x: prepared.splits.pop(x) for x in SPLITS if x in parts}, None
        if self.config.pretraining.objective is not None:
            others = [*prepared.splits.values()]
            unlabelled = joined_stores([splits["train"], *others]) if others else splits["train"]
        for name in ("validation", "test"):
            files = [*split_files(data, name)]
            if files:
                encoded = prepared.preprocessing.encode_files(files, self.digests)
                splits[name], reports[name] = encoded
        if vectors is not None:
            self.digests[vectors] = digest_of(vectors)
        self._refuse_same_files()
        self._check_rows(splits, prepared.preprocessing)
        return replace(prepared, splits=splits, reports=reports, unlabelled=unlabelled)

    def _rules(self, train: Files) -> Preprocessing:
        data, sizes = self.config.data, self.config.model.subwords
        merges = None if self.known is None else self.known.bpe_model
        if _is_bpe(data) and merges is None:
            merges = self._train_bpe(train)
        reading = train[0][1]
        if reading.format == "memory":  # a model says how files are read; tables have no format
            reading = replace(reading, format="jsonl")
        return Preprocessing(
            reading=reading,
            tokenizer=data.tokenizer,
            lowercase=data.lowercase,
            bpe_model=merges,
            lengths=LengthPolicy(data.max_length, data.overlong, data.empty),
            missing=data.missing,
            standardize=data.standardize,
            subwords=None if sizes is None else (sizes[0], sizes[1]),
            steps=None if data.steps is None else ColumnCoding(dict(data.steps), data.missing),
            static=None if data.static is None else ColumnCoding(dict(data.static), data.missing),
        )

    def _train_bpe(self, files: Files) -> str:
        """Learn merges from train's rows that aren't held out: files are read twice for it."""
        data, names, numbers = self.config.data, GrowingIndex(), dict[str, int]()
        found = GrowingArray(np.int64, (3,))
        for chunk in chunks(self._texts(files)):
            labels = [names[str(example.label)] for example in chunk]
            groups = number_groups([example.group for example in chunk], numbers)
            found.append_rows(np.stack((labels, row_keys(chunk), groups), axis=1))
        rows = found.build()
        learned = np.ones(len(rows), dtype=bool)
        for held in self._held_out([*names], *rows.T).values():
            learned[held] = False
        pairs = zip(self._texts(files), learned, strict=False)
        texts = (str(example.sequence) for example, is_learned in pairs if is_learned)
        return train_bpe(texts, vocab_size=data.max_vocab_size, lowercase=data.lowercase)

    def _texts(self, files: Files) -> Iterator[Example]:
        for path, options in files:
            for example in read_examples(path, options, digests=self.digests):
                if str(example.sequence).strip():
                    yield example

    def _parts(
        self, names: list[str], read: SequenceStore, report: EncodingReport
    ) -> tuple[dict[str, SequenceStore], dict[str, EncodingReport]]:
        if not held_out_fractions(self.config.data):
            return {"train": read}, {"train": report}
        assert read.keys is not None
        held = self._held_out(names, read.labels, read.keys, read.groups)
        learned = np.ones(len(read), dtype=bool)
        for rows in held.values():
            learned[rows] = False
        rows_of = {"train": true_rows(learned), **held}
        parts = {name: read.selection(rows_of[name]) for name in SPLITS if name in rows_of}
        reports = {name: EncodingReport(rows=len(rows)) for name, rows in held.items()}
        reports["train"] = replace(report, held_out=len(read) - len(parts["train"]))
        return parts, reports

    def _held_out(
        self, names: list[str], labels: Ints, keys: Ints, groups: Ints | None
    ) -> dict[str, Ints]:
        config = self.config
        _, inverse = np.unique(np.array(_strata(names, labels)), return_inverse=True)
        ranks: Ints = inverse.astype(np.int32)
        if groups is not None:
            keys = np.where(groups < 0, keys, groups + 1)
        return hold_out(ranks[labels], held_out_fractions(config.data), config.seed, keys)

    def _fit_labels(
        self, rules: Preprocessing, names: list[str], parts: dict[str, SequenceStore]
    ) -> tuple[Preprocessing, dict[str, SequenceStore]]:
        """Find the classes of train's labels, and give every row its class, or its columns."""
        train, known = parts["train"], self.known
        old = () if known is None else known.labels
        present = (names[i] for i in np.flatnonzero(counts_of(train.labels, len(names))))
        new = {label for name in present for label in single_labels(name)}
        labels = (*old, *sorted(new.difference(old)))
        class_of = FixedIndex({label: i for i, label in enumerate(labels)}, UNKNOWN_LABEL)
        several = rules.several or any(name.startswith(SET) for name in names)
        if known is not None and known.several != several:
            own, found = ("one label", "several") if several else ("several labels", "one")
            said = f"the model to go on from has {own} per row, train {found}"
            raise DataError(f"data.label: {said}")
        classes = np.array([*(class_of[name] for name in names), UNKNOWN_LABEL])
        if several:
            separator = rules.reading.label_separator or SEPARATOR
            rules = replace(rules, reading=replace(rules.reading, label_separator=separator))
            classes = class_columns([*names, None], class_of)
        return replace(rules, labels=labels), {  # the last class, at -1, is of unlabelled rows
            name: replace(part, labels=concatenate(classes[x] for x in blocks(part.labels)))
            for name, part in parts.items()
        }

    def _fit(
        self, rules: Preprocessing, encoder: Encoder, parts: dict[str, SequenceStore]
    ) -> PreparedData:
        """Fit labels and scales on train, the vocabulary on unlabelled parts too."""
        rules, parts = self._fit_labels(rules, [*encoder.labels], parts)
        fitted, eligible, vectors, train = rules, 0, None, parts["train"]
        coded: dict[str, Any] = {"static": "static", "steps": "values"}
        for name, attribute in coded.items():
            cells = getattr(encoder, name)
            if cells is not None:
                given = {key: getattr(part, attribute) for key, part in parts.items()}
                coding, found, more = self._fit_columns(name, cells, given)
                for key, array in found.items():
                    arrays: dict[str, Any] = {attribute: array}
                    parts[key] = replace(parts[key], **arrays)
                coded[name], eligible = coding, eligible + more
        fitted = replace(fitted, **{x: c for x, c in coded.items() if not isinstance(c, str)})
        if fitted.steps is not None:
            ngrams = self._fit_column_ngrams(parts["train"], fitted.steps)
            fitted = replace(fitted, ngrams=ngrams, kernels=self._fit_kernels(train.lengths))
        if fitted.kind == "features":
            fitted = self._fit_scales(fitted, train.values)
            fitted = replace(fitted, kernels=self._fit_kernels(train.lengths))
            parts = {
                name: replace(part, values=concatenate(map(fitted.scale, blocks(part.values))))
                for name, part in parts.items()
            }
        elif encoder.ids is not None:
            tokens = encoder.ids.index
            vocabulary, ids, own, vectors = self._fit_tokens(rules, tokens, parts)
            eligible += own
            if rules.subwords is not None:
                parts = _spelled(parts, rules.subwords, tokens, ids)
            for part in parts.values():
                _renumber(part.values, ids)
            ngrams = self._fit_ngrams(parts["train"], vocabulary)
            fitted = replace(fitted, vocabulary=vocabulary, ngrams=ngrams)
        return PreparedData(
            parts, fitted, {}, eligible, self.digests, from_cache=False, vectors=vectors
        )

    def _fit_columns(
        self, name: str, cells: CellEncoder, values: dict[str, Array]
    ) -> tuple[ColumnCoding, dict[str, Array], int]:
        data, known = self.config.data, None if self.known is None else self.known.codings
        return fit_columns(
            cells,
            values,
            min_count=data.min_count,
            max_size=data.max_vocab_size,
            known=None if known is None else known[name],
        )

    def _fit_kernels(self, lengths: Ints) -> tuple[int, int, int] | None:
        if self.known is not None or not self.config.model.kernels:
            return None if self.known is None else self.known.kernels
        return int(lengths.min()), int(np.median(lengths)), int(lengths.max())

    def _fit_scales(self, rules: Preprocessing, values: Features) -> Preprocessing:
        if self.known is None:
            mean, std = statistics_of(values)
            return replace(rules, mean=mean, std=std)
        if len(self.known.mean) != values.shape[1]:
            raise DataError(
                f"data.train: found {values.shape[1]} channels; the model to go on from has "
                f"{len(self.known.mean)}"
            )
        return replace(rules, mean=self.known.mean, std=self.known.std)

    def _fit_tokens(
        self, rules: Preprocessing, tokens: Mapping[str, int], parts: dict[str, SequenceStore]
    ) -> tuple[Vocabulary, npt.NDArray[np.int32], int, WordVectors | None]:
        counts = {name: counts_of(part.values, len(tokens)) for name, part in parts.items()}
        model, known = self.config.model, self.known
        vocabulary, ids, eligible = fit_vocabulary(
            [*tokens],
            np.sum([n for name, n in counts.items() if name not in ONLY_SCORED], axis=0),
            min_count=self.config.data.min_count,
            max_size=self.config.data.max_vocab_size,
            known=None if known is None else known.vocabulary,
        )
        if model.vectors is None:
            return vocabulary, ids, eligible, None
        vectors, more = read_vectors(
            model.vectors,
            vocabulary,
            keep=model.vectors_keep,
            is_token=lambda word: rules.kind == "tokens" or rules.tokens(word) == [word],
        )
        for new, word in enumerate(more, start=len(vocabulary)):
            if word in tokens:
                ids[tokens[word]] = new
        own = vectors.rows[(vectors.rows < len(vocabulary)) & (vectors.rows != UNK)]
        steps = counts["train"]
        coverage = replace(
            vectors.coverage,
            tokens=len(vocabulary) - len(SPECIAL),
            found=len(own),
            share=float(steps[np.isin(ids, vectors.rows)].sum() / max(1, steps.sum())),
        )
        grown = Vocabulary((*vocabulary.tokens, *more))
        return grown, ids, eligible, replace(vectors, coverage=coverage)

    def _fit_ngrams(self, train: SequenceStore, vocabulary: Vocabulary) -> NgramVocabulary | None:
        """Choose the n-grams of train; those of an older one go on to read what is new as <unk>."""
        model, known = self.config.model, self.known
        if known is not None and known.ngrams is not None and known.vocabulary is not None:
            return replace(known.ngrams, tokens=known.ngrams.tokens or len(known.vocabulary))
        sizes, most = model.ngrams, model.max_ngrams
        if known is not None or not isinstance(sizes, list) or not len(train):
            return None
        ngrams = fit_ngrams(train.values, train.offsets, sizes[0], sizes[1], most=most)
        if (
            not model.ngrams_spelling
            or model.subwords is None
            or train.spellings is None
            or train.words is None
        ):
            return ngrams
        words, beyond = vocabulary.grams(*model.subwords), np.array(train.spellings)
        ids = np.where(beyond < 0, train.values, len(words) + beyond.astype(np.int64))
        return with_spelling(ngrams, ids, train.offsets, words.concatenate([words, train.words]))

    def _fit_column_ngrams(
        self, train: SequenceStore, coding: ColumnCoding
    ) -> NgramVocabulary | None:
        """Choose n-grams as `_fit_ngrams` does, of columns of tokens."""
        known, sizes = self.known, self.config.model.ngrams
        if known is not None and known.ngrams is not None and known.steps is not None:
            limits = [len(vocabulary) for vocabulary in known.steps.vocabularies]
            columns = (
                x._replace(tokens=x.tokens or limits[x.column]) for x in known.ngrams.columns
            )
            return replace(known.ngrams, columns=tuple(columns))
        if known is not None or sizes is None or not len(train):
            return None
        named = sizes if isinstance(sizes, dict) else {coding.names[0]: sizes}
        chosen = tuple(GramColumn(coding.names.index(name), *x) for name, x in named.items())
        shortest, longest = (min(x.shortest for x in chosen), max(x.longest for x in chosen))
        most = self.config.model.max_ngrams
        values, ends = train.values, train.offsets
        return fit_ngrams(values, ends, shortest, longest, most=most, columns=chosen)

    def _refuse_same_files(self) -> None:
        files, digests = data_files(self.config), self.digests
        learned = {digests[path]: path for key, path in files if key == "data.train"}
        for key, path in files:
            same = learned.get(digests[path])
            if same is None or key not in ("data.validation", "data.test"):
                continue
            is_one = isinstance(self.config.data.train, str) and len(learned) == 1
            which = "data.train" if is_one else quote(same)
            hint = "; 0.1 would hold out a tenth of train" if key == "data.validation" else ""
            raise DataError(
                f"{key}: {display_name(path)} has the same content as {which}, so it "
                f"would score rows that were learned{hint}"
            )

    def _check_rows(self, splits: dict[str, SequenceStore], fitted: Preprocessing) -> None:
        keeps = "every class keeps a row in train, and equal sequences stay together"
        for name, store in splits.items():
            value, problem = getattr(self.config.data, name), ""
            if len(store) and (store.labels < 0).all():
                problem = "none of its labels occurs in train; is it another set?"
            elif not len(store) and isinstance(value, dict):
                problem = f"too few rows for {value['of']} parts: {keeps}; take fewer parts, or "
                problem += "give more rows"
            elif not len(store) and isinstance(value, float):
                problem = f"{value:g} holds out no row: {keeps}; give more rows, or see whether "
                problem += "data.label is right"
            elif not len(store):
                problem = "no rows are left, for every sequence is empty (data.empty: drop)"
            if problem:
                raise DataError(f"data.{name}: {problem}")
        if fitted.vocabulary is not None and len(fitted.vocabulary) == len(SPECIAL):
            least = self.config.data.min_count
            raise DataError(f"data.min_count: no token of train occurs {least} times; lower it")
        if len(fitted.labels) < 2:
            found = ", ".join(map(quote, fitted.labels)) or "none"
            raise DataError(
                f"data.label: all {len(splits['train'])} rows of train are of one class "
                f"({found}); expected at least two"
            )


def _strata(names: list[str], labels: Ints) -> list[str]:
    """Return the class by which rows of each name are held out: of several labels the rarest."""
    if not any(name.startswith(SET) for name in names):
        return names
    rows = Counter[str]()
    for name, count in zip(names, counts_of(labels, len(names)).tolist(), strict=True):
        rows.update(dict.fromkeys(single_labels(name), count))
    return [min(single_labels(x), key=lambda x: (rows[x], x), default="") for x in names]


def _renumber(numbers: Array, final: Array) -> None:
    for block in blocks(numbers):
        block[...] = final[block]


def _spelled(
    parts: dict[str, SequenceStore],
    sizes: tuple[int, int],
    tokens: Mapping[str, int],
    ids: npt.NDArray[np.int32],
) -> dict[str, SequenceStore]:
    left_out = np.flatnonzero(ids == UNK)
    left_out = left_out[left_out >= len(SPECIAL)][:MOST_SPELLINGS]
    names = [*tokens]
    words = word_grams((names[i] for i in left_out), *sizes)
    number = np.full(len(ids), -1, dtype=np.int32)
    number[left_out] = np.arange(len(left_out))
    return {
        name: replace(
            part, spellings=concatenate(map(number.__getitem__, blocks(part.values))), words=words
        )
        for name, part in parts.items()
    }
