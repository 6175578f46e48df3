"""Pretraining: the encoder learns from sequences without labels. A generator of events, as loop.py.

Optimizer, schedule, clipping and batches are those of training, with the rate and the number of
epochs of the section pretraining.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtrain.config.schema import Config
from seqtrain.data.batching import plan_epoch, plan_in_order_of_length
from seqtrain.data.collate import collate
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import RunError
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.randomness import Noise
from seqtrain.training.inference import EVALUATION_BATCHING
from seqtrain.training.memory import memory_errors
from seqtrain.training.optimization import lr_at, make_optimizer
from seqtrain.training.sparse import catch_up_tokens, clip_gradients, update
from seqtrain.training.state import Progress, capture, check_tensor, restore
from seqtrain.training.steps import StepEvent, learn_batches

OWN = "pretraining."
"""Before the name of a captured tensor of the model that isn't the classifier's."""
LOWER_MEMORY = "pretraining.max_length, batching.batch_size or model.hidden_size"


class PretrainStepEvent(StepEvent):
    """One update of pretraining was made; the loss is the mean over predicted tokens, in nats."""


def perplexity(loss: float) -> float:
    """Return the perplexity of a mean loss in nats; at most 1e304, for larger ones overflow."""
    return math.exp(min(loss, 700.0))


@dataclass(frozen=True)
class PretrainEpochEvent:
    """One pass over the unlabelled sequences is over.

    Attributes:
        epoch: its number, from 1.
        step: updates made so far.
        loss: mean over the predicted tokens as they were learned, in nats, dropout on.
        validation_loss: the same of the validation split, dropout off, where there is one.
        lr: learning rate of the last update.
        seconds: time spent learning, evaluation left out.
        tokens: steps learned from.
    """

    epoch: int
    step: int
    loss: float
    validation_loss: float | None
    lr: float
    seconds: float
    tokens: int


class Pretrainer:
    """Trains a language model or an autoencoder, and so the encoder of its classifier.

    Args:
        model: on the device.
        store: what to learn from; labels aren't looked at.
        validation: what to score after each epoch, or None.
        config: the whole config.
        device: where to compute.

    Attributes:
        progress: where it stands; valid after every event.
        optimizer: with its moments.
        total_steps: updates of all epochs, as the learning rate's schedule counts them.
    """

    def __init__(
        self,
        model: PretrainingModel,
        store: SequenceStore,
        validation: SequenceStore | None,
        config: Config,
        device: torch.device,
    ) -> None:
        settings = config.pretraining
        self.model = model
        self.store = in_pieces(store, settings.max_length)
        self.validation = None if validation is None else in_pieces(validation, settings.max_length)
        self.config = config
        self.settings = config.training.model_copy(
            update={"lr": settings.lr, "max_epochs": settings.max_epochs}
        )
        self.device = device
        self.optimizer = make_optimizer(model, self.settings)
        self.total_steps = settings.max_epochs * len(self._plan(0))
        self.progress = Progress(pretraining=True)

    def events(
        self, before_scoring: Callable[[], None] = lambda: None
    ) -> Iterator[PretrainStepEvent | PretrainEpochEvent]:
        """Learn from where `progress` stands until the last epoch is over.

        Args:
            before_scoring: is called before each batch of validation; as for `Trainer.events`.

        Raises:
            RunError: a loss or gradient isn't finite, or memory ran out.
        """
        progress = self.progress
        while progress.epoch < self.settings.max_epochs:
            self.model.train()
            plan = self._plan(progress.epoch)
            yield from learn_batches(plan, progress, self.update, self._lr_after, PretrainStepEvent)
            yield self._finish_epoch(before_scoring)

    def capture(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that going on needs beside the classifier: named tensors, and JSON values."""
        tensors, progress = capture(self.optimizer, self.progress)
        return tensors | {OWN + name: t for name, t in self.model.own_state().items()}, progress

    def restore(self, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
        """Put back what `capture` returned.

        Raises:
            ValueError: it isn't what `capture` returns for this run.
        """
        own = {OWN + name: tensor for name, tensor in self.model.own_state().items()}
        for name, tensor in own.items():
            if name not in tensors:
                raise ValueError(f"{name}: missing")
            check_tensor(name, tensors[name], tensor.shape, tensor.dtype)
            tensor.copy_(tensors[name])
        self.progress = restore(self.optimizer, tensors, progress)

    def update(self, rows: Ints, lr: float) -> tuple[float, int]:
        """Learn from one batch.

        Args:
            rows: of the store.
            lr: learning rate of this update.

        Returns:
            The mean loss over the batch's predictions, in nats, and the batch's tokens.

        Raises:
            RunError: the loss or a gradient isn't finite (nothing was updated), or memory ran out.
        """
        with memory_errors(self.store.lengths[rows], LOWER_MEMORY):
            batch = collate(self.store.__getitems__(rows)).to(self.device)
            examples = torch.from_numpy(rows[batch.sorted_indices.cpu().numpy()])
            noise = Noise.of(self.config.seed, self.progress.step, examples)
            catch_up_tokens(self.optimizer, self.model.embedding, batch.packed.data, lr=lr)
            with torch.autocast(
                self.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16"
            ):
                losses = self.model(batch.packed, noise)
            mean_loss = losses.mean()
            self.optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(mean_loss)
            norm = clip_gradients(self.model.parameters(), self.settings.max_grad_norm)
            loss, norm_value = torch.stack((mean_loss.detach(), norm)).tolist()
            if not (math.isfinite(loss) and math.isfinite(norm_value)):
                raise RunError(
                    f"pretraining step {self.progress.step + 1}: the loss or a gradient isn't "
                    "finite; nothing was updated; lower pretraining.lr"
                )
            update(self.optimizer, lr=lr)
        tokens = int(batch.lengths.sum())
        self.progress.add_batch(loss, 0, len(losses), tokens)
        return loss, tokens

    def _finish_epoch(self, before_scoring: Callable[[], None]) -> PretrainEpochEvent:
        """Score validation, and move on to the next epoch."""
        progress = self.progress
        lr = self._lr_after(progress.step - 1)
        catch_up_tokens(self.optimizer, self.model.embedding, None, lr=lr)
        validation_loss = None
        if self.validation is not None:
            validation_loss = self._score(self.validation, before_scoring)
            if not math.isfinite(validation_loss):
                raise RunError(
                    f"pretraining epoch {progress.epoch + 1}: the validation loss is "
                    f"{validation_loss}; lower pretraining.lr; what was saved stays valid"
                )
        event = PretrainEpochEvent(
            epoch=progress.epoch + 1,
            step=progress.step,
            loss=progress.loss_sum / progress.examples,
            validation_loss=validation_loss,
            lr=lr,
            seconds=progress.seconds,
            tokens=progress.tokens,
        )
        progress.begin_epoch(progress.epoch + 1)
        return event

    @torch.no_grad()
    def _score(self, store: SequenceStore, before_scoring: Callable[[], None]) -> float:
        """Return the mean loss over all predictions, in nats."""
        self.model.eval()
        total, count = 0.0, 0
        for rows in plan_in_order_of_length(store.lengths, EVALUATION_BATCHING):
            before_scoring()
            with memory_errors(store.lengths[rows], LOWER_MEMORY):
                losses = self.model(collate(store.__getitems__(rows)).to(self.device).packed)
            total, count = total + float(losses.sum()), count + len(losses)
        return total / count

    def _lr_after(self, step: int) -> float:
        return lr_at(step, self.total_steps, self.settings)

    def _plan(self, epoch: int) -> list[Ints]:
        return plan_epoch(
            self.store.lengths, self.config.batching, seed=self.config.seed, epoch=epoch
        )


def in_pieces(store: SequenceStore, steps: int | None) -> SequenceStore:
    """Cut each sequence into pieces of at most `steps` steps, each a sequence of its own.

    The pieces of one sequence are about equally long. None: as they are.
    """
    if steps is None:
        return store
    pieces = -(-store.lengths // steps)
    row = np.arange(len(store)).repeat(pieces)
    number = np.arange(len(row)) - (pieces.cumsum() - pieces)[row]
    starts = store.offsets[row] + number * store.lengths[row] // pieces[row]
    offsets = np.append(starts, store.offsets[-1])
    return SequenceStore(store.values, offsets, store.labels[row], store.lines[row])
