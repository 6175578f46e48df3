"""Which variant is right and fastest for a config here: all, measured in turns in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from seqtrain.api.fit import resolved_config
from seqtrain.comparison.accuracy import EqualTraining, learn_equally
from seqtrain.comparison.learners import one_by_one, typical_first
from seqtrain.comparison.recommendation import SAME, better_pooling, recommend
from seqtrain.comparison.results import Comparison, Row, Speed
from seqtrain.comparison.speed import flops_per_token, matrix_flops, measured, rate
from seqtrain.comparison.task import Task, prepare_task
from seqtrain.comparison.turns import take_turns
from seqtrain.comparison.variants import VARIANTS, usual_engine, variants_for
from seqtrain.comparison.worker_pool import Worker, worker_pool
from seqtrain.config import Config
from seqtrain.data.plan import padding_fraction
from seqtrain.errors import ConfigError
from seqtrain.evaluation.devices import select_device

SPEED_SHARES = {"prediction": 0.15, "training": 0.35}
"""Of the time, for speeds: prediction's settle sooner than training's. Accuracies have the rest."""
START = 60.0
"""Seconds that a process may take until it has its first logits."""

Listener: TypeAlias = Callable[[str, float], None]


def compare(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    seconds: float = 60.0,
    device: str | None = None,
    beside: Path | None = None,
    listener: Listener = lambda doing, share: None,
) -> Comparison:
    """Measure all variants of running a config's model on its data, and what each is worth.

    Every variant works in a process of its own, from the same weights; nothing is written.

    Args:
        config: a Config, a mapping of its sections, or the path of a YAML file.
        seconds: for the measuring; to read the data, to start, and each variant's first batches
            come on top.
        device: in place of training.device.
        beside: folder of the YAML file, for the message where a data file is missing.
        listener: is told what is being done, and the share of the seconds that is over.

    Raises:
        ConfigError, DataError: what was given is wrong.
        RunError: processes can't be started here.
    """
    began = time.monotonic()
    if seconds <= 0:
        raise ConfigError(f"seconds: found {seconds:g}; expected more than 0")
    config = resolved_config(config, device)
    where = select_device(config.training.device)
    problems = variants_for(config, where)
    names = [name for name, problem in problems.items() if not problem]
    listener("reading the data", 0.0)
    with worker_pool() as pool:  # it loads torch meanwhile
        task = prepare_task(config, where, beside)
        listener(f"starting {len(names)} processes", 0.0)
        workers = pool.start(names, task)
        found = _measure(workers, task, seconds, listener)
    problems |= {name: worker.failure for name, worker in workers.items()}
    rows = [
        _row(name, problem, workers.get(name), task, found) for name, problem in problems.items()
    ]
    recommended, reason = recommend(rows, usual_engine(config, where))
    return Comparison(
        device=str(where),
        threads=task.threads,
        rnn=config.model.rnn,
        rows=len(task.train),
        tokens=int(task.train.lengths.sum()),
        warnings=task.warnings,
        peak_flops=found.peak,
        flops_a_token=flops_per_token(config.model),
        candidates=rows,
        passes=found.learned.examples / len(task.train),
        seeds=found.learned.seeds,
        held_out=len(task.held_out),
        better_pooling=better_pooling(rows, len(task.held_out)),
        recommended=recommended,
        reason=reason,
        seconds=time.monotonic() - began,
    )


class _Found(NamedTuple):
    """What was found beside turns: differences of logits, accuracies, and the machine's peak."""

    differences: dict[str, float]
    learned: EqualTraining
    peak: float


def _measure(
    workers: Mapping[str, Worker], task: Task, seconds: float, listener: Listener
) -> _Found:
    """Let all variants classify the probe, predict and train in turns, and learn equally."""
    differences = _differences(workers, task)
    alike = [name for name, difference in differences.items() if difference <= SAME]
    started, peaks = time.monotonic(), [0.0]

    def before(doing: str, worker: Worker) -> None:
        listener(f"{doing}: {worker.name}", min(1.0, (time.monotonic() - started) / seconds))
        if doing == "training" and not worker.turns[doing]:
            peaks.append(matrix_flops(task.device))

    for mode, share in SPEED_SHARES.items():
        deadline = time.monotonic() + share * seconds
        take_turns(workers.values(), mode, deadline, partial(before, mode))
    deadline = time.monotonic() + (1 - sum(SPEED_SHARES.values())) * seconds
    learned = learn_equally(workers, alike, task, deadline, partial(before, "accuracy"))
    return _Found(differences, learned, max(peaks))


def _differences(workers: Mapping[str, Worker], task: Task) -> dict[str, float]:
    """Return each variant's largest difference of logits from the same sequences one by one."""
    pooling = {name: str(VARIANTS[name].config(task.config).model.pooling) for name in workers}
    expected = {how: one_by_one(task, how).numpy() for how in set(pooling.values())}
    found = {name: worker.ask("logits", limit=START) for name, worker in workers.items()}
    return {
        name: float(np.abs(logits - expected[pooling[name]]).max())
        for name, logits in found.items()
        if logits is not None
    }


def _row(name: str, problem: str, worker: Worker | None, task: Task, found: _Found) -> Row:
    """Return what was found of one variant."""
    variant, lengths = VARIANTS[name], task.train.lengths
    plan = typical_first(lengths, variant.config(task.config)) if variant.pads else []
    return Row(
        name=name,
        kind=variant.kind,
        setting=variant.setting(task.config),
        training=_speed(worker, "training", task, found.peak),
        prediction=_speed(worker, "prediction", task, found.peak),
        padding=padding_fraction(plan, lengths),
        largest_difference=found.differences.get(name),
        accuracy=found.learned.accuracies.get(name),
        problem=problem,
    )


def _speed(worker: Worker | None, mode: str, task: Task, peak: float) -> Speed | None:
    if worker is None or not worker.turns[mode]:
        return None
    turns = measured(worker.turns[mode])
    rates = [rate([turn]) for turn in turns]
    return Speed(
        tokens_per_second=rate(turns),
        batches=sum(turn.batches for turn in turns),
        turns=len(turns),
        slowest=min(rates),
        fastest=max(rates),
        share_of_peak=rate(turns) * flops_per_token(task.config.model)[mode] / peak,
        peak_memory_bytes=turns[-1].memory,
    )
