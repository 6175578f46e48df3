"""Which variant is right and fastest for a config here: all of them, measured in turns."""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from seqtrain.api.fit import resolved_config
from seqtrain.comparison.learners import one_by_one
from seqtrain.comparison.measurement import VariantRun, learn_equally, take_turns
from seqtrain.comparison.results import Comparison, VariantResult, recommend
from seqtrain.comparison.task import Task, prepare_task
from seqtrain.comparison.variants import VARIANTS, usual_engine, variants_for
from seqtrain.config import Config
from seqtrain.errors import ConfigError, SeqtrainError
from seqtrain.evaluation.devices import select_device

SPEED_SHARES = {"prediction": 0.15, "training": 0.35}
"""Of the time, for speeds: those of prediction need less. Accuracies have the rest."""

ComparisonListener: TypeAlias = Callable[[str, float], None]
"""Receives what is being done, and the share of the seconds that is over."""


def compare(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    seconds: float = 60.0,
    device: str | None = None,
    beside: Path | None = None,
    listener: ComparisonListener = lambda doing, share: None,
) -> Comparison:
    """Measure all variants of running a config's model on its data, one at a time; write nothing.

    Args:
        config: a Config, a mapping of its sections, or the path of a YAML file.
        seconds: for the measuring; reading the data and first batches come on top. Default: 60.
        device: in place of training.device.
        beside: folder of the YAML file, for the message where a data file is missing.
        listener: receives what is being done.

    Raises:
        ConfigError, DataError: what was given is wrong.
    """
    began = time.monotonic()
    if seconds <= 0:
        raise ConfigError(f"seconds: found {seconds:g}; expected more than 0")
    config = resolved_config(config, device)
    where = select_device(config.training.device)
    problems = variants_for(config, where)
    listener("reading the data", 0.0)
    task = prepare_task(config, where, beside)
    runs = {name: VariantRun(name, task) for name, problem in problems.items() if not problem}
    _check_logits(runs.values(), task)
    started = time.monotonic()

    def before(doing: str, run: VariantRun) -> None:
        listener(f"{doing}: {run.name}", min(1.0, (time.monotonic() - started) / seconds))

    for mode, share in SPEED_SHARES.items():
        take_turns(runs.values(), mode, share * seconds, partial(before, mode))
    left = (1 - sum(SPEED_SHARES.values())) * seconds  # however long first turns took
    examples = learn_equally(runs.values(), task, left, partial(before, "accuracy"))
    results = [
        runs[name].result()
        if name in runs
        else VariantResult(name, VARIANTS[name].kind, problem=why)
        for name, why in problems.items()
    ]
    recommended, reason = recommend(results, usual_engine(config, where))
    return Comparison(
        device=str(where),
        threads=task.threads,
        rnn=config.model.rnn,
        rows=len(task.train),
        tokens=int(task.train.lengths.sum()),
        warnings=task.warnings,
        candidates=results,
        passes=examples / len(task.train),
        held_out=len(task.held_out),
        recommended=recommended,
        reason=reason,
        seconds=time.monotonic() - began,
    )


def _check_logits(runs: Iterable[VariantRun], task: Task) -> None:
    """Note each variant's largest difference of logits from the same sequences one by one."""
    expected = {}
    for run in runs:
        pooling = str(run.config.model.pooling)
        if pooling not in expected:
            expected[pooling] = one_by_one(task, pooling)
        try:
            found = run.learner.logits([task.probe])
            run.largest_difference = float((found - expected[pooling]).abs().max())
        except SeqtrainError as error:
            run.problem = str(error)
