"""Proof on the user's own data that predictions don't depend on the batch or on what computes them.

The same sequences are run in many ways, and each way's logits compared with those of one sequence
at a time in torch's own module, where there is neither padding nor a batch-mate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from seqtrain.api.classifier import Classifier
from seqtrain.api.evaluate import SPLITS, read_split
from seqtrain.api.events import RunLike, path_of
from seqtrain.api.loading import load_one
from seqtrain.api.predict import input_options
from seqtrain.data.batch import Batch, collate
from seqtrain.data.plan import plan_in_order_of_length, rows_in_groups
from seqtrain.data.readers import read_examples
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import DataError, RunError
from seqtrain.evaluation.carried import CarriedStates
from seqtrain.evaluation.logits import EVALUATION_BATCHING, logits_of_batches
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.engines.choice import serving_engines
from seqtrain.model.engines.interface import ProjectedTable
from seqtrain.runs.finding import find
from seqtrain.runs.run_directory import CONFIG, RunDirectory
from seqtrain.text import Summarized

SAMPLE_ROWS, SAMPLE_STEPS, SAMPLE_LENGTH = 200, 20_000, 10_000
"""Compared at most: sequences, steps of all together, and steps of one, which is cut there."""
BATCH_SIZES = (2, 3, 8, 16, 64)
SHUFFLED_SIZE = 16
FOREIGN_FEATURE = 1e4
"""What padded steps of feature vectors hold in one of the ways; real ones are standardised."""
TOLERANCE = 1e-5
"""Largest difference of logits that rounding explains, as a share of the largest logit, or of 1."""


@dataclass(frozen=True)
class Difference:
    """How far one way's answers are from those of one sequence at a time.

    Attributes:
        way: how sequences went together.
        variant: what computed them.
        logits, probabilities: the largest absolute difference.
        labels: sequences that got another label.
    """

    way: str
    variant: str
    logits: float
    probabilities: float
    labels: int


@dataclass(frozen=True)
class Sampled:
    """What is compared.

    Attributes:
        run: the run or model folder.
        data: the file that was read.
        num_examples: sequences compared: a sample, as `sample` or `first_rows` draws it.
        available: sequences that the file holds.
        steps: steps of those compared.
        cut: sequences among these of which only the first steps were compared.
        carried: whether each starts from the state that the row before it in its group ended in.
    """

    run: Path
    data: str
    num_examples: int
    available: int
    steps: int
    cut: int
    carried: bool


@dataclass(frozen=True, repr=False)
class Check(Summarized, Sampled):
    """What was compared, and what came out.

    Attributes:
        allowed: the largest difference of logits that passes.
        differences: one for each way and variant.
    """

    allowed: float
    differences: list[Difference]

    def summary(self) -> dict[str, str]:
        """Return the verdict and what it rests on."""
        worst = max(difference.logits for difference in self.differences)
        return {
            "verdict": "passed" if self.passed else "failed",
            "largest difference of logits": f"{worst:.1e} of {self.allowed:.1e} allowed",
            "data": f"{self.num_examples:,} sequences of {self.data}",
        }

    @property
    def passed(self) -> bool:
        """Whether no way differs by more than rounding."""
        return all(difference.logits <= self.allowed for difference in self.differences)


Variant: TypeAlias = tuple[SequenceClassifier, ProjectedTable | None]
"""A network, and its vocabulary projected beforehand, as predict does for much data."""


class Batches(NamedTuple):
    """One way to put sequences together.

    Attributes:
        name: for the table.
        batches: rows of each batch.
        collate: makes a batch of rows.
    """

    name: str
    batches: list[Ints]
    collate: Callable[[SequenceStore], Batch] = collate


def check(
    run: RunLike = None,
    *,
    data: str | None = None,
    device: str = "auto",
    announce: Callable[[Sampled], None] = lambda sampled: None,
    listener: Callable[[str, float], None] = lambda doing, share: None,
) -> Check:
    """Compare a model's answers alone, in batches of all sorts, and by every engine.

    Args:
        run: a run directory, a model folder, or what `fit` returned; None: the newest run.
        data: a file of sequences, labelled or not; None: the run's test split, or the first that
            it has of validation and train.
        device: auto, cpu, cuda, cuda:N or mps.
        announce: is told what will be compared.
        listener: is told what is being done, and the share of all that is over.

    Raises:
        CheckpointError: there is no whole model there.
        ConfigError: there is no such device.
        DataError: the file is missing or has rows that can't be used.
        RunError: memory ran out, or the model's answers aren't finite.
    """
    path = find(path_of(run)).path
    classifier = load_one(path, device=device)
    network = classifier.network
    source, store = _read(path, classifier, data)
    if not len(store):
        raise DataError(f"{source}: no rows to check")
    carried = network.config.initial_state == "carried" and store.groups is not None
    rows = first_rows(store.lengths) if carried else sample(store.lengths)
    sampled = store.prefixes(rows, np.minimum(store.lengths[rows], SAMPLE_LENGTH))
    cut = int((store.lengths > SAMPLE_LENGTH)[rows].sum())
    steps = int(sampled.lengths.sum())
    subject = Sampled(path, source, len(rows), len(store), steps, cut, carried)
    announce(subject)
    input_size = classifier.preprocessing.input_size
    ways = list(_ways(sampled, input_size, sampled.groups if carried else None))
    variants = _variants(network, classifier.device)

    def logits(variant: Variant, way: Batches) -> Tensor:
        network, vocabulary = variant
        states = CarriedStates() if carried else None
        return logits_of_batches(
            network, sampled, way.batches, classifier.device, vocabulary, way.collate, states
        )

    listener("alone, torch", 0.0)
    alone = logits(variants["torch"], ways[0])
    if not bool(alone.isfinite().all()):
        raise RunError(f"{path}: the model's answers to {source} aren't finite numbers")
    pairs = [(way, name) for way in ways for name in variants]
    differences = []
    for place, (way, name) in enumerate(pairs):
        listener(f"{way.name}, {name}", place / len(pairs))
        differences.append(_difference(way.name, name, logits(variants[name], way), alone))
    allowed = TOLERANCE * max(1.0, float(alone.abs().max()))
    return Check(**vars(subject), allowed=allowed, differences=differences)


def first_rows(lengths: Ints) -> Ints:
    """Return the first rows within the limits of a sample: none lacks the row before it.

    Args:
        lengths: steps of each row, (B,).

    Returns:
        At most SAMPLE_ROWS rows with SAMPLE_STEPS steps, at least one row.
    """
    steps = np.minimum(lengths, SAMPLE_LENGTH)[:SAMPLE_ROWS].cumsum()
    return np.arange(max(1, int((steps <= SAMPLE_STEPS).sum())))


def sample(lengths: Ints) -> Ints:
    """Return rows evenly spaced in order of length, from the shortest to the longest, shuffled.

    Args:
        lengths: steps of each row, (B,).

    Returns:
        At most SAMPLE_ROWS rows with SAMPLE_STEPS steps (of a row, SAMPLE_LENGTH count at most).
    """
    order = np.argsort(lengths, kind="stable")
    lengths = np.minimum(lengths, SAMPLE_LENGTH)
    count = min(len(order), SAMPLE_ROWS)
    while True:
        places = np.linspace(len(order) - 1, 0, count).round().astype(np.int64)
        rows = order[places]
        if count <= 2 or lengths[rows].sum() <= SAMPLE_STEPS:
            return np.random.default_rng(0).permutation(rows)
        count = max(2, count * 3 // 4)


def _variants(network: SequenceClassifier, device: torch.device) -> dict[str, Variant]:
    """Return the same weights under each engine that serves them, and their own unroll, by name."""
    engines = serving_engines(network.config, device)
    ways = {engine: {"engine": engine, "unroll": "packed"} for engine in engines}
    if network.config.unroll != "packed":
        ways[network.config.unroll] = {"engine": "torch"}
    variants: dict[str, Variant] = {}
    for engine, keys in ways.items():
        variant = network.computed_by(**keys)
        variants[engine] = variant, None
        with torch.inference_mode():
            vocabulary = variant.project_vocabulary()
        if vocabulary is not None:
            variants[f"{engine}, table"] = variant, vocabulary
    return variants


def _ways(store: SequenceStore, input_size: int, groups: Ints | None) -> Iterator[Batches]:
    """Yield the ways to batch, first each sequence alone.

    Where states are carried on in groups, first come the first rows of all groups, then the second
    ones, and so on: no batch holds two of one group.
    """
    ranks = np.zeros(len(store)) if groups is None else rows_in_groups(groups)[0]
    rounds = [np.flatnonzero(ranks == rank) for rank in np.unique(ranks)]
    largest = max(map(len, rounds))
    yield Batches("alone", _cut(rounds, 1))
    for size in BATCH_SIZES:
        if size < largest:
            yield Batches(f"batches of {size}", _cut(rounds, size))
    yield Batches("all in one batch", rounds)
    draw = np.random.default_rng(1)
    shuffled = [draw.permutation(rows) for rows in rounds]
    yield Batches(f"batches of {SHUFFLED_SIZE}, shuffled", _cut(shuffled, SHUFFLED_SIZE))
    by_length = plan_in_order_of_length(store.lengths, EVALUATION_BATCHING, groups)
    yield Batches("by length, as predict", by_length)
    foreign = FOREIGN_FEATURE if store.values.ndim > 1 else input_size - 1
    padded = partial(collate_padded, value=foreign)
    name = "another token" if store.values.ndim == 1 else f"{foreign:g}"
    yield Batches(f"padded with {name}", _cut(rounds, SHUFFLED_SIZE), padded)


def collate_padded(rows: SequenceStore, *, value: float) -> Batch:
    """Collate rows for the model to sort and pack, with a value of its own behind each sequence."""
    batch = collate(rows, "module")
    padded = batch.input_ids.clone()
    padded[torch.arange(padded.shape[1], device="cpu") >= batch.lengths[:, None]] = value
    return replace(batch, inputs=padded)


def _cut(rounds: Sequence[Ints], size: int) -> list[Ints]:
    return [batch for rows in rounds for batch in np.split(rows, range(size, len(rows), size))]


def _read(path: Path, classifier: Classifier, data: str | None) -> tuple[str, SequenceStore]:
    """Return the name and the sequences of a file, as predict reads it, or of the run's split."""
    if data is None:
        run = RunDirectory(path)
        named = run.config().data if run.holds(CONFIG) else None
        split = next((name for name in SPLITS if getattr(named, name, None)), SPLITS[0])
        source, store, _ = read_split(path, classifier, split)
        return source, store
    preprocessing = classifier.preprocessing.for_prediction()
    examples = read_examples(data, input_options(preprocessing.reading, data), labelled=False)
    return data, preprocessing.encode(examples, data)[0]


def _difference(way: str, variant: str, found: Tensor, expected: Tensor) -> Difference:
    found, expected = found.double(), expected.double()
    probabilities = found.softmax(1) - expected.softmax(1)
    return Difference(
        way,
        variant,
        logits=float((found - expected).abs().max()),
        probabilities=float(probabilities.abs().max()),
        labels=int((found.argmax(1) != expected.argmax(1)).sum()),
    )
