"""What a data set looks like before training: sizes, lengths, padding, repeats; and warnings."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import numpy as np

from seqtrain.config.schema import BatchingConfig, DataConfig
from seqtrain.data.doubts import (
    header_doubts,
    label_doubts,
    reading_doubts,
    repeats_line,
    symbol_doubts,
)
from seqtrain.data.growing import blocks
from seqtrain.data.plan import padding_fraction, plan_epoch
from seqtrain.data.prepared import PreparedData
from seqtrain.data.splits import count_repeats, fingerprints
from seqtrain.data.store import SequenceStore
from seqtrain.data.vocabulary import SPECIAL, UNK
from seqtrain.text import counted, listed, quote

QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)


@dataclass(frozen=True)
class SplitSummary:
    """Figures of one split.

    Attributes:
        rows: sequences.
        steps: steps of all sequences.
        length_quantiles: steps at least, at 5 %, at the median, at 95 %, and at most.
        unknown: share of steps that are <unk>, in [0, 1].
        repeats: sequences that, as the model sees them, stand in train too (0 for train).
        majority: share of rows that the class most frequent in train has here: the accuracy of
            always answering it.
    """

    rows: int
    steps: int
    length_quantiles: tuple[int, ...]
    unknown: float
    repeats: int
    majority: float


def summarize(data: PreparedData) -> dict[str, SplitSummary]:
    """Return the figures of every split, by name."""
    train = data.splits["train"]
    majority = int(np.bincount(train.labels).argmax())
    known = fingerprints(train) if len(data.splits) > 1 else np.zeros(0, dtype=np.int64)
    return {
        name: SplitSummary(
            rows=len(store),
            steps=len(store.values),
            length_quantiles=tuple(
                int(q) for q in np.quantile(store.lengths, QUANTILES, method="nearest")
            ),
            unknown=unknown_share(store),
            repeats=0 if name == "train" else count_repeats(store, known),
            majority=float(np.mean(store.labels == majority)),
        )
        for name, store in data.splits.items()
    }


def unknown_share(store: SequenceStore) -> float:
    """Return the share of a store's tokens that are <unk>, in [0, 1]; 0 of feature vectors."""
    if store.values.ndim > 1:
        return 0.0
    return sum(int((block == UNK).sum()) for block in blocks(store.values)) / len(store.values)


def padding_shares(data: PreparedData, batching: BatchingConfig, seed: int) -> tuple[float, float]:
    """Return the share of padding of train in random batches and in buckets, each in [0, 1)."""
    lengths = data.splits["train"].lengths
    shares = [
        padding_fraction(
            plan_epoch(lengths, batching.model_copy(update={"bucketing": on}), seed=seed, epoch=0),
            lengths,
        )
        for on in (False, True)
    ]
    return shares[0], shares[1]


def warnings(
    data: PreparedData, summaries: dict[str, SplitSummary], settings: DataConfig
) -> list[str]:
    """Return what a user should know before trusting a score, a line each.

    Args:
        data: prepared.
        summaries: its figures.
        settings: by which it was read.
    """
    lines = []
    if "validation" not in data.splits:
        lines.append(
            "no validation split: the epoch that fits train best is kept; data.validation: 0.1 "
            "holds out a part of train to choose by, fit --folds 5 five parts in turn"
        )
    for name, report in data.reports.items():
        lines += report.notices(name)
        repeats = summaries[name].repeats if name in summaries else 0
        if repeats:
            held_out = name == "validation" and data.reports["train"].held_out > 0
            lines.append(repeats_line(name, repeats, summaries[name].rows, held_out=held_out))
    lines += reading_doubts(data) + symbol_doubts(data, settings)
    lines += header_doubts(data) + label_doubts(data)
    if data.vectors is not None:
        lines += data.vectors.coverage.doubts()
    return lines + _vocabulary_warnings(data) + _label_warnings(data, settings)


def _vocabulary_warnings(data: PreparedData) -> list[str]:
    """Say that data.max_vocab_size left tokens out, and how many there were."""
    vocabulary, vectors = data.preprocessing.vocabulary, data.vectors
    if vocabulary is None:
        return []
    own = len(vocabulary) - len(SPECIAL) - (vectors.coverage.more if vectors else 0)
    if data.eligible_tokens <= own:
        return []
    return [
        f"data.max_vocab_size: the vocabulary holds {own:,} of "
        f"{data.eligible_tokens:,} distinct tokens, the rest are <unk>; raise it, or raise "
        "data.min_count to leave out rare tokens"
    ]


def _label_warnings(data: PreparedData, settings: DataConfig) -> list[str]:
    """Look-alike labels, classes of one row, and more classes than rows to choose epochs by."""
    warnings = []
    names = data.preprocessing.labels
    by_form: dict[str, list[str]] = {}
    for name in names:
        by_form.setdefault(_plain_form(name), []).append(name)
    for alike in by_form.values():
        if len(alike) > 1:
            warnings.append(
                "labels that look alike are different classes: "
                + listed([ascii(name) for name in alike])
            )
    counts = np.bincount(data.splits["train"].labels)
    single = [quote(names[label]) for label in np.flatnonzero(counts == 1)]
    if single:
        warnings.append(f"classes with one row in train: {listed(single)}")
    held_out = data.splits.get("validation")
    if held_out is not None and len(held_out) < len(names):
        advice = "hold out more (data.validation), or see fit --folds 5"
        if isinstance(settings.validation, dict):
            advice = "fewer folds hold out more"
        warnings.append(
            f"validation: {counted(len(held_out), 'row')} for {len(names)} classes, too few to "
            f"tell epochs apart; {advice}"
        )
    return warnings


def _plain_form(label: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())
