"""The training loop: a generator of events. It touches no file and prints nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.config.schema import Config
from seqtrain.data.batching import padding_fraction, plan_epoch
from seqtrain.data.collate import Batch, collate
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import ConfigError, RunError
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.training.inference import predict_logits
from seqtrain.training.metrics import Scores, score
from seqtrain.training.optimization import lr_at, make_optimizer
from seqtrain.training.state import Progress

SHOWN_LINES = 10


@dataclass(frozen=True)
class StepEvent:
    """One update was made.

    Attributes:
        epoch: its number, from 1.
        step: updates made, this one included.
        batch, num_batches: batches done in this epoch, and how many it has.
        loss: mean over the batch's examples, in nats.
        lr: learning rate of this update.
        tokens: steps of the batch's sequences, padding left out.
    """

    epoch: int
    step: int
    batch: int
    num_batches: int
    loss: float
    lr: float
    tokens: int


@dataclass(frozen=True)
class EpochEvent:
    """One pass over train is over and validation is scored.

    Attributes:
        epoch: its number, from 1.
        step: updates made so far.
        train_loss, train_accuracy: means over examples as they were learned, dropout on.
        validation: scores of the validation split, where there is one.
        lr: learning rate of the last update.
        seconds: time spent learning, evaluation left out.
        tokens: steps learned from, padding left out.
        padding_fraction: share of padding in the padded form of the batches, in [0, 1).
        is_best: whether the monitored value is the best so far.
    """

    epoch: int
    step: int
    train_loss: float
    train_accuracy: float
    validation: Scores | None
    lr: float
    seconds: float
    tokens: int
    padding_fraction: float
    is_best: bool


class Trainer:
    """Trains a model on a store.

    Args:
        model: on the device.
        train: what to learn from.
        validation: what to monitor, or None (then train's own running scores are monitored).
        names: label of each class index.
        config: the whole config.
        device: where to compute.

    Attributes:
        progress: where the run stands; valid after every event.
        optimizer: with its moments.

    Raises:
        ConfigError: class weights name a label that train lacks, or leave one out.
    """

    def __init__(
        self,
        model: SequenceClassifier,
        train: SequenceStore,
        validation: SequenceStore | None,
        names: Sequence[str],
        config: Config,
        device: torch.device,
    ) -> None:
        self.model = model
        self.train = train
        self.validation = validation
        self.names = names
        self.config = config
        self.device = device
        self.optimizer = make_optimizer(model, config.training)
        self.progress = Progress()
        self.class_weights = class_weights(config, train.labels, names)
        if self.class_weights is not None:
            self.class_weights = self.class_weights.to(device)

    def events(self) -> Iterator[StepEvent | EpochEvent]:
        """Train from where `progress` stands until the last epoch is over or patience runs out.

        Raises:
            RunError: a loss or gradient isn't finite (nothing was updated), or memory ran out.
        """
        settings, progress = self.config.training, self.progress
        total_steps = settings.max_epochs * len(self._plan(0))
        self.model.train()
        while progress.epoch < settings.max_epochs and not self.out_of_patience:
            plan = self._plan(progress.epoch)
            lr = 0.0
            for rows in plan[progress.batches_done :]:
                began = time.perf_counter()
                lr = lr_at(
                    min(progress.step, total_steps), total_steps, settings, progress.plateaus
                )
                loss, tokens = self._update(rows, lr)
                progress.seconds += time.perf_counter() - began
                yield StepEvent(
                    epoch=progress.epoch + 1,
                    step=progress.step,
                    batch=progress.batches_done,
                    num_batches=len(plan),
                    loss=loss,
                    lr=lr,
                    tokens=tokens,
                )
            yield self._finish_epoch(plan, lr)

    @property
    def out_of_patience(self) -> bool:
        """Whether too many epochs went by without a better monitored value."""
        patience = self.config.training.patience
        return patience is not None and self.progress.epochs_without_better >= patience

    def _plan(self, epoch: int) -> list[Ints]:
        return plan_epoch(
            self.train.lengths, self.config.batching, seed=self.config.seed, epoch=epoch
        )

    def _update(self, rows: Ints, lr: float) -> tuple[float, int]:
        """Learn from one batch; return its mean loss and its tokens."""
        settings, progress = self.config.training, self.progress
        cpu_batch = collate(self.train.__getitems__(rows))
        try:
            batch = cpu_batch.to(self.device)
            logits, losses = self._losses(batch)
            mean_loss = losses.mean()
            loss = float(mean_loss.detach())
            if not math.isfinite(loss):
                raise self._not_finite("loss", rows, losses[batch.unsorted_indices])
            self.optimizer.zero_grad(set_to_none=True)
            mean_loss.backward()  # type: ignore[no-untyped-call]  # untyped in torch
            norm = torch.nn.utils.clip_grad_norm_(
                self.model.parameters(), settings.max_grad_norm or math.inf
            )
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if "memory" not in str(error):
                raise
            raise _out_of_memory(cpu_batch, self.config) from None
        if not math.isfinite(float(norm)):
            raise self._not_finite("gradient", rows, losses[batch.unsorted_indices])
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        tokens = len(cpu_batch.packed.data)
        progress.step += 1
        progress.batches_done += 1
        progress.loss_sum += loss * len(rows)
        progress.correct += int((logits.argmax(1) == batch.labels).sum())
        progress.examples += len(rows)
        progress.tokens += tokens
        return loss, tokens

    def _losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logits, and the loss of each example, weighted by its class."""
        settings = self.config.training
        lower = settings.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=lower):
            logits = self.model(batch.packed)
        logits = logits.float()
        losses = functional.cross_entropy(
            logits,
            batch.labels,
            weight=self.class_weights,
            reduction="none",
            label_smoothing=settings.label_smoothing,
        )
        return logits, losses

    def _finish_epoch(self, plan: list[Ints], lr: float) -> EpochEvent:
        """Score validation, note whether this epoch is the best, and move on to the next."""
        progress, settings = self.progress, self.config.training
        validation = None
        train_loss = progress.loss_sum / progress.examples
        train_accuracy = progress.correct / progress.examples
        if self.validation is not None:
            logits = predict_logits(self.model, self.validation, self.device)
            validation = score(
                logits,
                torch.tensor(self.validation.labels),
                torch.tensor(self.validation.lengths),
                self.names,
            )
            if not math.isfinite(validation.loss):
                raise RunError(
                    f"epoch {progress.epoch + 1}: the validation loss is {validation.loss}; "
                    "lower training.lr; the last checkpoint is valid"
                )
            value = validation.monitored(settings.monitor)
        else:
            value = -train_loss if settings.monitor == "loss" else train_accuracy
        is_best = progress.best_value is None or value > progress.best_value
        if is_best:
            progress.best_value, progress.best_epoch = value, progress.epoch + 1
            progress.epochs_without_better = 0
        else:
            progress.epochs_without_better += 1
            progress.plateaus += 1
        event = EpochEvent(
            epoch=progress.epoch + 1,
            step=progress.step,
            train_loss=train_loss,
            train_accuracy=train_accuracy,
            validation=validation,
            lr=lr,
            seconds=progress.seconds,
            tokens=progress.tokens,
            padding_fraction=padding_fraction(plan, self.train.lengths),
            is_best=is_best,
        )
        progress.begin_epoch(progress.epoch + 1)
        return event

    def _not_finite(self, what: str, rows: Ints, losses: Tensor) -> RunError:
        """Name the rows whose own loss isn't finite, or all of the batch."""
        bad = ~torch.isfinite(losses.detach().cpu())
        guilty = rows[bad.numpy()] if bool(bad.any()) else rows
        lines = self.train.lines[guilty]
        shown = ", ".join(map(str, lines[:SHOWN_LINES].tolist()))
        more = f" and {len(lines) - SHOWN_LINES} more" if len(lines) > SHOWN_LINES else ""
        return RunError(
            f"step {self.progress.step + 1}: the {what} isn't finite for train lines "
            f"{shown}{more}; nothing was updated; lower training.lr, or look at these rows"
        )


def class_weights(config: Config, labels: Ints, names: Sequence[str]) -> Tensor | None:
    """Return the weight of each class in the loss, (C,), or None.

    Balanced weights are examples / (classes * examples of the class), as in scikit-learn, so that
    their mean over train is 1.

    Raises:
        ConfigError: given weights name a label that train lacks, or leave one out.
    """
    weights = config.training.class_weights
    if weights is None:
        return None
    if weights == "balanced":
        counts = torch.bincount(torch.tensor(labels), minlength=len(names))
        return counts.sum() / (len(names) * counts.clamp(min=1).float())
    given = dict(weights)
    problems = [
        f"training.class_weights: found label {name!r}; expected one of: {', '.join(names)}"
        for name in given
        if name not in names
    ] + [
        f"training.class_weights: label {name!r} has no weight"
        for name in names
        if name not in given
    ]
    if problems:
        raise ConfigError(*problems)
    return torch.tensor([given[name] for name in names])


def _out_of_memory(batch: Batch, config: Config) -> RunError:
    key = "max_tokens" if config.batching.max_tokens else "batch_size"
    rows, longest = batch.input_ids.shape[:2]
    return RunError(
        f"memory ran out on a batch of {rows} sequences, the longest of {longest} steps; "
        f"lower batching.{key}, data.max_length or model.hidden_size"
    )
