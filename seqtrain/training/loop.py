"""The training loop: a generator of events. It touches no file and prints nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from seqtrain.config.schema import Config
from seqtrain.data.batching import padding_fraction, plan_epoch, plan_epoch_of_groups
from seqtrain.data.collate import collate
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import RunError
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.randomness import Noise
from seqtrain.text import listed
from seqtrain.training.carried import CarriedStates
from seqtrain.training.inference import score_store
from seqtrain.training.loss import class_weights, example_losses
from seqtrain.training.memory import memory_errors
from seqtrain.training.metrics import Scores
from seqtrain.training.optimization import lr_at, make_optimizer
from seqtrain.training.sparse import catch_up_tokens, clip_gradients, update
from seqtrain.training.state import Progress, capture, restore
from seqtrain.training.steps import StepEvent, learn_batches

SHOWN_LINES = 10


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
        groups: of train's rows, where states are carried between them (initial_state carried).
        carried: states that groups ended in, in this epoch so far.
        total_steps: updates of all epochs, as the learning rate's schedule counts them.

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
        self.groups = train.groups if config.model.initial_state == "carried" else None
        self.carried = CarriedStates()
        self.optimizer = make_optimizer(model, config.training)
        self.total_steps = config.training.max_epochs * len(self.plan(0))
        self.progress = Progress()
        weights = class_weights(config.training, train.labels, names)
        self.class_weights = None if weights is None else weights.to(device)

    def events(
        self, before_scoring: Callable[[], None] = lambda: None
    ) -> Iterator[StepEvent | EpochEvent]:
        """Train from where `progress` stands until the last epoch is over or patience runs out.

        Args:
            before_scoring: is called before each batch of validation, when `progress` stands after
                the last step; what it raises ends the work, and the scoring is still to be done.

        Raises:
            RunError: a loss or gradient isn't finite (nothing was updated), or memory ran out.
        """
        settings, progress = self.config.training, self.progress
        self.model.train()
        while progress.epoch < settings.max_epochs and not self.out_of_patience:
            plan = self.plan(progress.epoch)
            yield from learn_batches(plan, progress, self.update, self._lr_after, StepEvent)
            yield self._finish_epoch(plan, before_scoring)

    def capture(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that going on needs beside the weights: named tensors, and JSON values."""
        tensors, progress = capture(self.optimizer, self.progress)
        return tensors | self.carried.tensors(), progress

    def restore(self, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
        """Put back what `capture` returned.

        Raises:
            ValueError: it isn't what `capture` returns for this run.
        """
        self.progress = restore(self.optimizer, tensors, progress)
        if self.progress.pretraining:
            raise ValueError("progress.pretraining: found true; this run has no pretraining")
        self.carried.load(tensors, self.model)

    @property
    def out_of_patience(self) -> bool:
        """Whether too many epochs went by without a better monitored value."""
        patience = self.config.training.patience
        return patience is not None and self.progress.epochs_without_better >= patience

    def plan(self, epoch: int) -> list[Ints]:
        """Return the rows of each batch of an epoch, counted from 0."""
        lengths, groups, config = self.train.lengths, self.groups, self.config
        if groups is None:
            return plan_epoch(lengths, config.batching, seed=config.seed, epoch=epoch)
        return plan_epoch_of_groups(lengths, groups, config.batching, seed=config.seed, epoch=epoch)

    def _lr_after(self, step: int) -> float:
        return lr_at(step, self.total_steps, self.config.training, self.progress.plateaus)

    def update(self, rows: Ints, lr: float) -> tuple[float, int]:
        """Learn from one batch.

        Args:
            rows: of train.
            lr: learning rate of this update.

        Returns:
            The mean loss over the batch's examples, in nats, and the batch's tokens.

        Raises:
            RunError: the loss or a gradient isn't finite (nothing was updated), or memory ran out.
        """
        settings, progress = self.config.training, self.progress
        batching = self.config.batching
        size = "batch_size" if batching.max_tokens is None else "max_tokens"
        with memory_errors(
            self.train.lengths[rows], f"batching.{size}, data.max_length or model.hidden_size"
        ):
            batch = collate(self.train.__getitems__(rows), batching.sort).to(self.device)
            examples = rows[batch.sorted_indices.cpu().numpy()]
            groups = None if self.groups is None else self.groups[examples]
            noise = Noise.of(self.config.seed, progress.step, torch.from_numpy(examples))
            start = self.carried.starts(groups, self.model)
            catch_up_tokens(self.optimizer, self.model.embedding, batch.packed.data, lr=lr)
            with torch.autocast(
                self.device.type, torch.bfloat16, enabled=settings.precision == "bfloat16"
            ):
                logits, states = self.model.carry(
                    batch.inputs, batch.lengths, start, bptt=settings.bptt, noise=noise
                )
            losses = example_losses(logits, batch.labels, self.class_weights, settings)
            mean_loss = losses.mean()
            self.optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(mean_loss)
            norm = clip_gradients(self.model.parameters(), settings.max_grad_norm)
            correct = (logits.argmax(1) == batch.labels).sum()
            # One copy from the device a step: each would wait for it.
            figures = torch.stack((mean_loss.detach(), norm, correct.to(mean_loss.dtype)))
            loss, norm_value, num_correct = figures.tolist()
            if not (math.isfinite(loss) and math.isfinite(norm_value)):
                what = "gradient" if math.isfinite(loss) else "loss"
                raise self._not_finite(what, rows, losses[batch.unsorted_indices])
            update(self.optimizer, lr=lr)
            self.carried.keep(groups, states)
        tokens = int(batch.lengths.sum())
        progress.add_batch(loss, int(num_correct), len(rows), tokens)
        return loss, tokens

    def _finish_epoch(self, plan: list[Ints], before_scoring: Callable[[], None]) -> EpochEvent:
        """Score validation, note whether this epoch is the best, and move on to the next."""
        progress, settings = self.progress, self.config.training
        validation = None
        lr = self._lr_after(progress.step - 1)
        catch_up_tokens(self.optimizer, self.model.embedding, None, lr=lr)
        train_loss = progress.loss_sum / progress.examples
        train_accuracy = progress.correct / progress.examples
        if self.validation is not None:
            validation = score_store(
                self.model, self.validation, self.names, self.device, before_scoring
            )
            if not math.isfinite(validation.loss):
                raise RunError(
                    f"epoch {progress.epoch + 1}: the validation loss is {validation.loss}; "
                    "lower training.lr; what was saved stays valid"
                )
            value = validation.monitored(settings.monitor)
        else:
            value = -train_loss if settings.monitor == "loss" else train_accuracy
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
            is_best=progress.note_value(value),
        )
        progress.begin_epoch(progress.epoch + 1)
        self.carried.forget()
        return event

    def _not_finite(self, what: str, rows: Ints, losses: Tensor) -> RunError:
        """Name the rows whose own loss isn't finite, or all of the batch."""
        bad = ~torch.isfinite(losses.detach().cpu())
        guilty = rows[bad.numpy()] if bool(bad.any()) else rows
        lines = self.train.lines[guilty]
        shown = listed([str(line) for line in lines.tolist()], SHOWN_LINES)
        return RunError(
            f"step {self.progress.step + 1}: the {what} isn't finite for train lines "
            f"{shown} (of a folder: rows through its files); nothing was updated; "
            "lower training.lr, or look at these rows"
        )
