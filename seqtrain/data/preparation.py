"""From a config to the three splits, encoded: read, split, fit, encode; or taken from the cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from seqtrain.config import resolve_format
from seqtrain.config.schema import Config, DataConfig
from seqtrain.data import cache
from seqtrain.data.digests import digest
from seqtrain.data.encoding import EncodingReport
from seqtrain.data.examples import Example, shorten
from seqtrain.data.fitting import Fitting
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import ReadOptions, read_examples
from seqtrain.data.splits import stratified_split
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.data.tokenizers import train_bpe
from seqtrain.errors import DataError


@dataclass(frozen=True)
class PreparedData:
    """What training needs to know of the data.

    Attributes:
        splits: the stores of train and, where given, validation and test.
        preprocessing: fitted on train.
        reports: what encoding did to the rows of each split.
        digests: SHA-256 of each data file, by path as configured.
        from_cache: whether the splits were read before.
    """

    splits: dict[str, SequenceStore]
    preprocessing: Preprocessing
    reports: dict[str, EncodingReport]
    digests: dict[str, str]
    from_cache: bool


def prepare(config: Config, *, cache_folder: Path | None) -> PreparedData:
    """Read, split, fit and encode the data of a config.

    Args:
        config: data paths are relative to the current directory.
        cache_folder: where encoded data is kept between runs; None: nowhere.

    Raises:
        DataError: a file is missing or has rows that can't be used; all named by line.
    """
    data = config.data
    files = [path for path in (data.train, data.validation, data.test) if isinstance(path, str)]
    digests = {path: digest(path) for path in files}
    _refuse_same_file(data, digests)
    key = cache.content_key([_description(config), list(digests.values())])
    found = cache.load(cache_folder, key) if cache_folder else None
    if found:
        splits, values = found
        reports = {name: EncodingReport(**report) for name, report in values["reports"].items()}
        preprocessing = Preprocessing.from_json(values["preprocessing"], values["tokens"])
        return PreparedData(splits, preprocessing, reports, digests, from_cache=True)
    splits, preprocessing, reports = _read(config)
    _check_classes(splits["train"], preprocessing)
    if cache_folder:
        vocabulary = preprocessing.vocabulary
        values = {
            "reports": {name: asdict(report) for name, report in reports.items()},
            "preprocessing": preprocessing.to_json(),
            "tokens": vocabulary.tokens if vocabulary else None,
        }
        cache.save(cache_folder, key, splits, values)
    return PreparedData(splits, preprocessing, reports, digests, from_cache=False)


def check_files(data: DataConfig, beside: Path | None) -> None:
    """Report all data files that don't exist, and where one stands beside the YAML instead.

    Args:
        data: the config's section; paths are relative to the current directory.
        beside: folder of the YAML file, if there is one.

    Raises:
        DataError: with a line for each missing file.
    """
    problems = []
    for name in ("train", "validation", "test"):
        path = getattr(data, name)
        if not isinstance(path, str) or Path(path).exists():
            continue
        problem = f"data.{name}: no file {shorten(path)} (tried {Path(path).absolute()})"
        if beside is not None and (beside / path).exists():
            problem += f"; paths are relative to the current directory: write {beside / path}"
        problems.append(problem)
    if problems:
        raise DataError(*problems)


def read_options(data: DataConfig, path: str) -> ReadOptions:
    """Return how a file of this config is read; each file's format goes by its own name."""
    return ReadOptions(
        format=resolve_format(path, data.format) or data.format,
        kind=data.kind,
        header=data.header,
        quoting=data.quoting,
        sequence=list(data.sequence) if isinstance(data.sequence, list) else data.sequence,
        label=data.label,
    )


def _description(config: Config) -> Any:
    """All that the encoded data depends on, but for the files' content."""
    data = config.data.model_dump(exclude={"train", "validation", "test"})
    held_out = config.data.validation if isinstance(config.data.validation, float) else None
    roles = [isinstance(path, str) for path in (config.data.validation, config.data.test)]
    formats = [
        resolve_format(path, config.data.format)
        for path in (config.data.train, config.data.validation, config.data.test)
        if isinstance(path, str)
    ]
    return [data, held_out, config.seed if held_out else None, roles, formats]


def _refuse_same_file(data: DataConfig, digests: dict[str, str]) -> None:
    for name, path in (("validation", data.validation), ("test", data.test)):
        if isinstance(path, str) and digests[path] == digests[data.train]:
            raise DataError(
                f"data.{name}: {path} has the same content as data.train, so its scores would be "
                "of rows that were learned; a number such as 0.1 holds out a part of train"
                if name == "validation"
                else f"data.{name}: {path} has the same content as data.train, so its scores "
                "would be of rows that were learned"
            )


def _read(
    config: Config,
) -> tuple[dict[str, SequenceStore], Preprocessing, dict[str, EncodingReport]]:
    """Read and encode all splits."""
    data = config.data
    fraction = data.validation if isinstance(data.validation, float) else None
    reading = read_options(data, data.train)
    bpe_model = (
        _train_bpe(config, reading) if (data.kind, data.tokenizer) == ("text", "bpe") else None
    )
    fitting = Fitting(data, reading, bpe_model)
    read, report = fitting.read(read_examples(data.train, reading), data.train)
    rows, held_out = _part(read.labels, fraction, config.seed)
    preprocessing, encoded = fitting.fit(read, rows)
    splits, reports = {"train": encoded}, {"train": report}
    if fraction is not None:
        splits = {"train": encoded.__getitems__(rows), "validation": encoded.__getitems__(held_out)}
        reports = {
            "train": replace(report, rows=len(rows)),
            "validation": EncodingReport(rows=len(held_out)),
        }
    for name, path in (("validation", data.validation), ("test", data.test)):
        if isinstance(path, str):
            options = read_options(data, path)
            splits[name], reports[name] = preprocessing.encode(read_examples(path, options), path)
    return splits, preprocessing, reports


def _part(labels: Ints, fraction: float | None, seed: int) -> tuple[Ints, Ints]:
    if fraction is None:
        return np.arange(len(labels)), np.arange(0)
    return stratified_split(labels, fraction, seed)


def _train_bpe(config: Config, reading: ReadOptions) -> str:
    """Learn merges from the training part alone: one pass for the labels, one for the texts."""
    data = config.data

    def kept() -> Iterator[Example]:
        for example in read_examples(data.train, reading):
            if str(example.sequence).strip() or data.empty == "unk":
                yield example

    fraction = data.validation if isinstance(data.validation, float) else None
    numbers: dict[str | None, int] = {}
    labels = [numbers.setdefault(example.label, len(numbers)) for example in kept()]
    rows, _ = _part(np.array(labels, dtype=np.int64), fraction, config.seed)
    chosen = np.zeros(len(labels), dtype=bool)
    chosen[rows] = True
    texts = (str(example.sequence) for example, keep in zip(kept(), chosen, strict=True) if keep)
    return train_bpe(texts, vocab_size=data.max_vocab_size, lowercase=data.lowercase)


def _check_classes(train: SequenceStore, preprocessing: Preprocessing) -> None:
    if len(preprocessing.labels) < 2:
        only = ", ".join(shorten(label) for label in preprocessing.labels)
        raise DataError(
            f"data.label: train has {len(train)} rows of one class ({only}); expected at least two"
        )
