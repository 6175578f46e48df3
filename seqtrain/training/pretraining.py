"""Pretraining: the encoder learns from sequences without labels. A generator of events, as loop.py.

Optimizer, schedule, clipping and batches are those of training, with the rate and the number of
epochs of the section pretraining.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from seqtrain.config.schema import Config
from seqtrain.data.batching import plan_epoch, plan_in_order_of_length
from seqtrain.data.collate import collate
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import RunError
from seqtrain.model.decoder import PretrainingModel
from seqtrain.training.inference import EVALUATION_BATCHING
from seqtrain.training.loop import StepEvent
from seqtrain.training.memory import memory_errors
from seqtrain.training.optimization import lr_at, make_optimizer
from seqtrain.training.sparse import catch_up_tokens, clip_gradients, update


class PretrainStepEvent(StepEvent):
    """One update of pretraining was made; the loss is the mean over predicted tokens, in nats."""


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

    def events(self) -> Iterator[PretrainStepEvent | PretrainEpochEvent]:
        """Learn, from the first epoch to the last.

        Raises:
            RunError: a loss or gradient isn't finite, or memory ran out.
        """
        step = 0
        total_steps = self.settings.max_epochs * len(self._plan(0))
        for epoch in range(self.settings.max_epochs):
            self.model.train()
            plan = self._plan(epoch)
            seconds = loss_sum = 0.0
            predictions = 0
            for batch, rows in enumerate(plan, start=1):
                began = time.perf_counter()
                lr = lr_at(step, total_steps, self.settings)
                loss, count = self.update(rows, lr, step)
                seconds += time.perf_counter() - began
                step, loss_sum, predictions = step + 1, loss_sum + loss * count, predictions + count
                tokens = int(self.store.lengths[rows].sum())
                yield PretrainStepEvent(epoch + 1, step, batch, len(plan), loss, lr, tokens)
            catch_up_tokens(self.optimizer, self.model.embedding, None, lr=lr)
            yield PretrainEpochEvent(
                epoch=epoch + 1,
                step=step,
                loss=loss_sum / predictions,
                validation_loss=None if self.validation is None else self._score(self.validation),
                lr=lr,
                seconds=seconds,
                tokens=len(self.store.values),
            )

    def update(self, rows: Ints, lr: float, step: int) -> tuple[float, int]:
        """Learn from one batch.

        Args:
            rows: of the store.
            lr: learning rate of this update.
            step: updates made before, for the message.

        Returns:
            The mean loss over the batch's predictions, in nats, and how many they are.

        Raises:
            RunError: the loss or a gradient isn't finite (nothing was updated), or memory ran out.
        """
        with memory_errors(self.store.lengths[rows], "pretraining.max_length or batching"):
            batch = collate(self.store.__getitems__(rows)).to(self.device)
            catch_up_tokens(self.optimizer, self.model.embedding, batch.packed.data, lr=lr)
            with torch.autocast(
                self.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16"
            ):
                losses = self.model(batch.packed)
            mean_loss = losses.mean()
            self.optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(mean_loss)
            norm = clip_gradients(self.model.parameters(), self.settings.max_grad_norm)
            loss, norm_value = torch.stack((mean_loss.detach(), norm)).tolist()
            if not (math.isfinite(loss) and math.isfinite(norm_value)):
                raise RunError(
                    f"pretraining step {step + 1}: the loss or a gradient isn't finite; nothing "
                    "was updated; lower pretraining.lr"
                )
            update(self.optimizer, lr=lr)
        return loss, len(losses)

    @torch.no_grad()
    def _score(self, store: SequenceStore) -> float:
        """Return the mean loss over all predictions, in nats."""
        self.model.eval()
        total, count = 0.0, 0
        for rows in plan_in_order_of_length(store.lengths, EVALUATION_BATCHING):
            losses = self.model(collate(store.__getitems__(rows)).to(self.device).packed)
            total, count = total + float(losses.sum()), count + len(losses)
        return total / count

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
