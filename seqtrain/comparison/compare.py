"""Which variant is right and fastest for a config here: all, measured in turns in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from seqtrain.comparison.accuracy import learn_equally
from seqtrain.comparison.learners import one_by_one, typical_first
from seqtrain.comparison.recommendation import SAME, better_pooling, recommend
from seqtrain.comparison.results import Comparison, Row, Speed
from seqtrain.comparison.speed import flops_per_token, matrix_flops, measured, rate
from seqtrain.comparison.task import Task, prepare_task
from seqtrain.comparison.turns import take_turns
from seqtrain.comparison.variants import VARIANTS, usual_engine, variants_for
from seqtrain.comparison.worker_pool import Worker, worker_pool
from seqtrain.config import Config
from seqtrain.data.batching import padding_fraction
from seqtrain.errors import ConfigError
from seqtrain.training.devices import select_device
from seqtrain.workflows.fit import resolved_config

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
    peak = 0.0
    listener("reading the data", 0.0)
    with worker_pool() as pool:  # it loads torch meanwhile
        task = prepare_task(config, where, beside)
        listener(f"starting {len(names)} processes", 0.0)
        workers = pool.start(names, task)
        differences = _differences(workers, task)
        alike = [name for name, difference in differences.items() if difference <= SAME]
        started = time.monotonic()

        def before(doing: str, worker: Worker) -> None:
            nonlocal peak
            listener(f"{doing}: {worker.name}", min(1.0, (time.monotonic() - started) / seconds))
            if doing == "training" and not worker.turns[doing]:
                peak = max(peak, matrix_flops(where))

        for mode, share in SPEED_SHARES.items():
            deadline = time.monotonic() + share * seconds
            take_turns(workers.values(), mode, deadline, partial(before, mode))
        deadline = time.monotonic() + (1 - sum(SPEED_SHARES.values())) * seconds
        learned = learn_equally(workers, alike, task, deadline, partial(before, "accuracy"))
    for name, worker in workers.items():
        problems[name] = worker.failure
    flops = flops_per_token(config.model)
    rows = [
        Row(
            name=name,
            kind=VARIANTS[name].kind,
            setting=VARIANTS[name].setting(config),
            training=_speed(workers.get(name), "training", flops, peak),
            prediction=_speed(workers.get(name), "prediction", flops, peak),
            padding=_padding(name, task),
            largest_difference=differences.get(name),
            accuracy=learned.accuracies.get(name),
            problem=problem,
        )
        for name, problem in problems.items()
    ]
    recommended, reason = recommend(rows, usual_engine(config, where))
    return Comparison(
        device=str(where),
        threads=task.threads,
        rnn=config.model.rnn,
        rows=len(task.train),
        tokens=int(task.train.lengths.sum()),
        warnings=task.warnings,
        peak_flops=peak,
        flops_a_token=flops,
        candidates=rows,
        passes=learned.examples / len(task.train),
        seeds=learned.seeds,
        held_out=len(task.held_out),
        better_pooling=better_pooling(rows, len(task.held_out)),
        recommended=recommended,
        reason=reason,
        seconds=time.monotonic() - began,
    )


def _differences(workers: Mapping[str, Worker], task: Task) -> dict[str, float]:
    """Return each variant's largest difference of logits from the same sequences one by one."""
    pooling = {name: VARIANTS[name].config(task.config).model.pooling for name in workers}
    expected = {how: one_by_one(task, how).numpy() for how in set(pooling.values())}
    found = {name: worker.ask("logits", limit=START) for name, worker in workers.items()}
    return {
        name: float(np.abs(logits - expected[pooling[name]]).max())
        for name, logits in found.items()
        if logits is not None
    }


def _padding(name: str, task: Task) -> float:
    """Return the share of padding of what a variant computes in training, in [0, 1)."""
    if not VARIANTS[name].pads:
        return 0.0
    lengths = task.train.lengths
    return padding_fraction(typical_first(lengths, VARIANTS[name].config(task.config)), lengths)


def _speed(worker: Worker | None, mode: str, flops: Mapping[str, int], peak: float) -> Speed | None:
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
        share_of_peak=rate(turns) * flops[mode] / peak,
        peak_memory_bytes=turns[-1].memory,
    )
