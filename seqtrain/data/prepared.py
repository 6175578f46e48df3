"""What training needs to know of the data, and the same as stores, JSON values and arrays."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy.typing as npt

from seqtrain.config.schema import Config
from seqtrain.data.encoding import EncodingReport
from seqtrain.data.ngram_vocabulary import NgramVocabulary
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.sources import FileLines
from seqtrain.data.store import SequenceStore
from seqtrain.data.word_vectors import Coverage, WordVectors

UNLABELLED = "unlabelled"
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class PreparedData:
    """What training needs to know of the data.

    Attributes:
        splits: the stores of train and, where given, validation and test.
        preprocessing: fitted on train, its vocabulary on pretraining.data too.
        reports: what encoding did to the rows of each split, and of each file of pretraining.data.
        eligible_tokens: distinct tokens that may enter the vocabulary; 0 for features.
        digests: SHA-256 of each data file, by path as configured.
        from_cache: whether the splits were read before.
        unlabelled: what to pretrain on, where the config says so: train and pretraining.data.
        vectors: what tokens begin with, where the config names a file of word vectors.
    """

    splits: dict[str, SequenceStore]
    preprocessing: Preprocessing
    reports: dict[str, EncodingReport]
    eligible_tokens: int
    digests: dict[str, str]
    from_cache: bool
    unlabelled: SequenceStore | None = None
    vectors: WordVectors | None = None


def entry_of(data: PreparedData) -> tuple[dict[str, SequenceStore], dict[str, Any], Arrays]:
    """Return all that `from_entry` needs: stores, JSON values, and arrays, by name."""
    more = {} if data.unlabelled is None else {UNLABELLED: data.unlabelled}
    if data.unlabelled is data.splits["train"]:
        more = {}  # once is enough
    stores = data.splits | more
    vocabulary, ngrams = data.preprocessing.vocabulary, data.preprocessing.ngrams
    arrays: Arrays = {}
    if ngrams is not None:
        arrays = {"keys": ngrams.keys, "idf": ngrams.idf}
    if data.vectors is not None:
        arrays |= {"rows": data.vectors.rows, "values": data.vectors.values}
    values = {
        "preprocessing": data.preprocessing.to_json(),
        "tokens": vocabulary.tokens if vocabulary else None,
        "reports": {name: asdict(report) for name, report in data.reports.items()},
        "eligible_tokens": data.eligible_tokens,
        "files": {
            name: asdict(store.files) for name, store in stores.items() if store.files is not None
        },
        "coverage": asdict(data.vectors.coverage) if data.vectors is not None else None,
    }
    return stores, values, arrays


def from_entry(
    config: Config,
    stores: dict[str, SequenceStore],
    values: dict[str, Any],
    arrays: Arrays,
    digests: dict[str, str],
    *,
    from_cache: bool,
) -> PreparedData:
    """Build from what `entry_of` returned, its values read from JSON.

    Args:
        config: that the data was prepared for.
        stores: by name; what isn't a split is taken out of them.
        values: JSON values.
        arrays: by name.
        digests: of each data file.
        from_cache: whether the splits were read before.
    """
    for name, files in values["files"].items():
        if name in stores:
            lines = FileLines(tuple(files["names"]), tuple(files["starts"]))
            stores[name] = replace(stores[name], files=lines)
    unlabelled = stores.pop(UNLABELLED, stores["train"])
    ngrams, sizes = None, config.model.ngrams
    if sizes is not None:
        ngrams = NgramVocabulary(sizes[0], sizes[1], arrays["keys"], arrays["idf"])
    vectors = None
    if values["coverage"] is not None:
        vectors = WordVectors(arrays["rows"], arrays["values"], Coverage(**values["coverage"]))
    return PreparedData(
        splits=stores,
        unlabelled=unlabelled if config.pretraining.objective is not None else None,
        preprocessing=Preprocessing.from_json(values["preprocessing"], values["tokens"], ngrams),
        reports={name: EncodingReport(**report) for name, report in values["reports"].items()},
        eligible_tokens=values["eligible_tokens"],
        digests=digests,
        from_cache=from_cache,
        vectors=vectors,
    )
