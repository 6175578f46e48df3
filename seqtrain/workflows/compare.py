"""Which way to run this model is right and fastest here: all, measured in turns in one run."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqtrain.config import Config
from seqtrain.data.batching import padding_fraction
from seqtrain.errors import ConfigError
from seqtrain.workflows.candidates import alone, spread_batches
from seqtrain.workflows.equal_training import learn_equally
from seqtrain.workflows.fit import resolved_config
from seqtrain.workflows.measuring import Contender, take_turns, tokens_per_second
from seqtrain.workflows.peak import Peak, flops_a_token
from seqtrain.workflows.task import Task, prepare_task
from seqtrain.workflows.ways import WAYS, ways_for, why_left_out

SAME = 1e-3
"""Largest difference of logits that float32's rounding may make, over thousands of steps."""
SPEED_SHARE = 0.4
"""Of the time, for speeds; accuracies have the rest."""
PREDICTION_SHARE = 1 / 3
"""Of the time for speeds: prediction's settle sooner than training's."""
AS_FAST = 1.25
"""What takes another setting must be so much faster than an engine to be recommended."""


@dataclass(frozen=True)
class Speed:
    """How fast a way was in one mode.

    Attributes:
        tokens_per_second: real steps, padding never counted.
        batches: measured.
        share_of_peak: of the machine's float32 matrix products, in [0, 1], as flops_a_token counts.
        peak_memory_bytes: the most that its process held up to then, Python and the data left out.
    """

    tokens_per_second: float
    batches: int
    share_of_peak: float
    peak_memory_bytes: int | None


@dataclass(frozen=True)
class Row:
    """What was found of one way.

    Attributes:
        name: of the way.
        kind: engine, option, recipe, wrong or pooling, as Way says.
        setting: what to write into a config to have it; empty for a recipe.
        training, prediction: speeds; None where nothing could be measured.
        padding: share of the steps computed in training that are padding, in [0, 1).
        largest_difference: of logits, from the same sequences one by one (and the same pooling).
        accuracy: on held-out sequences after equal training, in [0, 1]; None where there was none.
        problem: why it was left out or cut; empty where nothing was.
    """

    name: str
    kind: str
    setting: str
    training: Speed | None
    prediction: Speed | None
    padding: float
    largest_difference: float | None
    accuracy: float | None
    problem: str


@dataclass(frozen=True)
class Comparison:
    """All ways on one config, data set and machine.

    Attributes:
        device, threads: what computed.
        rows, tokens: of the part of train that was measured on.
        peak_flops: the machine's fastest float32 matrix product, operations a second.
        flops_a_token: of training and of prediction.
        candidates: a row each.
        passes: over these rows that accuracies were learned in; 0: there was no time for it.
        seeds: over which accuracies are means.
        held_out: sequences that accuracies are measured on.
        recommended: what `recommend` says of them; None if there is none.
        reason: for it, a sentence.
        seconds: the comparison took.
    """

    device: str
    threads: int
    rows: int
    tokens: int
    peak_flops: float
    flops_a_token: dict[str, int]
    candidates: list[Row]
    passes: float
    seeds: int
    held_out: int
    recommended: str | None
    reason: str
    seconds: float


def compare(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    seconds: float = 60.0,
    device: str | None = None,
    beside: Path | None = None,
) -> Comparison:
    """Measure all ways to run a config's model on its data, in turns, and what each is worth.

    Every way works in a process of its own (a script that calls this needs
    `if __name__ == "__main__"`), from the same weights; nothing is written.

    Args:
        config: a Config, a mapping of its sections, or the path of a YAML file.
        seconds: for the whole; only reading the data and each first batch may take longer.
        device: in place of training.device.
        beside: folder of the YAML file, for the message where a data file is missing.

    Raises:
        ConfigError, DataError: what was given is wrong.
    """
    began = time.monotonic()
    if seconds <= 0:
        raise ConfigError(f"seconds: found {seconds:g}; expected more than 0")
    task = prepare_task(resolved_config(config, device), beside)
    problems = {
        name: why_left_out(name, task.config, task.device) for name in ways_for(task.config)
    }
    differences: dict[str, float] = {}
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for name in (name for name, problem in problems.items() if not problem):
            contenders[name] = Contender(name, task)
            stack.callback(contenders[name].end)
        for contender in contenders.values():
            contender.begin()
        differences = _differences(contenders, task)
        peak = Peak(task.device)
        deadline, now = began + seconds, time.monotonic()
        for_speeds = (deadline - now) * SPEED_SHARE
        all_of_them = list(contenders.values())
        take_turns(all_of_them, "prediction", now + for_speeds * PREDICTION_SHARE, peak.measure)
        take_turns(all_of_them, "training", now + for_speeds, peak.measure)
        alike = [name for name, difference in differences.items() if difference <= SAME]
        learned = learn_equally(contenders, alike, task, deadline)
    flops = flops_a_token(task.config.model)
    rows = [
        Row(
            name=name,
            kind=WAYS[name].kind,
            setting="" if WAYS[name].kind == "recipe" else WAYS[name].setting(task.config),
            training=_speed(contenders.get(name), "training", flops, peak),
            prediction=_speed(contenders.get(name), "prediction", flops, peak),
            padding=_padding(name, task),
            largest_difference=differences.get(name),
            accuracy=learned.accuracies.get(name),
            problem=contenders[name].failure if name in contenders else problem,
        )
        for name, problem in problems.items()
    ]
    recommended, reason = recommend(rows)
    return Comparison(
        device=str(task.device),
        threads=task.threads,
        rows=len(task.train),
        tokens=int(task.train.lengths.sum()),
        peak_flops=peak.flops,
        flops_a_token=flops,
        candidates=rows,
        passes=learned.examples / len(task.train),
        seeds=learned.seeds,
        held_out=len(task.held_out),
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
    rate = None if contender is None else tokens_per_second(contender.turns[mode])
    if contender is None or rate is None:
        return None
    batches = sum(turn.batches for turn in contender.turns[mode])
    return Speed(rate, batches, rate * flops[mode] / peak.flops, contender.memory[mode])


def recommend(rows: Sequence[Row]) -> tuple[str | None, str]:
    """Return the name of the way to take, and why.

    Of those with the right logits that is the fastest in training, but for another setting or a
    recipe that isn't AS_FAST times as fast as the fastest engine: then it is that engine.
    """
    speeds = {
        row.name: row.training.tokens_per_second
        for row in rows
        if row.training and row.largest_difference is not None and row.largest_difference <= SAME
        if row.kind not in ("wrong", "pooling")
    }
    if not speeds:
        return None, "nothing could be measured in training; allow more seconds"
    engines = _of_kinds(speeds, rows, ("engine",))
    recipes = _of_kinds(speeds, rows, ("recipe",))
    best = max(speeds, key=lambda name: speeds[name])
    if engines and speeds[best] < AS_FAST * speeds[engines[0]]:
        best = engines[0]
    which = "engine" if best in engines else "way"
    reason = f"the fastest {which} to train here with the same logits"
    others, what = (recipes, "today's best recipe")
    if best in recipes:
        others, what = engines, "seqtrain's best engine"
    if others:
        reason += f", {speeds[best] / speeds[others[0]]:.1f} times {what} ({others[0]})"
    return best, reason


def _of_kinds(
    speeds: Mapping[str, float], rows: Sequence[Row], kinds: Collection[str]
) -> list[str]:
    """Return the names of some kinds, the fastest first."""
    names = [row.name for row in rows if row.kind in kinds and row.name in speeds]
    return sorted(names, key=lambda name: -speeds[name])
