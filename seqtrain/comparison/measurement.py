"""Variants measured in turns, so that noise of the machine hits all alike; and their accuracies."""

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle, islice

import torch
import torch._dynamo  # the first optimizer would load it, in seconds

from seqtrain.comparison.learners import SeqtrainLearner, make_learner
from seqtrain.comparison.results import Speed, VariantResult
from seqtrain.comparison.task import Task, typical_first
from seqtrain.comparison.variants import VARIANTS
from seqtrain.data.plan import padding_fraction, plan_epoch
from seqtrain.data.store import Ints
from seqtrain.errors import SeqtrainError
from seqtrain.training.schedule import budget

MODES = ("prediction", "training")
TURN = 0.15
"""Seconds of a turn, or one batch where that takes longer."""
LONGEST = 10.0
"""Seconds that a batch may take in any case."""
MARGIN = 1.5
"""How much longer than expected a turn, or learning, may take."""
WARM_UP = (2, 8)
"""Sequences of two small batches before a variant's first turn; the second one is timed."""


class VariantRun:
    """A variant at work; `problem` says why it can't go on, and is empty while it can."""

    def __init__(self, name: str, task: Task) -> None:
        self.name, self.problem, self.task = name, "", task
        self.config = VARIANTS[name].config(task.config)
        self.learner = make_learner(name, task)
        self.largest_difference: float | None = None
        self.accuracy: float | None = None
        self._plan = typical_first(task.train.lengths, self.config)
        self._batches = {mode: cycle(self._plan) for mode in MODES}
        self._at_once = dict.fromkeys(MODES, 1)
        self._turns: dict[str, list[tuple[int, float]]] = {mode: [] for mode in MODES}

    def seconds(self, mode: str) -> list[float]:
        """Return the time of each turn so far."""
        return [seconds for _, seconds in self._turns[mode]]

    def rate(self, mode: str) -> float:
        """Return the tokens per second measured so far; 0 where nothing was."""
        turns = self._turns[mode]
        return sum(tokens for tokens, _ in turns) / sum(self.seconds(mode)) if turns else 0.0

    def speed(self, mode: str) -> Speed | None:
        """Return what was measured; None where nothing was."""
        rates = [tokens / seconds for tokens, seconds in self._turns[mode]]
        return Speed(self.rate(mode), len(rates), min(rates), max(rates)) if rates else None

    def result(self) -> VariantResult:
        """Return what was found."""
        variant, lengths = VARIANTS[self.name], self.task.train.lengths
        return VariantResult(
            name=self.name,
            kind=variant.kind,
            setting=variant.setting(self.task.config),
            training=self.speed("training"),
            prediction=self.speed("prediction"),
            padding=padding_fraction(self._plan, lengths) if variant.pads else 0.0,
            largest_difference=self.largest_difference,
            accuracy=self.accuracy,
            problem=self.problem,
        )

    def take_turn(self, mode: str, left: float) -> None:
        """Train or predict for TURN seconds, at least one batch, unless that takes too long."""
        if not self._turns[mode]:
            rows = self._plan[0]
            for count in WARM_UP:
                seconds = self._timed(mode, [rows[:count]])
            expected = seconds * len(rows) / min(len(rows), WARM_UP[-1])
            if expected > max(left, LONGEST):
                self.problem = f"a batch takes about {expected:.0f} s; allow more seconds"
                return
        tokens, spent = 0, 0.0
        while not tokens or (mode == "training" and spent < TURN):
            batches = list(islice(self._batches[mode], self._at_once[mode]))
            spent += self._timed(mode, batches)
            tokens += sum(int(self.task.train.lengths[rows].sum()) for rows in batches)
        if mode == "prediction" and spent < TURN / 2:  # as many as a whole file has
            self._at_once[mode] = min(2 * self._at_once[mode], len(self._plan))
        self._turns[mode].append((tokens, spent))

    def _timed(self, mode: str, batches: Sequence[Ints]) -> float:
        began = time.perf_counter()
        if mode == "training":
            self.learner.learn(batches[0])
        else:
            self.learner.logits(batches)
        kind = self.task.device.type
        if kind != "cpu":
            getattr(torch, kind).synchronize()
        return time.perf_counter() - began


def take_turns(
    runs: Iterable[VariantRun], mode: str, seconds: float, before: Callable[[VariantRun], None]
) -> None:
    """Measure variants until the seconds are over: always the one measured the shortest so far.

    Ratios of speeds measured so can be trusted where the speeds themselves can't. Each variant has
    one turn at least, unless a batch takes too long.
    """
    deadline = time.monotonic() + seconds
    running = [run for run in runs if not run.problem]
    while running:
        run = min(running, key=lambda each: sum(each.seconds(mode)))
        left = deadline - time.monotonic()
        if MARGIN * max(run.seconds(mode), default=0.0) > max(left, 0.0):
            running.remove(run)
            continue
        before(run)
        try:
            run.take_turn(mode, left)
        except SeqtrainError as error:
            run.problem = str(error)
        running = [run for run in running if not run.problem]


def learn_equally(
    runs: Iterable[VariantRun], task: Task, seconds: float, before: Callable[[VariantRun], None]
) -> int:
    """Train all variants on as many examples in the time left, at most as long as `fit` would.

    Variants with equal logits and equal batches are the same model, so the fastest of them learns
    for all. Returns the examples of train that each learned from, each pass counted; 0: no time.
    """
    models: dict[object, list[VariantRun]] = {}
    for run in sorted(runs, key=lambda each: -each.rate("training")):
        alone = VARIANTS[run.name].kind in ("wrong", "pooling")
        models.setdefault(run.name if alone else run.config.batching.bucketing, []).append(run)
    learners = []
    for alike in models.values():
        able = [run for run in alike if run.rate("training") and not run.problem]
        learners += [(r, r.learner, alike) for r in able if isinstance(r.learner, SeqtrainLearner)][
            :1
        ]
    held_out, fastest = task.held_out.lengths.sum(), [run for run, _, _ in learners]
    scoring = sum(held_out / (run.rate("prediction") or run.rate("training")) for run in fastest)
    example = sum(task.train.lengths.mean() / run.rate("training") for run in fastest)
    left = seconds / MARGIN - scoring
    if not held_out or not learners or left < example:
        return 0
    plan = plan_epoch(task.train.lengths, task.config.batching, seed=task.config.seed, epoch=0)
    epochs = budget(task.config.training, len(plan)).epochs
    examples = min(epochs * len(task.train), int(left / example))
    for run, learner, alike in learners:
        before(run)
        try:
            accuracy = learner.accuracy(examples)
        except SeqtrainError as error:
            run.problem = str(error)
            continue
        for each in alike:
            each.accuracy = accuracy
    return examples
