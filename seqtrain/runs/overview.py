"""Summaries of the runs in a folder: differing keys of their configs, scores and times."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from seqtrain.config import values_by_key
from seqtrain.config.document import flow
from seqtrain.errors import CheckpointError, ConfigError, SeqtrainError, parameter
from seqtrain.evaluation.scores import Scores
from seqtrain.files.reading import number_at, path_problems, read_file
from seqtrain.files.saved import invalid
from seqtrain.metrics import EPOCH_METRICS, METRICS
from seqtrain.runs.run_directory import CONFIG, MEMBER, RUNS, VALIDATION, RunDirectory
from seqtrain.text import nearest, one_of, quote

OTHERS = ("started", "epochs", "best_epoch", "seconds")
"""Attributes of `RunSummary` that runs can be sorted by."""
ALIASES = {"time": "seconds", "baseline": "majority_baseline"}
"""Maps a heading of `seqtrain runs` to the name of its value, where these differ."""
SORTABLE = (*OTHERS, *EPOCH_METRICS, *(f"test.{name}" for name in EPOCH_METRICS))
"""Names of values that runs can be sorted by, in addition to the keys of their configs."""
SAVED_SCORES = TypeAdapter(Scores)
"""Reader of the scores of a split that a run saved."""


@dataclass(frozen=True)
class RunSummary:
    """Summary of one run.

    Attributes:
        path: Run directory.
        started: Time at which its config was written, in seconds since 1970.
        finished: True if the run ended. False if it is running or was interrupted.
        epochs: Number of epochs of training so far, without pretraining and refit.
        best_epoch: Number of the best epoch, from 1, or None before the first.
        seconds: Duration of the updates of these epochs and of a refit, without scoring.
        refit: True if the model was retrained on train and validation (training.refit).
        validation: Maps a metric to its value on validation at the best epoch, before a refit,
            and after calibration if training came so far; empty without validation.
        test: Maps a metric to its value on test; empty if test wasn't scored.
        config: Maps the dotted name of a key to its value; empty if the config can't be read.
    """

    path: Path
    started: float
    finished: bool
    epochs: int
    best_epoch: int | None
    seconds: float
    refit: bool
    validation: dict[str, float]
    test: dict[str, float]
    config: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the run directory. A repeat is named with its parent, as in "orders/seed-1"."""
        path = self.path
        if MEMBER.fullmatch(path.name):
            return f"{path.parent.name}/{path.name}"
        return path.name

    def value(self, name: str) -> Any:
        """Return a value of the run by name, or None if the run has none.

        Args:
            name: A name in SORTABLE, or the dotted name of a config key. The name of a metric means
                its value on validation; with "test." before it, its value on test.
        """
        if name in OTHERS:
            return getattr(self, name)
        scores = self.validation | {f"test.{score}": value for score, value in self.test.items()}
        return scores.get(name, self.config.get(name))

    def setting(self, key: str) -> str | None:
        """Return the value of a config key as YAML, or None if the config lacks the key."""
        if key in self.config:
            return flow(self.config[key])
        return None


def summarize_runs(folder: Path = RUNS) -> tuple[list[RunSummary], list[str]]:
    """Return summaries of the runs in a folder, the newest first, and problems, one line each.

    If the config of a run can't be read any more, the run is listed without it. If another file of
    a run is damaged, the run is left out. There is a problem for each of these runs. Folders
    without a config.yaml are skipped.

    Args:
        folder: Folder of run directories. Each repeat in a run directory is listed as a separate
            run.

    Raises:
        ConfigError: If the folder can't be read.
    """
    with path_problems(
        folder, ConfigError, "expected a folder of runs; train one with: seqtrain fit CONFIG"
    ):
        paths = sorted(path for path in folder.iterdir() if path.is_dir())
    for path in paths.copy():
        with suppress(OSError):
            paths += [each for each in path.iterdir() if MEMBER.fullmatch(each.name)]
    found = list[RunSummary]()
    problems = list[str]()
    for run in map(RunDirectory, paths):
        try:
            if run.holds(CONFIG):
                found.append(summarize_run(run, problems))
        except SeqtrainError as error:
            problems.append(f"left out: {error.problems[0]}")
    return sorted(found, key=lambda run: (-run.started, run.path)), problems


def summarize_run(run: RunDirectory, problems: list[str] | None = None) -> RunSummary:
    """Return the summary of a run.

    Args:
        run: Run directory with a config.yaml.
        problems: List that receives a line if the config is wrong, or None to raise an error.

    Raises:
        ConfigError: If the config is wrong and `problems` is None.
        CheckpointError: If metrics.jsonl or validation.json is damaged.
    """
    config = {}
    try:
        config = values_by_key(run.config())
    except ConfigError as error:
        if problems is None:
            raise
        problems.append(f"listed without its config: {error.problems[0]}")
    lines = run.metrics()
    epochs = [line for line in lines if line["event"] == "epoch"]
    refits = [line for line in lines if line["event"] == "refit"]
    end = next((line for line in reversed(lines) if line["event"] == "end"), None)
    best = next((epoch for epoch in reversed(epochs) if epoch.get("best") is True), None)
    best_epoch = number_at(best, "epoch")
    saved = _saved_scores(run)
    calibrated = {} if saved is None else _scores({"saved": asdict(saved)}, "saved")
    return RunSummary(
        path=run.path,
        started=(run.path / CONFIG).stat().st_mtime,
        finished=end is not None,
        epochs=len(epochs),
        best_epoch=None if best_epoch is None else int(best_epoch),
        seconds=sum(number_at(epoch, "seconds") or 0.0 for epoch in epochs + refits),
        refit=(end or {}).get("refit") is True,
        validation=_scores(best, "validation") | calibrated,
        test=_scores(end, "test"),
        config=config,
    )


def first_model_scores(run: RunDirectory) -> Scores | None:
    """Return the scores on validation of the model before a refit.

    They are those that `fit` shows, after calibration. They are the honest figures of a run without
    test, since a refit learns the rows of validation. The result is None if there was no refit, or
    if the run has a test split.

    Raises:
        ConfigError: If the config isn't valid.
        CheckpointError: If validation.json is damaged.
    """
    config = run.config()
    if not config.training.refit or config.data.test is not None:
        return None
    return _saved_scores(run)


def _saved_scores(run: RunDirectory) -> Scores | None:
    """Return the scores on validation after calibration, or None if the run saved none.

    Raises:
        CheckpointError: If validation.json is damaged.
    """
    if not run.holds(VALIDATION):
        return None
    path = run.path / VALIDATION
    try:
        scores = SAVED_SCORES.validate_json(read_file(path), strict=True)
    except ValidationError as error:
        raise CheckpointError(f"{path}: damaged: {invalid(error)}") from None
    if not scores.is_sound:
        raise CheckpointError(f"{path}: damaged: its classes differ from its labels")
    return scores


def _scores(line: dict[str, Any] | None, name: str) -> dict[str, float]:
    """Return the metrics of a split (`name`) in a line of metrics.jsonl, by the metric's name."""
    found = {score: number_at(line, name, score) for score in EPOCH_METRICS}
    return {score: value for score, value in found.items() if value is not None}


def differing_keys(runs: Sequence[RunSummary]) -> list[str]:
    """Return the config keys whose values differ between runs, in the order of the schema.

    A key that some configs lack counts as different.
    """
    names = dict.fromkeys(name for run in runs for name in run.config)
    return [name for name in names if len({run.setting(name) for run in runs}) > 1]


def sort_runs(runs: Sequence[RunSummary], name: str) -> list[RunSummary]:
    """Return runs sorted by a column of `seqtrain runs` or a key of the config.

    Scores are sorted from the best to the worst, all else in ascending order. Numbers come before
    other values. Runs without a value come last.

    Args:
        runs: The runs.
        name: A name in SORTABLE or ALIASES, a dotted key, or the last part of a key if it is
            unique. It is first searched among the keys that differ between the runs.

    Raises:
        ConfigError: If there is no such column or key. Without runs, no error is raised.
    """
    keys = dict.fromkeys(key for run in runs for key in run.config)
    found = ALIASES.get(name, name)
    if runs and found not in (*SORTABLE, *keys):
        # `seqtrain runs` shows the last word of a key that differs between runs.
        matching = [key for key in differing_keys(runs) if key.endswith(f".{name}")]
        matching = matching or [key for key in keys if key.endswith(f".{name}")]
        if len(matching) != 1:
            near = matching[0] if matching else nearest(name, [*SORTABLE, *keys])
            hint = f"did you mean {near}?" if near else f"expected a key or {one_of(SORTABLE)}"
            raise ConfigError(f"{parameter('sort')}: no key {quote(name)}; {hint}")
        found = matching[0]
    metric = METRICS.get(found.removeprefix("test."))
    is_score = metric is not None and not metric.smaller_is_better

    def order(run: RunSummary) -> tuple[int, float, str]:
        value = run.value(found)
        if isinstance(value, int | float):
            return 0, -value if is_score else value, ""
        if value is None:
            return (2, 0.0, "")
        return (1, 0.0, flow(value))

    return sorted(runs, key=order)
