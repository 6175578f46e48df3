"""Summaries of the runs in a folder: differing keys of their configs, scores and times."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqtrain.config import values_by_key
from seqtrain.config.document import flow
from seqtrain.errors import ConfigError, SeqtrainError
from seqtrain.files.reading import number_at, path_problems
from seqtrain.metrics import EPOCH_METRICS, METRICS
from seqtrain.runs.run_directory import CONFIG, MEMBER, RUNS, RunDirectory
from seqtrain.text import nearest, one_of, quote

OTHERS = ("started", "epochs", "best_epoch", "seconds")
ALIASES = {"time": "seconds"}
"""Headings of `seqtrain runs` that differ from the name of the value."""
SORTABLE = (*OTHERS, *EPOCH_METRICS, *(f"test.{name}" for name in EPOCH_METRICS))
"""Values that runs can be sorted by, in addition to the keys of their configs."""


@dataclass(frozen=True)
class RunSummary:
    """Summary of one run.

    Attributes:
        started: Time at which its config was written, in seconds since 1970.
        finished: True if the run ended.
        epochs, best_epoch: Number of epochs, and the best one.
        seconds: Time of these epochs and of training.refit.
        refit: True if the model was retrained on train and validation (training.refit).
        validation: Scores at the best epoch, before a refit.
        config: Value of each key, by its dotted name; empty if the config can't be read.
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
        """Name of its directory. A repeat has the name of the parent directory before it."""
        path = self.path
        return f"{path.parent.name}/{path.name}" if MEMBER.fullmatch(path.name) else path.name

    def value(self, name: str) -> Any:
        """Return a score, another column of `seqtrain runs`, or the value of a key, or None."""
        if name in OTHERS:
            return getattr(self, name)
        scores = self.validation | {f"test.{score}": value for score, value in self.test.items()}
        return scores.get(name, self.config.get(name))

    def setting(self, key: str) -> str | None:
        """Return the value of a key as YAML."""
        return flow(self.config[key]) if key in self.config else None


def summarize_runs(folder: Path = RUNS) -> tuple[list[RunSummary], list[str]]:
    """Return the runs in a folder, the newest first, and a line for each file that is wrong.

    A run whose config can't be read any more, for example because its data moved, has no config.
    """
    advice = "expected a folder of runs; train one with: seqtrain fit CONFIG"
    with path_problems(folder, ConfigError, advice):
        paths = sorted(path for path in folder.iterdir() if path.is_dir())
    for path in paths.copy():
        with suppress(OSError):
            paths += [each for each in path.iterdir() if MEMBER.fullmatch(each.name)]
    found, problems = list[RunSummary](), list[str]()
    for run in map(RunDirectory, paths):
        try:
            if run.holds(CONFIG):
                found.append(summarize_run(run, problems))
        except SeqtrainError as error:
            problems.append(f"left out: {error.problems[0]}")
    return sorted(found, key=lambda run: (-run.started, run.path)), problems


def summarize_run(run: RunDirectory, problems: list[str] | None = None) -> RunSummary:
    """Return the summary of a run.

    If its config is wrong, a line is added to `problems`, or the error is raised if that is None.
    """
    config: dict[str, Any] = {}
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
    return RunSummary(
        path=run.path,
        started=(run.path / CONFIG).stat().st_mtime,
        finished=end is not None,
        epochs=len(epochs),
        best_epoch=None if best_epoch is None else int(best_epoch),
        seconds=sum(number_at(epoch, "seconds") or 0.0 for epoch in epochs + refits),
        refit=(end or {}).get("refit") is True,
        validation=_scores(best, "validation"),
        test=_scores(end, "test"),
        config=config,
    )


def _scores(line: dict[str, Any] | None, name: str) -> dict[str, float]:
    found = {score: number_at(line, name, score) for score in EPOCH_METRICS}
    return {score: value for score, value in found.items() if value is not None}


def differing_keys(runs: Sequence[RunSummary]) -> list[str]:
    """Return the keys whose values aren't the same in all runs, in the order of the schema."""
    names = dict.fromkeys(name for run in runs for name in run.config)
    return [name for name in names if len({run.setting(name) for run in runs}) > 1]


def sort_runs(runs: Sequence[RunSummary], name: str) -> list[RunSummary]:
    """Return runs sorted by a column of `seqtrain runs` or a key of the config.

    Scores are sorted from the best to the worst, all else in ascending order. Runs without a value
    come last.
    """
    name = ALIASES.get(name, name)
    names = [*SORTABLE, *dict.fromkeys(key for run in runs for key in run.config)]
    if name not in names:
        # `seqtrain runs` shows the last word of a key that differs between runs.
        matching = [key for key in differing_keys(runs) if key.endswith(f".{name}")]
        matching = matching or [key for key in names if key.endswith(f".{name}")]
        name = matching[0] if len(matching) == 1 else name
    if runs and name not in names:
        near = matching[0] if matching else nearest(name, names)
        hint = f"did you mean {near}?" if near else f"expected a key or {one_of(SORTABLE)}"
        raise ConfigError(f"--sort: no key {quote(name)}; {hint}")
    metric = METRICS.get(name.removeprefix("test."))
    is_score = metric is not None and not metric.smaller_is_better

    def order(run: RunSummary) -> tuple[int, float, str]:
        value = run.value(name)
        if isinstance(value, int | float):
            return 0, -value if is_score else value, ""
        return (2, 0.0, "") if value is None else (1, 0.0, flow(value))

    return sorted(runs, key=order)
