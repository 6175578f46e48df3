"""Scoring a run on one of its splits, or on another labelled file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqtrain.api.labelled import Labelled, load_labelled
from seqtrain.api.predictors import check_alike, refuse_several
from seqtrain.api.run_events import RunLike, directory_of
from seqtrain.data.store import Array
from seqtrain.errors import ConfigError
from seqtrain.evaluation.logits import branch_logits, check_finite, predict_logits
from seqtrain.evaluation.metrics import Scores, one_class_doubts, score, score_branches
from seqtrain.evaluation.prefixes import score_prefixes
from seqtrain.runs.finding import members, name_one
from seqtrain.runs.run_directory import RunDirectory
from seqtrain.text import Summarized, display_name

EACH_BY_ONE = "each row is predicted by the one run that has it in this split"
SMALLEST = 1e-300
"""Probability that stands for 0, whose logarithm is no number."""
LARGEST = 1 - 1e-16


@dataclass(frozen=True, repr=False)
class Evaluation(Summarized):
    """What was scored, and how it went.

    Attributes:
        warnings: what limits the scores, a line each.
        by_share: how good predictions are after 10 %, 20 % … of each sequence, as
            `score_prefixes` returns it.
        parts: scores of each branch of the model alone, by name; of an ensemble: of each run.
        split: which of the run's config; None where a file was given.
        trained_on_rows: as in `Labelled`.
    """

    run: Path
    data: str
    scores: Scores
    warnings: list[str]
    by_share: list[dict[str, float]] | None = None
    parts: dict[str, Scores] = field(default_factory=dict)
    split: str | None = None
    ensemble: bool = False
    trained_on_rows: bool | None = None

    def summary(self) -> dict[str, str]:
        """Return what was scored, and the main figures."""
        return {"data": display_name(self.data), **self.scores.summary()}


def evaluate(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: Any = None,
    steps: bool = False,
    device: str = "auto",
) -> Evaluation:
    """Score a run's best model.

    Args:
        run: a run directory, a model folder, or what `fit` returned; None: the newest run.
        split: test, validation or train, as the run's config names them; None: test, or validation
            where there is no test.
        data: a labelled file, a pattern of several, or a table as `fit` takes it, to score on
            instead.
        steps: score also the predictions before each sequence ends.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError: there is no whole model there.
        ConfigError: the run has no such split, or there is no such device.
        DataError: the file is missing or has rows that can't be used.
        RunError: memory ran out, or a prediction isn't finite.
    """
    path = directory_of(run).path
    runs = members(path)
    if runs and steps:
        raise ConfigError(f"--steps: {name_one(path)}")
    each = [load_labelled(at, split=split, data=data, device=device) for at in runs or [path]]
    first = each[0]
    if runs:
        scores, parts = _score_together(path, each)
    else:
        one, labels = first.classifier, first.classifier.labels
        branches = branch_logits(one.network, first.store, one.device)
        given = one.network, branches, first.store, labels, [*one.thresholds.values()]
        _, scores, parts = score_branches(*given)
    warnings = list(dict.fromkeys(line for one in each for line in one.warnings))
    by_share = None
    if steps:
        refuse_several(first.classifier, "--steps")
        by_share = score_prefixes(first.classifier.network, first.store, first.classifier.device)
    return Evaluation(
        run=path,
        data=first.source,
        scores=scores,
        warnings=warnings + one_class_doubts(scores, first.split or display_name(first.source)),
        by_share=by_share,
        parts=parts,
        split=first.split,
        ensemble=bool(runs) and EACH_BY_ONE not in warnings,
        trained_on_rows=first.trained_on_rows,
    )


def _score_together(path: Path, each: Sequence[Labelled]) -> tuple[Scores, dict[str, Scores]]:
    """Score each of several classifiers, and the mean of their probabilities; or, on validation of
    folds, the prediction for each row by the one that held it out, with a warning.
    """
    check_alike([one.classifier for one in each], path)
    first, labels = each[0], each[0].classifier.labels
    lines = [one.store.lines for one in each]
    rows, shared = np.concatenate(lines), all(np.array_equal(own, lines[0]) for own in lines)
    apart = first.split == "validation" and len(np.unique(rows)) == len(rows)
    configs = (RunDirectory(one.classifier.path).config() for one in each if apart)
    pooled = apart and all(isinstance(config.data.validation, dict) for config in configs)
    if {one.source for one in each} != {first.source} or not (shared or pooled):
        raise ConfigError(
            f"--split: the runs in {path} hold out different rows; "
            "score test, or a labelled file with --data"
        )
    every = [(_probabilities(one), one.store.labels, one.store.lengths) for one in each]
    least = [[*one.classifier.thresholds.values()] for one in each]
    together = [np.concatenate(column) for column in zip(*every, strict=True)]
    if shared:
        together = [np.mean([own for own, *_ in every], axis=0), *every[0][1:]]
    else:
        first.warnings.append(EACH_BY_ONE)

    def scored(own: Sequence[Array], thresholds: Sequence[float]) -> Scores:
        probabilities, true, lengths = torch.from_numpy(own[0]), *own[1:]
        several = first.classifier.preprocessing.several
        logits = probabilities.logit() if several else probabilities.log()
        return score(logits, true, lengths, labels, thresholds, ranked=True)

    own = zip(each, every, least, strict=True)
    parts = {one.classifier.path.name: scored(found, bounds) for one, found, bounds in own}
    return scored(together, np.mean(least, axis=0).tolist()), parts


def _probabilities(one: Labelled) -> Array:
    network = one.classifier.network
    logits = check_finite(predict_logits(network, one.store, one.classifier.device), one.store)
    found: Array = network.probabilities(logits).clamp(SMALLEST, LARGEST).numpy()
    return found
