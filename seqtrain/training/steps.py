"""Updates one after the other, as training and pretraining make them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from seqtrain.data.store import Ints
from seqtrain.training.state import Progress


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


Step = TypeVar("Step", bound=StepEvent)


def learn_batches(
    plan: list[Ints],
    progress: Progress,
    update: Callable[[Ints, float], tuple[float, int]],
    lr_after: Callable[[int], float],
    event: type[Step],
) -> Iterator[Step]:
    """Learn from what is left of an epoch, batch by batch.

    Args:
        plan: rows of each batch of the epoch.
        progress: where it stands; `update` counts on the batches and steps.
        update: learns from rows at a rate; returns the mean loss and the tokens.
        lr_after: rate of the update after so many.
        event: what is yielded after each update.
    """
    for rows in plan[progress.batches_done :]:
        began = time.perf_counter()
        lr = lr_after(progress.step)
        loss, tokens = update(rows, lr)
        progress.seconds += time.perf_counter() - began
        yield event(
            epoch=progress.epoch + 1,
            step=progress.step,
            batch=progress.batches_done,
            num_batches=len(plan),
            loss=loss,
            lr=lr,
            tokens=tokens,
        )
