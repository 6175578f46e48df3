"""Which way to run this model is right and fastest here: all, measured in turns in one run."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqtrain.config import Config
from seqtrain.data.batching import padding_fraction, plan_epoch
from seqtrain.data.cache import default_folder
from seqtrain.data.preparation import PreparedData, check_files, prepare
from seqtrain.data.splits import stratified_split
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import ConfigError
from seqtrain.training.devices import select_device
from seqtrain.workflows.candidates import Task, alone, spread_batches
from seqtrain.workflows.equal_training import EqualTraining, learn_equally
from seqtrain.workflows.fit import resolved_config
from seqtrain.workflows.measuring import Contender, take_turns, tokens_per_second
from seqtrain.workflows.memory import check_longest, check_model
from seqtrain.workflows.peak import Peak, flops_a_token
from seqtrain.workflows.ways import WAYS, ways_for, why_left_out

SAMPLE_TOKENS = 8_000_000
"""Tokens of train that are measured on at most: as many as a fast engine takes in its time."""
PROBE_TOKENS = 20_000
"""Tokens of the sequences whose logits are compared, at most (but one sequence)."""
HELD_OUT_SHARE, HELD_OUT_ROWS = 0.1, 2_000
"""Of train, where the config has no validation; and rows that accuracy is measured on at most."""
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
        recommended: the fastest in training of those with the right logits; None if there is none.
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
    task = _prepare(resolved_config(config, device), beside)
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
        _row(name, problem, contenders.get(name), differences.get(name), learned, task, peak.flops)
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


def _prepare(config: Config, beside: Path | None) -> Task:
    """Read the data as `fit` does, and draw what is measured on."""
    device = select_device(config.training.device)
    check_files(config, beside)
    data = prepare(config, cache_folder=default_folder())
    preprocessing = data.preprocessing
    check_model(config.model, preprocessing.input_size, len(preprocessing.labels))
    check_longest(config, data.splits["train"])
    train, held_out = _hold_out(data, config.seed)
    sample = _sample(train, config)
    order = np.random.default_rng(config.seed).permutation(len(sample))
    fitting = np.cumsum(sample.lengths[order]) <= PROBE_TOKENS
    return Task(
        config=config,
        train=sample,
        held_out=held_out,
        input_size=preprocessing.input_size,
        labels=preprocessing.labels,
        device=device,
        threads=torch.get_num_threads(),
        probe=order[: min(config.batching.batch_size, max(1, int(fitting.sum())))],
    )


def _hold_out(data: PreparedData, seed: int) -> tuple[SequenceStore, SequenceStore]:
    """Return train, and what accuracy is measured on: of validation, or held out of train."""
    train, held_out = data.splits["train"], data.splits.get("validation")
    if held_out is None:
        kept, rest = stratified_split(train.labels, HELD_OUT_SHARE, seed)
        train, held_out = train.__getitems__(kept), train.__getitems__(rest)
    chosen = np.random.default_rng(seed).permutation(len(held_out))[:HELD_OUT_ROWS]
    return train, held_out.__getitems__(chosen)


def _sample(train: SequenceStore, config: Config) -> SequenceStore:
    """Return as many whole batches of an epoch as SAMPLE_TOKENS allow, at least one."""
    chosen: list[Ints] = []
    tokens = 0
    for rows in plan_epoch(train.lengths, config.batching, seed=config.seed, epoch=1):
        tokens += int(train.lengths[rows].sum())
        if chosen and tokens > SAMPLE_TOKENS:
            break
        chosen.append(rows)
    return train.__getitems__(np.concatenate(chosen))


def _differences(contenders: Mapping[str, Contender], task: Task) -> dict[str, float]:
    """Return each way's largest difference of logits from the same sequences one by one."""
    pooling = {name: WAYS[name].config(task.config).model.pooling for name in contenders}
    expected = {how: alone(task, how).numpy() for how in set(pooling.values())}
    return {
        name: float(np.abs(contender.logits - expected[pooling[name]]).max())
        for name, contender in contenders.items()
        if contender.logits is not None
    }


def _row(
    name: str,
    problem: str,
    contender: Contender | None,
    difference: float | None,
    learned: EqualTraining,
    task: Task,
    peak: float,
) -> Row:
    way, lengths = WAYS[name], task.train.lengths
    flops = flops_a_token(task.config.model)
    padding = 0.0
    if way.pads:
        padding = padding_fraction(spread_batches(lengths, way.config(task.config)), lengths)
    training, prediction = (
        None if contender is None else _speed(contender, mode, flops[mode], peak)
        for mode in ("training", "prediction")
    )
    return Row(
        name=name,
        kind=way.kind,
        setting="" if way.kind == "recipe" else way.setting,
        training=training,
        prediction=prediction,
        padding=padding,
        largest_difference=difference,
        accuracy=learned.accuracies.get(name),
        problem=problem if contender is None else contender.failure,
    )


def _speed(contender: Contender, mode: str, flops: int, peak: float) -> Speed | None:
    rate = tokens_per_second(contender.turns[mode])
    if rate is None:
        return None
    batches = sum(turn.batches for turn in contender.turns[mode])
    return Speed(rate, batches, rate * flops / peak, contender.memory[mode])


def recommend(rows: Sequence[Row]) -> tuple[str | None, str]:
    """Return the name of the fastest way in training with the right logits, and why.

    An engine is preferred where nothing else is clearly faster.
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
    reason = "the fastest to train here with the same logits"
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
