"""Which variant is right and fastest for a config here: all of them, measured in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from seqtrain.api.fit import resolved_config
from seqtrain.comparison.learners import one_by_one
from seqtrain.comparison.measurement import VariantRun, learn_equally, take_turns
from seqtrain.comparison.results import Comparison, VariantResult, recommend
from seqtrain.comparison.task import Task, prepare_task, typical_first
from seqtrain.comparison.variants import VARIANTS, usual_engine, variants_for
from seqtrain.config import Config
from seqtrain.data.plan import padding_fraction
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
    """Measure all variants of running a config's model on its data; write nothing.

    All begin with the same weights, and work in this process, one at a time.

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
    runs = [VariantRun(name, task) for name, problem in problems.items() if not problem]
    differences = _differences(runs, task)
    started = time.monotonic()

    def before(doing: str, run: VariantRun) -> None:
        listener(f"{doing}: {run.name}", min(1.0, (time.monotonic() - started) / seconds))

    for mode, share in SPEED_SHARES.items():
        take_turns(runs, mode, share * seconds, partial(before, mode))
    left = (1 - sum(SPEED_SHARES.values())) * seconds  # however long first turns took
    examples, accuracies = learn_equally(runs, task, left, partial(before, "accuracy"))
    problems |= {run.name: run.problem for run in runs}
    measured = {run.name: run for run in runs}
    results = [
        VariantResult(
            name=name,
            kind=VARIANTS[name].kind,
            setting=VARIANTS[name].setting(task.config),
            training=measured[name].speed("training") if name in measured else None,
            prediction=measured[name].speed("prediction") if name in measured else None,
            padding=_padding(name, task),
            largest_difference=differences.get(name),
            accuracy=accuracies.get(name),
            problem=problem,
        )
        for name, problem in problems.items()
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


def _differences(runs: Sequence[VariantRun], task: Task) -> dict[str, float]:
    """Return each variant's largest difference of logits from the same sequences one by one."""
    expected, found = {}, {}
    for run in runs:
        pooling = str(VARIANTS[run.name].config(task.config).model.pooling)
        if pooling not in expected:
            expected[pooling] = one_by_one(task, pooling).numpy()
        try:
            logits = run.learner.logits([task.probe]).numpy()
        except SeqtrainError as error:
            run.problem = str(error)
            continue
        found[run.name] = float(np.abs(logits - expected[pooling]).max())
    return found


def _padding(name: str, task: Task) -> float:
    """Return the share of padding in a variant's batches of training."""
    if not VARIANTS[name].pads:
        return 0.0
    plan = typical_first(task.train.lengths, VARIANTS[name].config(task.config))
    return padding_fraction(plan, task.train.lengths)
