"""The result of `fit`, forms in which functions accept a run, and the default split of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

from seqtrain.config import Config
from seqtrain.errors import ConfigError
from seqtrain.evaluation.scores import Scores
from seqtrain.runs.run_directory import CONFIG, RunDirectory, find
from seqtrain.text import Summarized

if TYPE_CHECKING:
    from seqtrain.api.classifier import Classifier
    from seqtrain.sequences.inputs import Input

NO_TEST = "there is no test split; these are predictions for validation, which chose the best epoch"


@dataclass(frozen=True, repr=False)
class Run(Summarized):
    """A finished run. `fit` returns it, and the listener receives it as the last event.

    Attributes:
        path: Run directory. Its folder `best` holds the model to predict with.
        epochs: Number of epochs of training, or of the refit if there was one.
        best_epoch: Number of the epoch of training with the best monitored value, from 1.
        best_value: Value of ``training.monitor`` on validation after the best epoch. Without
            validation it is the loss or the accuracy on train. NaN before the first epoch ends.
        stopped_early: True if the stopping rule ended training before the last epoch.
        test: Scores on test, or None without a test split.
        validation: Scores on validation of the best epoch's model, with calibration. None without a
            validation split, or if the run was resumed after the calibration.
        refit: True if a new model was trained on train and validation together. The folder `best`
            then holds this model.
        advice: Advice on how to get a better model, or None.
        branches: Maps the name of each branch to its score on test, by the metric that
            `compared_metric` returns. Empty without a test split, or if there is one branch.
        warnings: Warnings about the predictions, one line each.
        tables: Tables in memory that the run was trained on, kept so that `evaluate` can score
            them again.
    """

    path: Path
    epochs: int
    best_epoch: int
    best_value: float
    stopped_early: bool
    test: Scores | None
    validation: Scores | None = None
    refit: bool = False
    advice: str | None = None
    branches: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    tables: tuple[Input, ...] = field(default=(), compare=False)

    def summary(self) -> dict[str, str]:
        """Return path, best epoch (or epochs of a refit), and any test accuracy, by heading."""
        found = {"path": str(self.path), "best epoch": f"{self.best_epoch} of {self.epochs}"}
        if self.refit:
            found = {"path": str(self.path), "epochs of the refit": f"{self.epochs}"}
        return found | ({"test accuracy": f"{self.test.accuracy:.2%}"} if self.test else {})


RunLike: TypeAlias = Union[Run, "Classifier", str, PathLike[str], None]
"""A run directory, a model folder, what `fit` or `load` returned, or None for the newest run."""


def directory_of(run: RunLike) -> RunDirectory:
    """Return the directory of a run, or of the newest run with a model if `run` is None.

    A path isn't checked to hold a run. The directory of a classifier is the one that it was loaded
    from. It needn't exist, because an estimator has none.

    Raises:
        CheckpointError: If there is no such directory, or no run at all.
        ConfigError: If `run` is of another type.
    """
    if run is None:
        return find(None)
    if isinstance(run, str | PathLike):
        return find(Path(run))
    if isinstance(run, Run):
        return find(run.path)
    path = getattr(run, "path", None)
    if not isinstance(path, Path):
        if hasattr(run, "classifier_"):
            own = "; pass its classifier_"
        else:
            own = ""
        raise ConfigError(
            f"run: found {type(run).__name__}; expected a run directory, a model folder, or what "
            f"fit or load returned{own}"
        )
    return RunDirectory(path)


def default_split(*runs: RunLike, or_train: bool = False) -> str:
    """Return the split to score by default.

    It is "test", or "validation" if every run has that split and some run has no test split. If
    some run has neither, it is "test". Model folders have no splits and are ignored.

    Args:
        runs: The runs.
        or_train: True to return "train" if some run has neither.

    Raises:
        CheckpointError: If a directory doesn't exist.
        ConfigError: If the config of a run isn't valid.
    """
    configs = [run.config() for run in (directory_of(run) for run in runs) if run.holds(CONFIG)]
    for name in ("test", "validation"):
        if all(getattr(config.data, name) is not None for config in configs):
            return name
    return "train" if or_train else "test"


def learned_rows(config: Config, split: str | None) -> str:
    """Return words for a message if the model was trained on the rows of a split, else "".

    A model is trained on train, and with ``training.refit`` also on validation.

    Args:
        config: Config of the run.
        split: test, validation, train, or None for other data.
    """
    if split == "validation" and config.training.refit:
        return "these rows too (training.refit)"
    if split == "train":
        return "these rows"
    return ""
