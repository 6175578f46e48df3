"""Measurement of all variants for a config: correctness of the logits, speed, and accuracy.

Speeds are measured in turns. A turn is a short measurement of one variant, and the variants
alternate. So noise of the machine affects all variants equally. Accuracies are measured after
training on equally many examples.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, TypeAlias

import torch
import torch._dynamo  # else the first optimizer loads it during a measurement

from seqtrain.comparison.learners import SeqtrainLearner, make_learner, one_by_one, randomize_biases
from seqtrain.comparison.results import Comparison, Speed, VariantResult, recommend
from seqtrain.comparison.task import (
    AUTO,
    VARIANTS,
    Task,
    prepare_task,
    variants_for,
)
from seqtrain.config import Config, resolved_config
from seqtrain.engines.choice import choose_engine
from seqtrain.errors import ConfigError, SeqtrainError
from seqtrain.evaluation.devices import select_device
from seqtrain.sequences.plan import padding_fraction, plan_epoch
from seqtrain.sequences.store import Ints
from seqtrain.training.stopping import stopping_rule

SPEED_SHARES = {"prediction": 0.15, "training": 0.35}
"""Maps each mode to the fraction of the time in which its speeds are measured.

The remaining time is for the accuracies.
"""
TURN = 0.15
"""Smallest duration of a turn of training, in seconds. A turn has at least one batch."""
LONGEST = 10.0
"""Longest expected duration of a batch, in seconds, that is allowed even if less time is left."""
MARGIN = 1.5
"""Factor by which a turn or training may take longer than expected."""
WARM_UP = (2, 8)
"""Numbers of sequences in two small batches that run before a variant's first turn.

The duration of the second batch predicts the duration of a whole batch.
"""

ComparisonListener: TypeAlias = Callable[[str, float], None]
"""Function that receives a description of the current work and the share of the time used, [0, 1].
"""


class VariantRun(VariantResult):
    """A variant that is being measured. If `problem` isn't empty, the measurement has ended.

    Args:
        name: Name of the variant, a key of VARIANTS.
        task: Data and settings that all variants share.
    """

    def __init__(self, name: str, task: Task) -> None:
        variant, lengths = VARIANTS[name], task.train.lengths
        super().__init__(name, variant.kind_for(task.config), variant.setting(task.config))
        self.task, self.config = task, variant.config(task.config)
        self.learner = make_learner(name, task)
        self._plan = plan_epoch(lengths, self.config.batching, seed=self.config.seed, epoch=1)
        self.padding = padding_fraction(self._plan, lengths) if variant.pads else 0.0
        self._batches = {mode: cycle(self._plan) for mode in SPEED_SHARES}
        self._at_once = 1
        self._turns: dict[str, list[tuple[int, float]]] = {mode: [] for mode in SPEED_SHARES}

    @property
    def model(self) -> object:
        """Key of the model that the variant trains.

        Variants with equal logits and equal batches train the same model, and have the same key.
        """
        if self.kind in ("wrong", "pooling"):
            return self.name
        return self.config.batching.bucketing

    def seconds(self, mode: str) -> list[float]:
        """Return the duration in seconds of each turn so far.

        Args:
            mode: "training" or "prediction".
        """
        return [seconds for _, seconds in self._turns[mode]]

    def rate(self, mode: str) -> float:
        """Return the speed over all turns so far in tokens per second, or 0 if there was no turn.

        Args:
            mode: "training" or "prediction".
        """
        speed: Speed | None = getattr(self, mode)
        return 0.0 if speed is None else speed.tokens_per_second

    def take_turn(self, mode: str, left: float) -> None:
        """Measure the speed in one more turn, and update the attribute `training` or `prediction`.

        A turn of training takes at least TURN seconds and at least one batch. Each batch changes
        the weights of the variant's model. A turn of prediction classifies a number of batches at
        once. This number doubles after a turn of less than TURN / 2 seconds, up to all batches of
        train.

        Before the first turn, the duration of a batch is estimated from two small batches. If it
        exceeds both `left` and LONGEST, set `problem` and measure nothing.

        Args:
            mode: "training" or "prediction".
            left: Number of seconds that are left for the turns of all variants.

        Raises:
            SeqtrainError: If a batch fails, for example because memory runs out.
        """
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
            number = self._at_once if mode == "prediction" else 1
            batches = list(islice(self._batches[mode], number))
            spent += self._timed(mode, batches)
            tokens += sum(int(self.task.train.lengths[rows].sum()) for rows in batches)
        if (
            mode == "prediction" and spent < TURN / 2
        ):  # predict in larger portions, up to the whole of train
            self._at_once = min(2 * self._at_once, len(self._plan))
        self._turns[mode].append((tokens, spent))
        rates = [read / seconds for read, seconds in self._turns[mode]]
        whole = sum(read for read, _ in self._turns[mode]) / sum(self.seconds(mode))
        setattr(self, mode, Speed(whole, len(rates), min(rates), max(rates)))

    def _timed(self, mode: str, batches: Sequence[Ints]) -> float:
        """Train on the first batch, or predict all batches, and return the duration in seconds."""
        began = time.perf_counter()
        if mode == "training":
            self.learner.learn(batches[0])
        else:
            self.learner.logits(batches)
        device = self.task.device
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        elif device.type == "mps":
            torch.mps.synchronize()
        return time.perf_counter() - began


def take_turns(
    runs: Iterable[VariantRun], mode: str, seconds: float, before: Callable[[VariantRun], None]
) -> None:
    """Measure the speeds of variants in turns until the time is over; set them in `runs`.

    The next turn always goes to the variant that was measured for the shortest time. Each variant
    gets at least one turn. If its batches take too long or fail, its `problem` is set.

    Args:
        runs: Variants. A variant with a `problem` is skipped.
        mode: "training" or "prediction".
        seconds: Time for all turns together.
        before: Function that is called with the variant before each turn.
    """
    deadline = time.monotonic() + seconds
    running = [run for run in runs if not run.problem]
    while running:
        run = min(running, key=lambda run: sum(run.seconds(mode)))
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
    runs: Sequence[VariantRun], task: Task, seconds: float, before: Callable[[VariantRun], None]
) -> int:
    """Train the variants of seqtrain on equally many examples; set the `accuracy` of each.

    The number of examples is as large as the time allows, but at most the number that `fit` trains
    on. Of variants with equal logits and batches, only the fastest trains, and all get its
    accuracy. Plain scripts don't train. A script gets the accuracy of a variant of seqtrain with
    equal logits and batches, or None.

    Args:
        runs: Variants whose speeds were measured. A variant with a `problem` doesn't train.
        task: Data and settings that all variants share.
        seconds: Time for training and scoring together.
        before: Function that is called with each variant before it trains.

    Returns:
        Number of examples that each variant was trained on, where every epoch counts the examples
        again. It is 0 if nothing was trained, for lack of time, of held-out examples, or of
        measured variants of seqtrain.
    """
    fastest: dict[object, tuple[VariantRun, SeqtrainLearner]] = {}
    for run in sorted(runs, key=lambda run: -run.rate("training")):
        if isinstance(run.learner, SeqtrainLearner) and run.rate("training") and not run.problem:
            fastest.setdefault(run.model, (run, run.learner))
    rates = [(run.rate("training"), run.rate("prediction")) for run, _ in fastest.values()]
    held_out = task.held_out.lengths.sum()
    scoring = sum(held_out / (predicting or training) for training, predicting in rates)
    example = sum(task.train.lengths.mean() / training for training, _ in rates)
    left = seconds / MARGIN - scoring
    if not held_out or not fastest or left < example:
        return 0
    plan = plan_epoch(task.train.lengths, task.config.batching, seed=task.config.seed, epoch=0)
    epochs = stopping_rule(task.config.training, len(plan)).epochs
    examples = min(epochs * len(task.train), int(left / example))
    accuracies: dict[object, float] = {}
    for model, (run, learner) in fastest.items():
        before(run)
        try:
            accuracies[model] = learner.accuracy(examples)
        except SeqtrainError as error:
            run.problem = str(error)
    for run in runs:
        run.accuracy = accuracies.get(run.model)
    return examples


def compare(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    seconds: float = 60.0,
    device: str | None = None,
    config_folder: Path | None = None,
    listener: ComparisonListener = lambda doing, share: None,
) -> Comparison:
    """Measure all ways to handle unequal lengths with a config's model, and recommend one of them.

    The ways are called variants: packing, padding and masking, engines of seqtrain, and plain torch
    scripts. `task.VARIANTS` lists the variants. The logits of each variant are checked, and its
    speed and accuracy are measured on the config's data.

    No run directory is written. The encoded data is stored in the user's cache folder.

    Args:
        config: A Config, a mapping of its sections, or the path of a YAML file.
        seconds: Time for the measurement. Reading the data and the first batches take extra time.
        device: Device in place of training.device, or None to use training.device.
        config_folder: Folder of the config's YAML file, or None. Paths in a config are relative to
            the current directory. For a missing data file, the error message names the file of the
            same name in this folder, if there is one.
        listener: Function that receives the progress.

    Raises:
        ConfigError: If the config, `seconds` or the device is wrong, if the task is multi-label, or
            if the model doesn't fit into memory.
        DataError: If the data can't be used.
    """
    began = time.monotonic()
    if seconds <= 0:
        raise ConfigError(f"seconds: found {seconds:g}; expected more than 0")
    config = resolved_config(config, device)
    where = select_device(config.training.device)
    problems = variants_for(config, where)
    listener("reading the data", 0.0)
    task = prepare_task(config, where, config_folder)
    results = [
        VariantResult(name, VARIANTS[name].kind, problem=why) if why else VariantRun(name, task)
        for name, why in problems.items()
    ]
    runs = [result for result in results if isinstance(result, VariantRun)]
    examples = _measure(runs, task, seconds, listener)
    auto = choose_engine(config.model.model_copy(update=AUTO), where)
    recommended, reason = recommend(results, auto.name)
    return Comparison(
        device=str(where),
        threads=torch.get_num_threads(),
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


def _measure(
    runs: Sequence[VariantRun], task: Task, seconds: float, listener: ComparisonListener
) -> int:
    """Measure the differences of logits, the speeds and the accuracies of variants in `runs`.

    Args:
        runs: The variants. Their attributes are set.
        task: Data and settings that all variants share.
        seconds: Time for all measurements together.
        listener: Function that receives the progress.

    Returns:
        Number of examples that each variant was trained on before its accuracy was measured, as
        `learn_equally` returns it.
    """
    _check_logits(runs, task)
    started = time.monotonic()

    def before(doing: str, run: VariantRun) -> None:
        listener(f"{doing}: {run.name}", min(1.0, (time.monotonic() - started) / seconds))

    for mode, share in SPEED_SHARES.items():
        take_turns(runs, mode, share * seconds, partial(before, mode))
    left = (1 - sum(SPEED_SHARES.values())) * seconds  # even if the first turns took longer
    return learn_equally(runs, task, left, partial(before, "accuracy"))


def _check_logits(runs: Iterable[VariantRun], task: Task) -> None:
    """Set `largest_difference` of each variant, or `problem` if its logits can't be computed.

    The biases of the variant's model are first replaced by random numbers. Then the variant
    classifies the sequences of the task's probe. Its logits are compared with the logits of one
    sequence at a time.

    Raises:
        SeqtrainError: If the sequences can't be classified one at a time.
    """
    expected = {}
    for run in runs:
        pooling = str(run.config.model.pooling)
        if pooling not in expected:
            expected[pooling] = one_by_one(task, pooling)
        try:
            randomize_biases(run.learner.model)  # accuracies are measured with new models
            found = run.learner.logits([task.probe])
            run.largest_difference = float((found - expected[pooling]).abs().max())
        except SeqtrainError as error:
            run.problem = str(error)
