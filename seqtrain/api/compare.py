"""`seqtrain.compare`: the ways to handle unequal lengths, measured with a config's own classifier.

The ways are options of the config: model.engine, model.unroll, batching.sort, batching.bucketing.
Each of them is trained by the trainer of `fit`, and predicts by the forward pass of `eval`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from seqtrain.config import Config, resolved_config
from seqtrain.config.document import flow
from seqtrain.config.schema import ModelConfig
from seqtrain.engines.choice import choose_engine
from seqtrain.engines.devices import select_device, wait_for
from seqtrain.errors import ConfigError
from seqtrain.evaluation.invariance import sampled
from seqtrain.evaluation.logits import are_right, predict_logits
from seqtrain.model.branches import BRANCHES
from seqtrain.model.branches.solved import SolvedBranch
from seqtrain.model.carried import carried_groups
from seqtrain.runs.memory import check_memory
from seqtrain.sequences.batch import Batch, collate, map_batches
from seqtrain.sequences.dataset import PreparedData, prepare
from seqtrain.sequences.plan import padding_fraction
from seqtrain.sequences.sources import check_files, with_given_data
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.word_vectors import with_width
from seqtrain.tables.blocks import Ints
from seqtrain.training.loop import update
from seqtrain.training.trainer import Trainer

TURN_SECONDS = 0.15
"""Smallest duration of a turn. A turn has at least one batch."""
FEWEST_TURNS, FASTER = 3, 1.25
"""Fewest turns with which two speeds are compared, and least ratio of them that matters."""
LARGEST_ROUNDING = 1e-3
"""Largest difference of logits that rounding explains, over thousands of time steps."""
PREDICTED_STEPS = 65_536
"""Largest number of time steps that a prediction is timed on."""
MOST_PASSES = 10
"""Most passes over train before the accuracy is measured."""
COMPARED_SHARE = 0.1
"""Share of train that is held out if there is no validation."""
TRAINING_SHARE, PREDICTION_SHARE, ACCURACY_SHARE = 0.45, 0.2, 0.35
"""Shares of the time in which training, predictions and accuracies are measured."""
AUTO = {"engine": "auto", "unroll": "packed"}
"""Keys of the section model by which the fastest engine runs over packed sequences."""
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "native": {"model": {"engine": "native", "unroll": "packed"}, "batching": {"sort": "collate"}},
    "torch": {"model": {"engine": "torch", "unroll": "packed"}, "batching": {"sort": "collate"}},
    "unroll-padded": {"model": {"engine": "torch", "unroll": "padded"}},
    "unroll-masked": {"model": {"engine": "torch", "unroll": "masked"}},
    "sort-in-module": {"model": AUTO, "batching": {"sort": "module"}},
    "random-batches": {"model": AUTO, "batching": {"bucketing": False}},
}
"""Maps each way to the changes of a config, as `Config.with_keys` takes them."""

ComparisonListener: TypeAlias = Callable[[str, float], None]
"""Function that receives a description of the current work and the share of the time used, [0, 1].
"""


@dataclass(frozen=True)
class Speed:
    """Speed of a variant in training or prediction, in tokens per second.

    A token is a time step without padding.

    Attributes:
        tokens_per_second: Median of the turns.
        turns: Number of turns.
        slowest: Speed of the slowest turn.
        fastest: Speed of the fastest turn.
    """

    tokens_per_second: float
    turns: int
    slowest: float
    fastest: float

    def exceeds(self, usual: Speed) -> bool:
        """Return True if this speed exceeds the usual one beyond noise; see `recommend`."""
        return (
            min(self.turns, usual.turns) >= FEWEST_TURNS
            and self.slowest > usual.fastest
            and self.tokens_per_second >= FASTER * usual.tokens_per_second
        )


@dataclass
class VariantResult:
    """Measurements of one variant.

    Attributes:
        name: Name of the variant.
        setting: Keys and values of the config that make the variant, such as "model.engine: torch".
        training: Speed in training, or None if not measured.
        prediction: Speed in prediction, or None if not measured.
        padding: Share of the time steps computed in training that are padding, in [0, 1).
        largest_difference: Largest difference between the variant's logits and the logits of single
            sequences, or None if not measured.
        accuracy: Accuracy on held-out sequences after training, in [0, 1], or None if not measured.
            All variants are trained on equally many examples, but for a batch.
        problem: Reason why the variant can't run here, or "".
    """

    name: str
    setting: str = ""
    training: Speed | None = None
    prediction: Speed | None = None
    padding: float = 0.0
    largest_difference: float | None = None
    accuracy: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class Comparison:
    """Results of all variants for one config, data set and machine.

    Attributes:
        device: Name of the device.
        threads: Number of threads.
        rnn: Recurrent cell, as in model.rnn.
        rows: Number of sequences of train.
        tokens: Number of time steps of train.
        warnings: Lines for the user about the data.
        candidates: Results of the variants.
        passes: Number of passes over train before accuracies were measured, which may be a
            fraction; 0 if no accuracy was measured.
        held_out: Number of sequences that accuracies are measured on.
        recommended: Name of the recommended variant, or None if no variant with right logits was
            measured in training.
        reason: Reason for the recommendation, in a sentence.
        seconds: Duration of the comparison, with the time for reading the data.
    """

    device: str
    threads: int
    rnn: str
    rows: int
    tokens: int
    warnings: list[str]
    candidates: list[VariantResult]
    passes: float
    held_out: int
    recommended: str | None
    reason: str
    seconds: float = 0.0


class Clock:
    """Time for all measurements, of which each gets a share.

    Args:
        seconds: The time. It begins now.
        listener: Function that receives the progress.
    """

    def __init__(self, seconds: float, listener: ComparisonListener) -> None:
        self._seconds, self._listener, self._began = seconds, listener, time.monotonic()

    def rounds(self, share: float, least: int) -> Iterator[int]:
        """Yield the numbers of rounds, from 0, until a share of the time is used.

        Args:
            share: The share, in [0, 1].
            least: Number of rounds that are made in any case.
        """
        end = time.monotonic() + share * self._seconds
        for number in count():
            if number >= least and time.monotonic() > end:
                return
            yield number

    def tell(self, work: str, name: str) -> None:
        """Tell the listener that a variant begins a work."""
        used = (time.monotonic() - self._began) / self._seconds
        self._listener(f"{work}: {name}", min(1.0, used))


def compare(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    train: Any = None,
    validation: Any = None,
    seconds: float = 60.0,
    device: str | None = None,
    config_folder: Path | None = None,
    listener: ComparisonListener = lambda doing, share: None,
) -> Comparison:
    """Measure the ways to handle unequal lengths with a config's model, and recommend one of them.

    `VARIANTS` lists the ways. The logits of each are compared with those of single sequences, and
    its speed and accuracy are measured on the config's data. Branches that aren't trained by
    gradients are left out. No run directory is written.

    Args:
        config: A Config, a mapping of its sections, or the path of a YAML file.
        train: Data in place of data.train: a file, or a table as `fit` takes it; or None.
        validation: Data in place of data.validation, as `fit` takes it, or None.
        seconds: Time for the measurement. Reading the data and the first batches take extra time.
        device: Device in place of training.device, or None to use training.device.
        config_folder: Folder of the config's YAML file, or None. Paths in a config are relative to
            the current directory. For a missing data file, the error message names the file of the
            same name in this folder, if there is one.
        listener: Function that receives the progress.

    Raises:
        ConfigError: If the config, `seconds` or the device is wrong, or the model doesn't fit into
            memory.
        DataError: If the data can't be used.
    """
    began = time.monotonic()
    if seconds <= 0:
        raise ConfigError(f"seconds: found {seconds:g}; expected more than 0")
    given = {"train": train, "validation": validation}
    config, _tables = with_given_data(config, given)  # the tables live until the end
    config = resolved_config(config, device)
    where = select_device(config.training.device)
    listener("reading the data", 0.0)
    config, data = read_splits(config, config_folder, where)
    found = compare_variants(config, data, where, seconds, listener)
    return replace(found, seconds=time.monotonic() - began)


def read_splits(
    config: Config, config_folder: Path | None, device: torch.device
) -> tuple[Config, PreparedData]:
    """Read the data as `fit` does, for a model of trained branches only.

    Without validation and groups, a tenth of train is held out.

    Returns:
        The config without solved branches, and the data.
    """
    check_files(config, config_folder)
    keys = ModelConfig.model_fields
    solved = [branch.name for branch in BRANCHES if issubclass(branch, SolvedBranch)]
    config = with_width(config).with_keys(model={name: keys[name].default for name in solved})
    if config.data.validation is None and config.data.group is None:
        config = config.with_keys(data={"validation": COMPARED_SHARE})
    data = prepare(config)
    check_memory(config, data, device)
    return config, data


def compare_variants(
    config: Config,
    data: PreparedData,
    device: torch.device,
    seconds: float,
    listener: ComparisonListener,
) -> Comparison:
    """Return the measurements of all variants. The arguments are those of `compare`, resolved."""
    results = {name: VariantResult(name, _setting(keys)) for name, keys in VARIANTS.items()}
    trainers = {}
    for name, result in results.items():
        try:
            trainers[name] = new_trainer(name, config, data, device)
        except ConfigError as error:
            result.problem = str(error)
    differences = logit_differences(trainers)
    clock = Clock(seconds, listener)
    training = take_turns("training", trainers, training_work, clock, TRAINING_SHARE)
    prediction = take_turns("prediction", trainers, prediction_work, clock, PREDICTION_SHARE)
    for name, trainer in trainers.items():
        result = results[name]
        result.largest_difference = differences[name]
        result.training = training[name]
        result.prediction = prediction[name]
        if trainer.config.model.unroll != "packed":
            result.padding = padding_fraction(trainer.setup.plan(0), trainer.setup.rows.lengths)
    auto = choose_engine(config.model.model_copy(update=AUTO), device).name
    rows = data.splits["train"]
    held_out = data.splits.get("validation")
    passes = 0.0
    if held_out is not None:
        new = {name: new_trainer(name, config, data, device) for name in (auto, "random-batches")}
        passes = learn_equally(new, clock)
        accuracies = {name: accuracy_of(trainer, held_out) for name, trainer in new.items()}
        for name in trainers:  # variants with equal logits and batches learn equal models
            results[name].accuracy = accuracies.get(name, accuracies[auto])
    recommended, reason = recommend(list(results.values()), auto)
    return Comparison(
        device=str(device),
        threads=torch.get_num_threads(),
        rnn=config.model.rnn,
        rows=len(rows),
        tokens=int(rows.lengths.sum()),
        warnings=[line for name, report in data.reports.items() for line in report.notices(name)],
        candidates=list(results.values()),
        passes=passes,
        held_out=0 if held_out is None else len(held_out),
        recommended=recommended,
        reason=reason,
    )


def _setting(keys: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the keys and values of a variant as text."""
    return ", ".join(
        f"{section}.{key}: {flow(value)}"
        for section, values in keys.items()
        for key, value in values.items()
    )


def new_trainer(name: str, config: Config, data: PreparedData, device: torch.device) -> Trainer:
    """Return a trainer of a variant with initial weights, which are equal for all variants.

    Raises:
        ConfigError: If the variant's engine can't run here.
    """
    import_module("torch._dynamo")  # else the first optimizer loads it during a measurement
    config = config.with_keys(**VARIANTS[name])
    choose_engine(config.model, device)
    trainer = Trainer(config, data, device)
    trainer.begin("training")  # without pretraining
    trainer.setup.model.train()
    return trainer


def updates(trainer: Trainer) -> Iterator[Batch]:
    """Train without end, and yield the batch of each update."""
    for epoch in count():
        for batch, _ in map_batches(
            lambda batch: update(trainer, batch, lr=trainer.setup.settings.lr),
            trainer.setup.rows,
            trainer.setup.plan(epoch),
            trainer.device,
            collate=lambda rows: collate(rows, trainer.config.batching.sort),
            lower=trainer.setup.keys_to_lower,
        ):
            yield batch


def logits_of(trainer: Trainer, store: SequenceStore, plan: list[Ints] | None = None) -> Tensor:
    """Return the logits of all rows of a store, (B, C), by the variant's own options.

    `plan` has the row numbers of each batch. None is for large batches of similar length.
    """
    sort = trainer.config.batching.sort
    return predict_logits(
        trainer.network, store, trainer.device, plan=plan, collate=lambda rows: collate(rows, sort)
    )


def accuracy_of(trainer: Trainer, store: SequenceStore) -> float:
    """Return the share of a store's rows that are predicted right, in [0, 1]."""
    right = are_right(logits_of(trainer, store), torch.from_numpy(store.labels))
    return float(right.float().mean())


def training_work(trainer: Trainer) -> Iterator[int]:
    """Train without end, and yield the number of tokens of each update."""
    for batch in updates(trainer):
        yield int(batch.lengths.sum())


def prediction_work(trainer: Trainer) -> Iterator[int]:
    """Predict rows of train again and again, and yield the number of their tokens each time."""
    train = trainer.data.splits["train"]
    number = max(1, int((train.lengths.cumsum() <= PREDICTED_STEPS).sum()))
    rows = train.__getitems__(np.arange(number))
    while True:
        logits_of(trainer, rows)
        yield int(rows.lengths.sum())


def take_turns(
    doing: str,
    trainers: Mapping[str, Trainer],
    work_of: Callable[[Trainer], Iterator[int]],
    clock: Clock,
    share: float,
) -> dict[str, Speed]:
    """Measure speeds in turns, so that noise of the machine affects all of them equally.

    The first turn of each warms up and isn't counted. At least one more follows.

    Args:
        doing: Name of the work.
        trainers: Trainers of the variants, by their names.
        work_of: Function that returns the work of a trainer: an endless iterator that does a part
            of it and yields the number of its tokens.
        clock: Time for all measurements.
        share: Share of the time for this one, in [0, 1].

    Returns:
        The speed by name.
    """
    works = {name: work_of(trainer) for name, trainer in trainers.items()}
    rates: dict[str, list[float]] = {name: [] for name in works}
    for number in clock.rounds(share, least=2):
        for name, work in works.items():
            clock.tell(doing, name)
            rate = rate_of_turn(work, trainers[name].device)
            if number > 0:
                rates[name].append(rate)
    return {n: Speed(median(own), len(own), min(own), max(own)) for n, own in rates.items()}


def rate_of_turn(work: Iterator[int], device: torch.device) -> float:
    """Work for `TURN_SECONDS` and until the device is idle; return the tokens per second."""
    tokens = 0
    began = time.perf_counter()
    while time.perf_counter() - began < TURN_SECONDS:
        tokens += next(work)
    wait_for(device)
    return tokens / (time.perf_counter() - began)


@torch.no_grad()
def logit_differences(trainers: Mapping[str, Trainer]) -> dict[str, float]:
    """Return the largest difference of each variant's logits from those of single sequences.

    Biases are set to random numbers: with biases of zero, an encoder that reads padding by mistake
    would compute the right states.
    """
    for trainer in trainers.values():
        draw = torch.Generator("cpu").manual_seed(0)
        for name, weight in trainer.network.named_parameters():
            if "bias" in name:
                weight.copy_(torch.rand(weight.shape, generator=draw, device="cpu") - 0.5)
    reference = trainers["torch"]
    train = reference.data.splits["train"]
    is_carried = carried_groups(reference.network, train) is not None
    probe, _ = sampled(train, carried=is_carried)
    expected = logits_of(reference, probe, list(np.arange(len(probe))[:, None]))
    return {
        name: float((logits_of(trainer, probe) - expected).abs().max())
        for name, trainer in trainers.items()
    }


def learn_equally(trainers: Mapping[str, Trainer], clock: Clock) -> float:
    """Train on equally many examples, but for a batch, and return the passes over train.

    Each trainer makes one update at least, and at most `MOST_PASSES` over train.

    Raises:
        RunError: If a loss isn't finite, or memory runs out.
    """
    batches = {name: updates(trainer) for name, trainer in trainers.items()}
    examples = dict.fromkeys(trainers, 0)
    rows = len(next(iter(trainers.values())).setup.rows)
    for _ in clock.rounds(ACCURACY_SHARE, least=len(trainers)):
        name = min(examples, key=lambda name: examples[name])
        if examples[name] >= MOST_PASSES * rows:
            break
        clock.tell("accuracy", name)
        examples[name] += len(next(batches[name]).examples)
    return min(examples.values()) / rows


def recommend(results: list[VariantResult], auto: str) -> tuple[str | None, str]:
    """Return the name of the recommended variant and the reason, in a sentence.

    Normally, the recommendation is the engine that `auto` names. The fastest other variant is
    recommended if its median is `FASTER` times that of `auto`, and its slowest turn is faster than
    the fastest turn of `auto`. Both need `FEWEST_TURNS` turns. Variants with wrong logits are left
    out.

    Args:
        results: Results of all variants.
        auto: Name of the engine that ``model.engine: auto`` chooses.

    Returns:
        The name, or None if no variant with right logits was measured in training; and the reason.
    """
    speeds = {}
    for result in results:
        difference = result.largest_difference
        if result.training and difference is not None and difference <= LARGEST_ROUNDING:
            speeds[result.name] = result.training
    if not speeds:
        return None, "nothing could be measured in training; allow more seconds"
    best = max(speeds, key=lambda name: speeds[name].tokens_per_second)
    usual = speeds.get(auto)
    if best != auto and (usual is None or speeds[best].exceeds(usual)):
        return best, "It is the fastest in training here, beyond noise."
    return auto, "It is what model.engine: auto takes; no other variant is faster beyond noise."
