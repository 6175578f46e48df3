"""Which way to run this model is fastest here: all candidates, measured in turns in one run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqtrain.config import Config
from seqtrain.data.batching import plan_epoch
from seqtrain.data.cache import default_folder
from seqtrain.data.preparation import check_files, prepare
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import ConfigError, RunError
from seqtrain.training.devices import select_device
from seqtrain.workflows.candidates import ENGINES, RECIPES, REFERENCE, Task, why_left_out
from seqtrain.workflows.fit import resolved_config
from seqtrain.workflows.measuring import Contender, take_turns, tokens_per_second
from seqtrain.workflows.memory import check_longest, check_model
from seqtrain.workflows.peak import Peak, flops_a_token

SAMPLE_TOKENS = 4_000_000
"""Tokens of train that are measured on at most: as many as a fast engine takes in its time."""
PROBE_TOKENS = 20_000
"""Tokens of the sequences whose logits are compared, at most (but one sequence)."""
SAME = 1e-3
"""Largest difference of logits that float32's rounding may make, over thousands of steps."""
PREDICTION_SHARE = 1 / 3
"""Of the time: prediction's rates settle sooner than training's."""


@dataclass(frozen=True)
class Speed:
    """How fast a candidate was in one mode.

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
    """What was found of one candidate.

    Attributes:
        name: of the engine or recipe.
        kind: engine or recipe.
        training, prediction: speeds; None where nothing could be measured.
        largest_difference: of logits, from the torch engine's.
        problem: why it was left out or cut; empty where nothing was.
    """

    name: str
    kind: str
    training: Speed | None
    prediction: Speed | None
    largest_difference: float | None
    problem: str


@dataclass(frozen=True)
class Comparison:
    """All candidates on one config, data set and machine.

    Attributes:
        device, threads: what computed.
        rows, tokens: of the part of train that was measured on.
        peak_flops: the machine's fastest float32 matrix product, operations a second.
        flops_a_token: of training and of prediction.
        candidates: a row each.
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
    """Measure engines and recipes on a config's data and model, in turns.

    Every candidate trains and predicts in a process of its own (a script that calls this needs
    `if __name__ == "__main__"`), from the same weights; nothing is written.

    Args:
        config: a Config, a mapping of its sections, or the path of a YAML file.
        seconds: for the whole; only reading the data and each first batch may take longer.
        device: in place of training.device.
        beside: folder of the YAML file, for the message where a data file is missing.

    Raises:
        ConfigError, DataError: what was given is wrong.
        RunError: the reference failed, so that nothing can be compared.
    """
    began = time.monotonic()
    if seconds <= 0:
        raise ConfigError(f"seconds: found {seconds:g}; expected more than 0")
    task = _prepare(resolved_config(config, device), beside)
    problems = {name: why_left_out(name, task.config, task.device) for name in (*ENGINES, *RECIPES)}
    with ExitStack() as stack:
        contenders = []
        for name in (name for name, problem in problems.items() if not problem):
            contenders.append(Contender(name, task))
            stack.callback(contenders[-1].end)
        peak = Peak(task.device)
        deadline, now = began + seconds, time.monotonic()
        middle = now + (deadline - now) * PREDICTION_SHARE
        take_turns(contenders, "prediction", middle, peak.measure)
        take_turns(contenders, "training", deadline, peak.measure)
    flops = flops_a_token(task.config.model)
    rows = _rows(problems, contenders, flops, peak.flops)
    recommended, reason = recommend(rows)
    return Comparison(
        device=str(task.device),
        threads=task.threads,
        rows=len(task.train),
        tokens=int(task.train.lengths.sum()),
        peak_flops=peak.flops,
        flops_a_token=flops,
        candidates=rows,
        recommended=recommended,
        reason=reason,
        seconds=time.monotonic() - began,
    )


def _prepare(config: Config, beside: Path | None) -> Task:
    """Read the data as `fit` does, and draw what is measured on."""
    device = select_device(config.training.device)
    check_files(config, beside)
    data = prepare(config, cache_folder=default_folder())
    preprocessing, train = data.preprocessing, data.splits["train"]
    check_model(config.model, preprocessing.input_size, len(preprocessing.labels))
    check_longest(config, train)
    sample = _sample(train, config)
    order = np.random.default_rng(config.seed).permutation(len(sample))
    fitting = np.cumsum(sample.lengths[order]) <= PROBE_TOKENS
    return Task(
        config=config,
        train=sample,
        input_size=preprocessing.input_size,
        labels=preprocessing.labels,
        device=device,
        threads=torch.get_num_threads(),
        probe=order[: min(config.batching.batch_size, max(1, int(fitting.sum())))],
    )


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


def _rows(
    problems: dict[str, str], contenders: Sequence[Contender], flops: dict[str, int], peak: float
) -> list[Row]:
    found = {contender.name: contender for contender in contenders}
    reference = found[REFERENCE].logits
    if reference is None:
        raise RunError(f"the {REFERENCE} engine failed: {found[REFERENCE].failure}")
    rows = []
    for name, problem in problems.items():
        contender = found.get(name)
        kind = "engine" if name in ENGINES else "recipe"
        if contender is None:
            rows.append(Row(name, kind, None, None, None, problem))
            continue
        difference = None
        if contender.logits is not None:
            difference = float(np.abs(contender.logits - reference).max())
        training, prediction = (
            _speed(contender, mode, flops[mode], peak) for mode in ("training", "prediction")
        )
        rows.append(Row(name, kind, training, prediction, difference, contender.failure))
    return rows


def _speed(contender: Contender, mode: str, flops: int, peak: float) -> Speed | None:
    rate = tokens_per_second(contender.turns[mode])
    if rate is None:
        return None
    batches = sum(turn.batches for turn in contender.turns[mode])
    return Speed(rate, batches, rate * flops / peak, contender.memory[mode])


def recommend(rows: Sequence[Row]) -> tuple[str | None, str]:
    """Return the name of the fastest candidate in training with the right logits, and why."""
    speeds = {
        row.name: row.training.tokens_per_second
        for row in rows
        if row.training and row.largest_difference is not None and row.largest_difference <= SAME
    }
    if not speeds:
        return None, "nothing could be measured in training; allow more seconds"
    best = max(speeds, key=lambda name: speeds[name])
    others = {
        name: speed for name, speed in speeds.items() if (name in ENGINES) != (best in ENGINES)
    }
    reason = "the fastest to train here with the same logits"
    if others:
        second = max(others, key=lambda name: others[name])
        other = "today's best recipe" if second in RECIPES else "seqtrain's best engine"
        reason += f", {speeds[best] / others[second]:.1f} times {other} ({second})"
    return best, reason
