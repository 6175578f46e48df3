"""`seqtrain.compare`: the ways to handle unequal lengths, measured with a config's own classifier.

The ways are options of the config: model.engine, model.unroll, batching.sort, batching.bucketing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
import torch._dynamo  # else the first optimizer loads it during a measurement
from torch import Tensor

from seqtrain.config import Config, resolved_config, values_by_key
from seqtrain.config.document import flow
from seqtrain.engines.choice import choose_engine
from seqtrain.errors import ConfigError, SeqtrainError
from seqtrain.evaluation.comparison import Comparison, VariantResult, recommend, take_turns
from seqtrain.evaluation.devices import select_device
from seqtrain.evaluation.logits import are_right, branch_logits
from seqtrain.model.network import ClassifierNetwork, combined, new_network
from seqtrain.runs.environment import check_longest, check_model
from seqtrain.sequences.batch import collate, map_batches
from seqtrain.sequences.cache import default_folder
from seqtrain.sequences.dataset import PreparedData, prepare
from seqtrain.sequences.plan import padding_fraction
from seqtrain.sequences.sources import check_files
from seqtrain.sequences.store import Ints, SequenceStore
from seqtrain.sequences.word_vectors import with_width
from seqtrain.training.loop import keys_to_lower, update
from seqtrain.training.trainer import Trainer

SPEED_SHARES = {"training": 0.45, "prediction": 0.2}
"""Maps each mode to the share of the time in which its speeds are measured.

The remaining time is for the accuracies.
"""
TURN = 0.15
"""Smallest duration of a turn, in seconds. A turn has at least one batch."""
PROBE_STEPS, PREDICTED_STEPS = 20_000, 65_536
"""Largest number of time steps whose logits are compared, and that a prediction is timed on."""
MOST_PASSES = 10
"""Most epochs of training before the accuracy is measured."""
MARGIN = 1.5
"""Factor by which training may take longer than expected."""
HELD_OUT_SHARE, HELD_OUT_ROWS = 0.1, 2_000
"""Share of train that is held out without validation, and most rows that accuracy is measured on.
"""
AUTO = {"engine": "auto", "unroll": "packed"}
"""Keys of the section model by which the fastest engine runs over packed sequences."""

ComparisonListener: TypeAlias = Callable[[str, float], None]
"""Function that receives a description of the current work and the share of the time used, [0, 1].
"""


@dataclass(frozen=True)
class Variant:
    """A way to handle sequences of unequal length, as changes to a config.

    Attributes:
        kind: "engine" for a value of model.engine, "option" for another option.
        model: New values of keys in the config's section model, by key.
        batching: New values of keys in the config's section batching, by key.
    """

    kind: str
    model: Mapping[str, Any]
    batching: Mapping[str, Any]

    def config(self, config: Config) -> Config:
        """Return a copy of a config with the changes of the variant."""
        return config.with_keys(model=self.model, batching=self.batching)

    def setting(self, config: Config) -> str:
        """Return the keys and values that turn a config into the variant, as text."""
        before, after = values_by_key(config), values_by_key(self.config(config))
        return ", ".join(f"{key}: {flow(x)}" for key, x in after.items() if before[key] != x)


VARIANTS = {
    "native": Variant("engine", {"engine": "native", "unroll": "packed"}, {"sort": "collate"}),
    "torch": Variant("engine", {"engine": "torch", "unroll": "packed"}, {"sort": "collate"}),
    "unroll-padded": Variant("option", {"engine": "torch", "unroll": "padded"}, {}),
    "unroll-masked": Variant("option", {"engine": "torch", "unroll": "masked"}, {}),
    "sort-in-module": Variant("option", AUTO, {"sort": "module"}),
    "random-batches": Variant("option", AUTO, {"bucketing": False}),
}
"""Maps each name to its variant."""


class Measured:
    """A variant that is being measured: its classifier, and the batches that it learns from.

    All variants start from the same weights. Branches that aren't trained are left out.

    Args:
        config: Config of the variant.
        data: Encoded splits.
        device: Device that computes.

    Raises:
        ConfigError: If the variant's engine can't run here.
    """

    def __init__(self, config: Config, data: PreparedData, device: torch.device) -> None:
        choose_engine(config.model, device)
        self.config, self.device, self.train = config, device, data.splits["train"]
        self.network = new_network(config.model, data.preprocessing, self.train.lengths)
        self.network.initialize(config.seed)
        self.network.to(device).train()
        self.trainer = Trainer(config, data, device, network=self.network)
        if self.trainer.progress.phase == "pretraining":
            self.trainer.begin("training")
        self.plan = self.trainer.plan(1)
        self.batches = cycle(self.plan)
        lengths = self.train.lengths.cumsum()
        most = max(1, int((lengths <= PREDICTED_STEPS).sum()))
        self.predicted = self.train.__getitems__(np.arange(most))

    @property
    def padding(self) -> float:
        """Share of the time steps computed in training that are padding, in [0, 1)."""
        is_packed = self.config.model.unroll == "packed"
        return 0.0 if is_packed else padding_fraction(self.plan, self.train.lengths)

    def learn(self, rows: Ints) -> None:
        """Update the weights once on a batch of train."""
        learn = partial(update, self.trainer, lr=self.config.training.lr)
        collate_as = partial(collate, sort=self.config.batching.sort)
        lower = keys_to_lower(self.trainer)
        next(map_batches(learn, self.train, [rows], self.device, collate=collate_as, lower=lower))

    def logits(self, store: SequenceStore) -> Tensor:
        """Return the logits of the trained branches for all rows of a store, (B, C)."""
        return trained_logits(self.network, store, self.config, self.device)

    def train_turn(self) -> tuple[int, float]:
        """Train for at least TURN seconds; return the tokens of the batches and the duration."""
        tokens, began = 0, time.perf_counter()
        while not tokens or time.perf_counter() - began < TURN:
            rows = next(self.batches)
            self.learn(rows)
            tokens += int(self.train.lengths[rows].sum())
        self._wait()
        return tokens, time.perf_counter() - began

    def predict_turn(self) -> tuple[int, float]:
        """Predict for at least TURN seconds; return the number of tokens and the duration."""
        tokens, began = 0, time.perf_counter()
        while not tokens or time.perf_counter() - began < TURN:
            self.logits(self.predicted)
            tokens += int(self.predicted.lengths.sum())
        return tokens, time.perf_counter() - began

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()


def trained_logits(
    network: ClassifierNetwork,
    store: SequenceStore,
    config: Config,
    device: torch.device,
    plan: list[Ints] | None = None,
) -> Tensor:
    """Return the logits of the branches that training changes, (B, C).

    Args:
        network: The network, on the device.
        store: The sequences.
        config: Config of the variant, which decides about the engine and about sorting.
        device: Device that computes.
        plan: Row numbers of each batch, or None for large batches of similar length.
    """
    names = [branch.name for branch in network.branches if not branch.fixed]
    engine = choose_engine(config.model, device)
    collate_as = partial(collate, sort=config.batching.sort)
    found = branch_logits(
        network, store, device, plan=plan, collate=collate_as, engine=engine, names=names
    )
    return combined(found)


def compare(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    seconds: float = 60.0,
    device: str | None = None,
    config_folder: Path | None = None,
    listener: ComparisonListener = lambda doing, share: None,
) -> Comparison:
    """Measure the ways to handle unequal lengths with a config's model, and recommend one of them.

    `VARIANTS` lists the ways. The logits of each are compared with those of single sequences, and
    its speed and accuracy are measured on the config's data. No run directory is written.

    Args:
        config: A Config, a mapping of its sections, or the path of a YAML file.
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
    config = resolved_config(config, device)
    where = select_device(config.training.device)
    listener("reading the data", 0.0)
    config, data = read_data(config, config_folder, where)
    results, measured = _variants(config, data, where)
    started = time.monotonic()

    def before(doing: str, name: str) -> None:
        listener(f"{doing}: {name}", min(1.0, (time.monotonic() - started) / seconds))

    _compare_logits(config, data, where, results, measured)
    for mode, share in SPEED_SHARES.items():
        turns = {
            name: one.train_turn if mode == "training" else one.predict_turn
            for name, one in measured.items()
            if not results[name].problem
        }
        speeds, problems = take_turns(turns, share * seconds, partial(before, mode))
        for name, speed in speeds.items():
            setattr(results[name], mode, speed)
        for name, problem in problems.items():
            results[name].problem = problem
    held_out = _held_out(config, data)
    left = seconds * (1 - sum(SPEED_SHARES.values()))
    examples = _learn_equally(results, measured, data, held_out, left, before)
    auto = choose_engine(config.model.model_copy(update=AUTO), where)
    recommended, reason = recommend([*results.values()], auto.name)
    train = data.splits["train"]
    return Comparison(
        device=str(where),
        threads=torch.get_num_threads(),
        rnn=config.model.rnn,
        rows=len(train),
        tokens=int(train.lengths.sum()),
        warnings=[line for name, report in data.reports.items() for line in report.notices(name)],
        candidates=[*results.values()],
        passes=examples / len(train),
        held_out=len(held_out),
        recommended=recommended,
        reason=reason,
        seconds=time.monotonic() - began,
    )


def read_data(
    config: Config, config_folder: Path | None, device: torch.device
) -> tuple[Config, PreparedData]:
    """Read the data as `fit` does. Without validation and groups, hold out a tenth of train."""
    check_files(config, config_folder)
    config = with_width(config)
    if config.data.validation is None and config.data.group is None:
        config = config.with_keys(data={"validation": HELD_OUT_SHARE})
    data = prepare(config, cache_folder=default_folder())
    check_model(config.model, data.preprocessing, device)
    check_longest(config, data.splits["train"], device)
    return config, data


def _held_out(config: Config, data: PreparedData) -> SequenceStore:
    """Return at most HELD_OUT_ROWS random rows of validation, or an empty store without any."""
    held_out = data.splits.get("validation")
    if held_out is None:
        return data.splits["train"].selection(np.arange(0))
    rows = np.random.default_rng(config.seed).permutation(len(held_out))[:HELD_OUT_ROWS]
    return held_out.selection(np.sort(rows))


def _variants(
    config: Config, data: PreparedData, device: torch.device
) -> tuple[dict[str, VariantResult], dict[str, Measured]]:
    """Return the result of each variant, still without figures, and the variants that can run."""
    results: dict[str, VariantResult] = {}
    measured: dict[str, Measured] = {}
    for name, variant in VARIANTS.items():
        own = variant.config(config)
        if name == "random-batches" and own == config:
            continue
        results[name] = VariantResult(name, variant.kind, variant.setting(config))
        try:
            measured[name] = Measured(own, data, device)
        except ConfigError as error:
            results[name].problem = str(error)
        else:
            results[name].padding = measured[name].padding
    return results, measured


@torch.no_grad()
def _compare_logits(
    config: Config,
    data: PreparedData,
    device: torch.device,
    results: Mapping[str, VariantResult],
    measured: Mapping[str, Measured],
) -> None:
    """Set the largest difference of each variant's logits from those of single sequences.

    All are computed with the same weights. Their biases are random: with biases of zero, an encoder
    that reads padding by mistake would compute the right states.
    """
    train, draw = data.splits["train"], torch.Generator("cpu").manual_seed(0)
    order = np.random.default_rng(config.seed).permutation(len(train))
    most = max(1, int((train.lengths[order].cumsum() <= PROBE_STEPS).sum()))
    probe = train.__getitems__(order[: min(config.batching.batch_size, most)])
    network = new_network(config.model, data.preprocessing, train.lengths)
    network.initialize(config.seed)
    for name, weight in network.named_parameters():
        if "bias" in name:
            weight.copy_(torch.rand(weight.shape, generator=draw, device="cpu") - 0.5)
    network.to(device)
    one_by_one = np.split(np.arange(len(probe)), len(probe))
    reference = VARIANTS["torch"].config(config)
    expected = trained_logits(network, probe, reference, device, one_by_one)
    for name, one in measured.items():
        found = trained_logits(network, probe, one.config, device)
        results[name].largest_difference = float((found - expected).abs().max())


def _learn_equally(
    results: Mapping[str, VariantResult],
    measured: Mapping[str, Measured],
    data: PreparedData,
    held_out: SequenceStore,
    seconds: float,
    before: Callable[[str, str], None],
) -> int:
    """Train new models on equally many examples, and set the accuracy of each variant.

    Variants with equal batches learn equal models. So only the fastest of them is trained.

    Returns:
        Number of examples, where every epoch counts the examples again, or 0 without time.
    """
    train, fastest = data.splits["train"], dict[bool, str]()
    rates = {
        name: one.training.tokens_per_second
        for name, one in results.items()
        if one.training is not None and not one.problem
    }
    for name in sorted(rates, key=lambda name: -rates[name]):
        fastest.setdefault(measured[name].config.batching.bucketing, name)
    if not fastest or not len(held_out):
        return 0
    # Scoring a token takes less time than learning from it.
    a_token = sum(1 / rates[name] for name in fastest.values())
    tokens = seconds / MARGIN / a_token - held_out.lengths.sum()
    examples = min(int(tokens / train.lengths.mean()), MOST_PASSES * len(train))
    if examples < 1:
        return 0
    accuracies: dict[bool, float] = {}
    for bucketing, name in fastest.items():
        before("accuracy", name)
        try:
            accuracies[bucketing] = _accuracy(measured[name], data, held_out, examples)
        except SeqtrainError as error:
            results[name].problem = str(error)
    for name, one in measured.items():
        results[name].accuracy = accuracies.get(one.config.batching.bucketing)
    return examples


def _accuracy(
    measured: Measured, data: PreparedData, held_out: SequenceStore, examples: int
) -> float:
    """Return the accuracy of a new model after training on a number of examples."""
    new, done, epoch = Measured(measured.config, data, measured.device), 0, 0
    while done < examples:
        for rows in new.trainer.plan(epoch):
            if done < examples:
                new.learn(rows)
                done += len(rows)
        epoch += 1
    right = are_right(new.logits(held_out), torch.from_numpy(held_out.labels))
    return float(right.float().mean())
