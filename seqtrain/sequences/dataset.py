"""Preparation of the data of a config: read, split, fit and encode."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from seqtrain.config.schema import Config, DataConfig
from seqtrain.errors import DataError
from seqtrain.sequences.columns.scaling import LAST, MASK
from seqtrain.sequences.columns.tables import ColumnTable
from seqtrain.sequences.columns.tokens import TokenSequence
from seqtrain.sequences.encoder import Encoder, EncodingReport
from seqtrain.sequences.fitting import fit_preprocessing
from seqtrain.sequences.inputs import Input, digests_of, unchanged
from seqtrain.sequences.labels import Labels, LabelSet
from seqtrain.sequences.lengths import LengthPolicy
from seqtrain.sequences.loading import Loader, load_inputs
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.pretrained import PretrainedEncoder, default_cache
from seqtrain.sequences.schema import EVERY, Schema
from seqtrain.sequences.sentinels import sentinel_doubts, sentinels_of
from seqtrain.sequences.sources import SPLITS, Digests, completed_schema, data_sources
from seqtrain.sequences.splits import PartSize, hold_out
from seqtrain.sequences.store import SequenceStore, counts_of, joined_stores, true_rows
from seqtrain.sequences.tokenizers import BPE, train_bpe
from seqtrain.sequences.vocabulary import SPECIAL
from seqtrain.sequences.word_vectors import WordVectors
from seqtrain.tables.blocks import REST, Array, Ints
from seqtrain.text import listed, quote


@dataclass(frozen=True)
class PreparedData:
    """The encoded data of a config.

    Attributes:
        splits: Stores of train and, if the config has them, validation and test.
        preprocessing: The fitted preprocessing.
        reports: Counts of encoding. The keys are names of splits, and config keys of the files of
            pretraining.data.
        digests: Maps the path of each data file to its SHA-256.
        unlabelled: Sequences of train and pretraining.data for pretraining, or None without
            pretraining.
        vectors: Initial word vectors, or None without model.vectors.
    """

    splits: dict[str, SequenceStore]
    preprocessing: Preprocessing
    reports: dict[str, EncodingReport]
    digests: Digests
    unlabelled: SequenceStore | None = None
    vectors: WordVectors | None = None


def prepare(
    config: Config,
    *,
    known: Preprocessing | None = None,
    lenient: bool = False,
) -> PreparedData:
    """Read, split, fit and encode the data of a config.

    Args:
        config: The config.
        known: Preprocessing of an earlier model, or None. The result keeps its ids, classes and
            scales, and adds the tokens and labels of train.
        lenient: True to leave out all rows that can't be used, and to count them. False to raise
            an error for them, unless the config drops bad rows.

    Raises:
        DataError: If a file is missing, has rows that can't be used, or changes while it is read.
    """
    sources = data_sources(config)
    with unchanged(source for _, source in sources):
        return _Preparation(config, known, _with_schemas(sources), lenient).run()


def _with_schemas(sources: list[tuple[str, Input]]) -> list[tuple[str, Input]]:
    """Return the data files of a config with the schema by which each is read.

    The files of all splits have that of train, each in its own form. Files of pretraining.data have
    neither labels nor groups and weights.
    """
    trained = completed_schema([source for key, source in sources if key == "data.train"])
    found = []
    for key, source in sources:
        own = source.schema
        labelled = True
        if key.startswith("data."):
            own = replace(trained, format=own.format, whole_files=own.whole_files)
        elif key.startswith("pretraining."):
            own = replace(own, group=None, weight=None)
            labelled = False
        found.append((key, replace(source, schema=own, labelled=labelled)))
    return found


def weighted(data: PreparedData, config: DataConfig, weights: Array) -> PreparedData:
    """Return the data with weights of the rows of train, which multiply those of data.weight.

    Rows of train that are held out for other splits have them, too.

    Args:
        data: Prepared splits. Train is one table.
        config: Section of the config with the splits.
        weights: Weight of each row of the table, in its order.
    """
    splits = dict(data.splits)
    for name in ("train", *held_out_fractions(config)):
        store = splits[name]
        own = weights[store.lines - 1].astype(np.float32)
        splits[name] = replace(store, weights=own if store.weights is None else own * store.weights)
    return replace(data, splits=splits)


def unfitted(config: Config, schema: Schema, known: Preprocessing | None = None) -> Preprocessing:
    """Return the unfitted preprocessing of a config.

    Args:
        config: The config.
        schema: Schema of the training files.
        known: Preprocessing of an earlier model, or None. Its byte-pair merges are kept.
    """
    data = config.data
    if schema.sequence != REST:  # a list begins after all other columns
        schema = replace(schema, weight=None)
        if config.model.initial_state != "carried":
            schema = replace(schema, group=None)  # prediction needs no groups
    features = None
    if data.static is not None:
        missing = MASK if data.missing == LAST else data.missing
        features = ColumnTable.from_kinds("static", data.static, missing)  # type: ignore[arg-type]
    return Preprocessing(
        schema=replace(schema, join=schema.join_names()),
        sequence=_column(config, known),
        lengths=LengthPolicy(data.max_length, data.overlong, data.empty),
        row_features=features,
        pretrained=_encoder(config, known),
    )


def _encoder(config: Config, known: Preprocessing | None) -> PretrainedEncoder | None:
    """Return the frozen encoder of a config, that of the earlier model if it is the same one."""
    if config.model.pretrained is None:
        return None
    encoder = PretrainedEncoder(
        config.model.pretrained, config.training.device, cache=default_cache()
    )
    old = None if known is None else known.pretrained
    if old is not None and old.digest == encoder.digest:
        return old
    return encoder


def _column(config: Config, known: Preprocessing | None) -> TokenSequence | ColumnTable:
    data = config.data
    sizes = config.model.subwords
    if data.kind == "features":
        return ColumnTable("features", missing=data.missing, standardize=data.standardize)
    if data.kind == "steps":
        return ColumnTable.from_kinds("steps", data.steps or {}, data.missing, data.standardize)
    subwords = None if sizes is None else (sizes[0], sizes[1])
    if data.kind == "tokens":
        return TokenSequence(None, subwords=subwords)
    merges = None
    if known is not None and isinstance(known.sequence, TokenSequence):
        merges = known.sequence.bpe_model
    return TokenSequence(data.tokenizer, data.lowercase, merges, subwords)


def held_out_fractions(data: DataConfig) -> dict[str, PartSize]:
    """Return the size of each split that is held out of train, by its name.

    A size is the value of data.validation or data.test: a fraction or a fold. Fractions come before
    folds, so that the test split is the same for every fold.
    """
    both = [("validation", data.validation), ("test", data.test)]
    both.sort(key=lambda part: isinstance(part[1], dict))
    return {name: value for name, value in both if isinstance(value, float | dict)}


@dataclass(frozen=True)
class _Preparation:
    """Preparation of the data of a config: see `prepare`.

    Attributes:
        config: The config.
        known: Preprocessing of an earlier model, or None.
        sources: Config key and input of each data file.
        lenient: True to leave out all rows that can't be used.
    """

    config: Config
    known: Preprocessing | None
    sources: list[tuple[str, Input]]
    lenient: bool

    def run(self) -> PreparedData:
        """Read the files of all splits, fit the preprocessing on train, and encode all rows."""
        train = self._inputs("data.train")
        rules = self._with_merges(unfitted(self.config, train[0].schema, self.known), train)
        labels = train[0].labels()
        loader = Loader(Encoder(rules), labels, lenient=self.lenient)
        read, report = loader.load(train)
        report.remarks += labels.notices()
        report.remarks += sentinel_doubts(_numbers_read(rules, read), self.config.data.na_values)
        if train[0].table is not None:
            rules = replace(rules, label_set=LabelSet(type=labels.type))
        parts, reports = self._parts(labels.combinations, read, report)
        del read  # it may be large
        for key, source in self.sources:
            if key.startswith("pretraining."):
                parts[key], reports[key] = Loader(loader.encoder, None).load([source])
        try:
            fitted, parts, vectors = fit_preprocessing(
                self.config, self.known, rules, loader.encoder, labels, parts
            )
        except DataError as error:  # rows that were left out may be the cause
            raise DataError(*error.problems, *reports["train"].notices("train")) from None
        parts = {name: fitted.with_vectors(part) for name, part in parts.items()}
        splits = {x: parts.pop(x) for x in SPLITS if x in parts}
        unlabelled = None
        if self.config.pretraining.objective is not None:
            if parts:
                unlabelled = joined_stores([splits["train"], *parts.values()])
            else:
                unlabelled = splits["train"]
        for name in ("validation", "test"):
            held = self._inputs(f"data.{name}")
            if held:
                splits[name], reports[name] = load_inputs(
                    fitted,
                    held,
                    learned=loader.ids,
                    lenient=self.lenient,
                    groups=loader.encoder.groups,
                )
        if rules.pretrained is None:
            known = {}
        else:
            known = rules.pretrained.digests
        digests = digests_of((source for _, source in self.sources), known)
        self._refuse_same_files(digests)
        _check_rows(self.config.data, splits, fitted, reports)
        return PreparedData(
            splits=splits,
            preprocessing=fitted,
            reports=reports,
            digests=digests,
            unlabelled=unlabelled,
            vectors=vectors,
        )

    def _inputs(self, key: str) -> list[Input]:
        return [source for name, source in self.sources if name == key]

    def _with_merges(self, rules: Preprocessing, inputs: list[Input]) -> Preprocessing:
        """Return the preprocessing with byte-pair merges, if its tokenizer needs them.

        They are learned from the rows of train that aren't held out.

        Args:
            rules: The unfitted preprocessing.
            inputs: The training files.
        """
        data = self.config.data
        column = rules.sequence
        if not isinstance(column, TokenSequence) or column.tokenizer_name != BPE:
            return rules
        if column.bpe_model is not None:
            return rules
        words = TokenSequence("whitespace", lowercase=data.lowercase)
        by_words = replace(rules, sequence=words, lengths=LengthPolicy(None, "head", "drop"))
        labels = inputs[0].labels()
        encoder = Encoder(by_words, keeps_texts=True)
        rows, _ = Loader(encoder, labels, lenient=self.lenient).load(inputs)
        assert rows.texts is not None
        texts = rows.texts[self._split_rows(labels.combinations, rows)["train"]].tolist()
        merges = train_bpe(texts, vocab_size=data.max_vocab_size, lowercase=data.lowercase)
        return replace(rules, sequence=replace(column, bpe_model=merges))

    def _refuse_same_files(self, digests: Digests) -> None:
        """Raise DataError if a file of validation or test has the same content as one of train.

        Args:
            digests: Maps the path of each file to its SHA-256.
        """
        learned = {digests[x.path]: x.name for x in self._inputs("data.train")}
        for key, source in self.sources:
            same = learned.get(digests[source.path])
            if same is None or key not in ("data.validation", "data.test"):
                continue
            is_one = isinstance(self.config.data.train, str) and len(learned) == 1
            which = "data.train" if is_one else quote(same)
            if key == "data.validation":
                hint = "; 0.1 would hold out a tenth of train"
            else:
                hint = ""
            raise DataError(
                f"{key}: {source.name} has the same content as {which}, so it "
                f"would score rows that were learned{hint}"
            )

    def _parts(
        self, combinations: list[Labels], read: SequenceStore, report: EncodingReport
    ) -> tuple[dict[str, SequenceStore], dict[str, EncodingReport]]:
        if not held_out_fractions(self.config.data):
            return {"train": read}, {"train": report}
        rows_of = self._split_rows(combinations, read)
        parts = {name: read.__getitems__(rows_of[name]) for name in SPLITS if name in rows_of}
        reports = {name: EncodingReport(rows=len(part)) for name, part in parts.items()}
        reports["train"] = replace(report, held_out=len(read) - len(parts["train"]))
        return parts, reports

    def _split_rows(self, combinations: list[Labels], read: SequenceStore) -> dict[str, Ints]:
        """Return the row numbers of each split in train's file, by its name: see `hold_out`.

        Args:
            combinations: Tuples of labels, by their temporary numbers.
            read: Encoded rows with temporary labels.
        """
        # Rows that can't be used may have numbers, too. They mustn't change the choice.
        used, rows = np.unique(read.labels, return_inverse=True)
        strata = _strata(combinations, read.labels)[used]
        ranks: Ints = np.unique(strata, return_inverse=True)[1][rows].astype(np.int32)
        keys = read.keys
        if keys is not None and read.groups is not None:
            keys = np.where(read.groups < 0, keys, read.groups + 1)
        found = hold_out(ranks, held_out_fractions(self.config.data), self.config.seed, keys)
        is_learned = np.ones(len(read), dtype=bool)
        for rows in found.values():
            is_learned[rows] = False
        return {"train": true_rows(is_learned), **found}


def _numbers_read(rules: Preprocessing, store: SequenceStore) -> dict[str, Array]:
    """Return the numbers of each column before the fit, under its name in data.na_values.

    The name is "" for lists of numbers. Of several channels, the one with most numbers such as -999
    is returned.
    """
    found = dict[str, Array]()
    schema = rules.schema
    for table in (rules.sequence, rules.row_features):
        if not isinstance(table, ColumnTable):
            continue
        columns = table.observed(getattr(store, table.array)).T[len(table.tokens) :]
        if table.kind != "features":
            kinds = {**(schema.static or {}), **(schema.steps or {})}
            named = zip(table.numbers, columns, strict=True)
            found |= {x.name: own for x, own in named if kinds[x.name] != "order"}
        elif schema.is_wide or len(schema.sequence_columns) > len(columns):
            found[EVERY] = columns
        elif len(columns):
            found[""] = max(columns, key=lambda own: len(sentinels_of(own)))
    return found


def _check_rows(
    data: DataConfig,
    splits: dict[str, SequenceStore],
    fitted: Preprocessing,
    reports: dict[str, EncodingReport],
) -> None:
    keeps = "each class must keep a row in train, and equal sequences aren't separated"
    for name, store in splits.items():
        value = getattr(data, name)
        problem = ""
        if len(store) and (store.labels < 0).all():
            known = listed(list(map(quote, fitted.labels)))
            own = sorted(reports[name].unknown_names)
            found = listed(list(map(quote, own)))
            problem = f"none of its labels ({found}) occurs in train, which has {known}"
            if {label.casefold() for label in own} <= {x.casefold() for x in fitted.labels}:
                problem += "; they differ only in case"
            problem += f"; spell the labels of both alike, or name another file for {name}"
        elif not len(store) and isinstance(value, float | dict):
            if isinstance(value, float):
                part = f"{value:g}"
            else:
                part = f"a part of {value['of']}"
            problem = (
                f"{part} leaves no row for {name}: {keeps}; give more rows or a file, or check "
                "data.label"
            )
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
        combinations: Tuples of labels, by their temporary numbers.
        labels: Number of the combination of each row, (B,).
    """
    rows = Counter[str]()
    for names, count in zip(
        combinations, counts_of(labels, len(combinations)).tolist(), strict=True
    ):
        rows.update(dict.fromkeys(names, count))
    return np.array([min(names, key=lambda x: (rows[x], x), default="") for names in combinations])
