"""`seqtrain.check`: a check that predictions for data don't depend on the batch or the engine."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqtrain.api.classifier import Classifier, load, one_model
from seqtrain.api.evaluate import read_split
from seqtrain.api.named_runs import RunLike, default_split, directory_of
from seqtrain.api.prediction_input import input_parts
from seqtrain.errors import DataError, RunError, parameter
from seqtrain.evaluation.invariance import LogitDifference, differences, sampled
from seqtrain.model.carried import carried_groups
from seqtrain.sequences.encoder import encode_for_prediction
from seqtrain.sequences.store import SequenceStore, stacked
from seqtrain.text import Summarized, counted

LOGIT_TOLERANCE = 1e-5
"""Largest difference of logits due to rounding, divided by max(1, largest absolute logit)."""


@dataclass(frozen=True, repr=False)
class Check(Summarized):
    """Result of `check`.

    Attributes:
        run: Directory of the run.
        data: Name of the file, files or table that was read.
        num_examples: Number of sequences that were compared: all of the data, or a sample.
        available: Number of all sequences of the data.
        steps: Total number of time steps of the compared sequences.
        cut: Number of long sequences of which only the first steps were compared.
        carried: True if a sequence starts from the final state of the row before it in its group
            (``model.initial_state: carried``).
        allowed: Largest difference of logits that passes the check.
        differences: Largest differences for each kind of batches and each engine.
    """

    run: Path
    data: str
    num_examples: int
    available: int
    steps: int
    cut: int
    carried: bool
    allowed: float
    differences: list[LogitDifference]

    def summary(self) -> dict[str, str]:
        """Return the verdict, the largest difference, and the data, as texts by heading."""
        return {
            "verdict": "passed" if self.passed else "failed",
            "largest difference of logits": f"{self.worst.logits:.1e} of {self.allowed:.1e} "
            "allowed",
            "data": f"{counted(self.num_examples, 'sequence')} of {self.data}",
        }

    @property
    def worst(self) -> LogitDifference:
        """The largest difference of logits."""
        return max(self.differences, key=lambda each: each.logits)

    @property
    def passed(self) -> bool:
        """True if no difference of logits exceeds `allowed`."""
        return self.worst.logits <= self.allowed


def check(
    run: RunLike = None,
    *,
    data: Any = None,
    device: str = "auto",
    listener: Callable[[str, float], None] = lambda doing, share: None,
) -> Check:
    """Compare a model's logits of single sequences with its logits in many kinds of batches.

    Every engine that can run the model on the device computes every kind of batch. If there is much
    data, a sample is compared (`SAMPLE_ROWS`, `SAMPLE_STEPS`, `SAMPLE_LENGTH`).

    Args:
        run: A run directory, a model folder, what `fit` or `load` returned, or None for the newest
            run.
        data: A file of sequences, or a table as `fit` takes it, with or without labels. None for
            the first split that the run has of test, validation and train.
        device: auto, cpu, cuda, cuda:N or mps.
        listener: Function that is called before each comparison. Its arguments are the name of the
            comparison and the share of all comparisons that are done, in [0, 1].

    Raises:
        CheckpointError: If there is no complete model, or `run` is a model folder without `data`.
            Also if the split was held out of files that changed.
        ConfigError: If there is no such device, or the directory holds several runs.
        DataError: If a file is missing, has rows that can't be used, or has no rows.
        RunError: If memory ran out, or a prediction isn't finite.
    """
    path = directory_of(run).path
    classifier = one_model(load(run, device=device))
    source, store = _sequences_of(run, classifier, data)
    network = classifier.network
    carried = carried_groups(network, store) is not None
    sample, cut = sampled(store, carried=carried)
    logits, found_differences = differences(network, sample, classifier.device, listener)
    if not bool(logits.isfinite().all()):
        raise RunError(f"{path}: the model's predictions for {source} aren't finite numbers")
    return Check(
        run=path,
        data=source,
        num_examples=len(sample),
        available=len(store),
        steps=int(sample.lengths.sum()),
        cut=cut,
        carried=carried,
        allowed=LOGIT_TOLERANCE * max(1.0, float(logits.abs().max())),
        differences=found_differences,
    )


def _sequences_of(run: RunLike, classifier: Classifier, data: Any) -> tuple[str, SequenceStore]:
    """Return the name and the encoded sequences of the data for `check`.

    Raises:
        DataError: If there are none, or a row can't be used.
    """
    if data is None:
        found = read_split(directory_of(run), classifier, default_split(run, or_train=True))
        source = found.source
        stores = [found.store]
    else:
        parts, source = input_parts(data, classifier.preprocessing)
        rules = classifier.preprocessing.for_prediction()
        stores = [store for _, store in encode_for_prediction(rules, parts, source)]
    if not any(map(len, stores)):
        raise DataError(
            f"{source}: no rows to check; give a file with sequences ({parameter('data', 'FILE')})"
        )
    return source, stacked(stores)
