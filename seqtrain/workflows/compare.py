"""Which way to run this model is right and fastest here: all, measured in turns in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from seqtrain.config import Config
from seqtrain.data.plan import padding_fraction
from seqtrain.errors import ConfigError
from seqtrain.inference.devices import select_device
from seqtrain.workflows.candidates import alone, spread_batches
from seqtrain.workflows.equal_training import learn_equally
from seqtrain.workflows.fit import resolved_config
from seqtrain.workflows.measuring import Contender, Nursery, measured, speed, take_turns
from seqtrain.workflows.peak import Peak, flops_a_token
from seqtrain.workflows.recommendation import SAME, Row, Speed, better_pooling, recommend
from seqtrain.workflows.task import Task, prepare_task
from seqtrain.workflows.ways import WAYS, usual_engine, ways_for, why_left_out

SPEED_SHARES = {"prediction": 0.13, "training": 0.27}
"""Of the time, for speeds: prediction's settle sooner than training's. Accuracies have the rest."""

Listener: TypeAlias = Callable[[str, float], None]


@dataclass(frozen=True)
class Comparison:
    """All ways on one config, data set and machine.

    Attributes:
        device, threads: what computed.
        rnn: cell of the model.
        rows, tokens: of the part of train that was measured on.
        warnings: what was done to rows as they were read, a line each.
        peak_flops: the machine's fastest float32 matrix product, operations a second.
        flops_a_token: of training and of prediction.
        candidates: a row each.
        passes: over these rows that accuracies were learned in; 0: there was no time for it.
        seeds: over which accuracies are means.
        held_out: sequences that accuracies are measured on.
        better_pooling: what `better_pooling` says of them; None if there is none.
        recommended: what `recommend` says of them; None if there is none.
        reason: for it, a sentence.
        seconds: the comparison took, with all that comes on top.
    """

    device: str
    threads: int
    rnn: str
    rows: int
    tokens: int
    warnings: list[str]
    peak_flops: float
    flops_a_token: dict[str, int]
    candidates: list[Row]
    passes: float
    seeds: int
    held_out: int
    better_pooling: str | None
    recommended: str | None
    reason: str
    seconds: float


def compare(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    seconds: float = 60.0,
    device: str | None = None,
    beside: Path | None = None,
    listener: Listener = lambda doing, share: None,
) -> Comparison:
    """Measure all ways to run a config's model on its data, in turns, and what each is worth.

    Every way works in a process of its own, from the same weights; nothing is written.

    Args:
        config: a Config, a mapping of its sections, or the path of a YAML file.
        seconds: for the measuring; to read the data, to start, and each way's first batches come
            on top.
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
    problems = {name: why_left_out(name, config, where) for name in ways_for(config)}
    names = [name for name, problem in problems.items() if not problem]
    listener("reading the data", 0.0)
    with Nursery() as nursery:  # it loads torch meanwhile
        task = prepare_task(config, where, beside)
        listener(f"starting {len(names)} processes", 0.0)
        contenders = nursery.start(names, task)
        differences = _differences(contenders, task)
        alike = [name for name, difference in differences.items() if difference <= SAME]
        peak = Peak(where)
        started = time.monotonic()

        def before(doing: str, contender: Contender) -> None:
            listener(f"{doing}: {contender.name}", min(1.0, (time.monotonic() - started) / seconds))
            if doing == "training" and not contender.turns[doing]:
                peak.measure()

        for mode, share in SPEED_SHARES.items():
            deadline = time.monotonic() + share * seconds
            take_turns(list(contenders.values()), mode, deadline, partial(before, mode))
        deadline = time.monotonic() + (1 - sum(SPEED_SHARES.values())) * seconds
        learned = learn_equally(contenders, alike, task, deadline, partial(before, "accuracy"))
    flops = flops_a_token(config.model)
    rows = [
        Row(
            name=name,
            kind=WAYS[name].kind,
            setting="" if WAYS[name].kind == "recipe" else WAYS[name].setting(config),
            training=_speed(contenders.get(name), "training", flops, peak),
            prediction=_speed(contenders.get(name), "prediction", flops, peak),
            padding=_padding(name, task),
            largest_difference=differences.get(name),
            accuracy=learned.accuracies.get(name),
            problem=contenders[name].failure if name in contenders else problem,
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
        peak_flops=peak.flops,
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


def _differences(contenders: Mapping[str, Contender], task: Task) -> dict[str, float]:
    """Return each way's largest difference of logits from the same sequences one by one."""
    pooling = {name: WAYS[name].config(task.config).model.pooling for name in contenders}
    expected = {how: alone(task, how).numpy() for how in set(pooling.values())}
    return {
        name: float(np.abs(contender.logits - expected[pooling[name]]).max())
        for name, contender in contenders.items()
        if contender.logits is not None
    }


def _padding(name: str, task: Task) -> float:
    """Return the share of padding of what a way computes in training, in [0, 1)."""
    if not WAYS[name].pads:
        return 0.0
    lengths = task.train.lengths
    return padding_fraction(spread_batches(lengths, WAYS[name].config(task.config)), lengths)


def _speed(
    contender: Contender | None, mode: str, flops: Mapping[str, int], peak: Peak
) -> Speed | None:
    if contender is None or not contender.turns[mode]:
        return None
    turns = measured(contender.turns[mode])
    rate, rates = speed(turns), [speed([turn]) for turn in turns]
    return Speed(
        tokens_per_second=rate,
        batches=sum(turn.batches for turn in turns),
        turns=len(turns),
        slowest=min(rates),
        fastest=max(rates),
        share_of_peak=rate * flops[mode] / peak.flops,
        peak_memory_bytes=contender.memory[mode],
    )
