"""What each way of `compare` is worth: all learn from as many examples, and are scored alike.

Ways whose logits are equal compute the same thing, so the fastest of them learns for all that batch
alike; each of the others learns for itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from seqtrain.workflows.measuring import PATIENCE, Contender, measured, speed
from seqtrain.workflows.task import Task
from seqtrain.workflows.ways import WAYS

APART = ("wrong", "pooling")
"""Kinds that compute something else, each for itself."""
REPEATS = 3
"""Seeds at most."""
MARGIN = 1.3
"""How much longer than expected learning may take."""


@dataclass(frozen=True)
class EqualTraining:
    """What was learned from, and what came out.

    Attributes:
        examples: of train that each learned from, each pass counted; 0: there was no time.
        seeds: how often each learned, anew.
        accuracies: on held-out sequences by way, the mean over the seeds.
    """

    examples: int = 0
    seeds: int = 0
    accuracies: Mapping[str, float] = field(default_factory=dict)


def learn_equally(
    contenders: Mapping[str, Contender],
    alike: Collection[str],
    task: Task,
    deadline: float,
    before: Callable[[Contender], None] = lambda contender: None,
) -> EqualTraining:
    """Let all ways learn in the time left, at most as long as `fit` would.

    Args:
        contenders: by name of their way, measured.
        alike: names of those whose logits are equal.
        task: what they were given.
        deadline: of time.monotonic().
        before: is called before each learns.
    """
    learners = _learners(contenders, alike, task)
    rates = [_rate(contender) for contender in learners.values()]
    if not all(rates) or not rates or not len(task.held_out):
        return EqualTraining()
    began = time.monotonic()
    length = task.train.lengths.mean()
    held_out = task.held_out.lengths.sum()
    scoring = sum(held_out / (_rate(c, "prediction") or _rate(c)) for c in learners.values())
    time_left = (deadline - began) / MARGIN - scoring
    most = task.config.training.max_epochs * len(task.train)
    examples = min(most, int(time_left / sum(length / rate for rate in rates)))
    if examples < 1:
        return EqualTraining()
    for repeat in range(1, REPEATS + 1):
        for contender in learners.values():
            if not contender.failure:
                before(contender)
                contender.learn(examples, max(0.0, deadline - time.monotonic()) + PATIENCE)
        if (time.monotonic() - began) * MARGIN * (repeat + 1) / repeat > deadline - began:
            break
    means = {
        group: sum(contender.accuracies) / len(contender.accuracies)
        for group, contender in learners.items()
        if contender.accuracies
    }
    groups = {name: _group(name, task) for name in contenders}
    return EqualTraining(
        examples,
        repeat,
        {
            name: means[group]
            for name, group in groups.items()
            if group in means and (name in alike or WAYS[name].kind in APART)
        },
    )


def _learners(
    contenders: Mapping[str, Contender], alike: Collection[str], task: Task
) -> dict[object, Contender]:
    """Return the fastest of each group of ways that learn the same."""
    learners: dict[object, Contender] = {}
    for name, contender in contenders.items():
        kind = WAYS[name].kind
        if contender.failure or kind == "recipe" or (kind not in APART and name not in alike):
            continue
        group = _group(name, task)
        if group not in learners or _rate(contender) > _rate(learners[group]):
            learners[group] = contender
    return learners


def _group(name: str, task: Task) -> object:
    """Return what a way shares with those that learn the same: the batches, where it is right."""
    way = WAYS[name]
    return name if way.kind in APART else way.config(task.config).batching.bucketing


def _rate(contender: Contender, mode: str = "training") -> float:
    return speed(measured(contender.turns[mode]))
