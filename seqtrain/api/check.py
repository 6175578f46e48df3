"""Check on the user's data that predictions don't depend on the batch or on the engine."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqtrain.api.evaluate import SPLITS, read_split
from seqtrain.api.load import load_one
from seqtrain.api.named_runs import RunLike, directory_of
from seqtrain.api.predict import input_source
from seqtrain.errors import DataError, RunError
from seqtrain.evaluation.invariance import SAMPLE_LENGTH, LogitDifference, differences, sampled
from seqtrain.evaluation.logits import carried_groups
from seqtrain.runs.run_directory import CONFIG
from seqtrain.text import Summarized

TOLERANCE = 1e-5
"""Largest difference of logits that rounding explains, as a share of the largest logit, or of 1."""


@dataclass(frozen=True, repr=False)
class Check(Summarized):
    """Result of `check`.

    Attributes:
        run: Directory of the run.
        data: Name of the data.
        num_examples: Number of sequences that were compared, a sample.
        available: Number of all sequences of the data.
        steps: Number of time steps that were compared.
        cut: Number of sequences of which only the first steps were compared.
        carried: True if each sequence starts from the state of the row before it in its group.
        allowed: Largest difference of logits that passes.
        differences: Largest difference of logits for each batching and each engine.
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
        """Return the verdict, the largest difference, and the size of the sample."""
        worst = max(difference.logits for difference in self.differences)
        return {
            "verdict": "passed" if self.passed else "failed",
            "largest difference of logits": f"{worst:.1e} of {self.allowed:.1e} allowed",
            "data": f"{self.num_examples:,} sequences of {self.data}",
        }

    def lines(self) -> list[str]:
        """Return a line that describes the data."""
        line = f"run: {self.run}, data: {self.data}, {self.num_examples:,} sequences"
        if self.num_examples < self.available:
            which = "the first" if self.carried else "evenly spaced by length"
            line += f" of {self.available:,}, {which}"
        line += f", {self.steps:,} steps"
        if self.cut:
            line += f" ({self.cut:,} sequences cut at {SAMPLE_LENGTH:,})"
        return [line + (", states carried on in their groups" if self.carried else "")]

    @property
    def passed(self) -> bool:
        """True if no difference is larger than rounding."""
        return all(difference.logits <= self.allowed for difference in self.differences)


def check(
    run: RunLike = None,
    *,
    data: Any = None,
    device: str = "auto",
    listener: Callable[[str, float], None] = lambda doing, share: None,
) -> Check:
    """Compare predictions of single sequences with those in batches of all kinds, by every engine.

    Args:
        run: As for `evaluate`.
        data: A file of sequences, or a table as `fit` takes it, with or without labels; or None for
            the first of test, validation and train that the run has.
        device: As for `evaluate`.
        listener: Function that is called before each comparison with its name and the share of the
            comparisons that is done.

    Raises:
        ConfigError, CheckpointError, DataError: As `evaluate`.
        RunError: If a prediction isn't finite.
    """
    directory = directory_of(run)
    path, classifier = directory.path, load_one(directory.path, device=device)
    if data is None:
        named = directory.config().data if directory.holds(CONFIG) else None
        split = next((name for name in SPLITS if getattr(named, name, None)), SPLITS[0])
        found = read_split(directory, classifier, split)
        source, store = found.source, found.store
    else:
        rules = classifier.preprocessing.for_prediction()
        given = input_source(data, classifier)
        source = given.name
        store = rules.encode_files([given], labelled=False)[0]
    if not len(store):
        raise DataError(f"{source}: no rows to check; give a file with sequences (--data FILE)")
    carried = carried_groups(classifier.network, store) is not None
    sample, cut = sampled(store, carried=carried)
    alone, differing = differences(classifier.network, sample, classifier.device, listener)
    if not bool(alone.isfinite().all()):
        raise RunError(f"{path}: the model's predictions for {source} aren't finite numbers")
    steps, allowed = int(sample.lengths.sum()), TOLERANCE * max(1.0, float(alone.abs().max()))
    return Check(path, source, len(sample), len(store), steps, cut, carried, allowed, differing)
