"""The training loop: updates and epochs, as a generator of events.

The loop doesn't read or write files, and doesn't print. At every event, the trainer is up to date
and can be saved.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import count

import torch
from torch import Tensor

from seqtrain.engines.schedule import learning_rate
from seqtrain.errors import RunError
from seqtrain.evaluation.logits import (
    EVALUATION_BATCHING,
    are_right,
    forward_carried,
)
from seqtrain.evaluation.scores import Scores
from seqtrain.evaluation.scoring import score
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.network import combined
from seqtrain.model.randomness import RandomNumbers
from seqtrain.sequences.batch import Batch, augmented, collate, map_batches
from seqtrain.sequences.plan import padding_fraction, plan_in_order_of_length
from seqtrain.sequences.store import Ints, SequenceStore
from seqtrain.text import listed
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.losses import Losses, example_losses
from seqtrain.training.processes import sum_gradients
from seqtrain.training.stopping import EpochResult, plateaus
from seqtrain.training.trainer import Trainer

SHOWN_LINES, SHOWN_FILES = 10, 3
"""Largest numbers of rows that an error names: in one file, and in several files."""


def train_epochs(trainer: Trainer) -> Iterator[UpdateEvent | EpochEvent]:
    """Train from the trainer's position to the end of the current phase.

    Yields:
        An `UpdateEvent` after each update, and an `EpochEvent` at the end of each epoch.

    Raises:
        RunError: If a loss or a gradient isn't finite, if memory ran out, or if a process is lost.
        Interrupted: If a signal came while the validation split was scored.
    """
    while not trainer.is_over:
        plan = trainer.plan(trainer.progress.epoch)
        yield from _updates(trainer, plan)
        yield end_epoch(trainer, plan)


def _updates(trainer: Trainer, plan: list[Ints]) -> Iterator[UpdateEvent]:
    """Make the remaining updates of the current epoch, and yield an event after each."""
    progress = trainer.progress
    numbers = count(progress.batches)

    def prepare(rows: SequenceStore) -> Batch:
        return collate(changed_rows(trainer, rows, next(numbers)), sort_of(trainer))

    trainer.freeze_embedding(frozen=_freezes(trainer, progress.epoch))
    trainer.model.train()
    began = time.perf_counter()
    for _, event in map_batches(
        lambda batch: update(trainer, batch, len(plan)),
        trainer.store,
        plan[progress.batches :],
        trainer.device,
        collate=prepare,
        lower=keys_to_lower(trainer),
        tf32=trainer.settings.precision == "tf32",
    ):
        progress.seconds += time.perf_counter() - began
        yield event
        began = time.perf_counter()


def update(
    trainer: Trainer, batch: Batch, num_batches: int = 1, lr: float | None = None
) -> UpdateEvent:
    """Update the weights by the gradient of the mean loss of a batch.

    Args:
        trainer: The trainer. Its progress counts the update.
        batch: Sequences, on the device.
        num_batches: Number of batches of the epoch, for the event.
        lr: Learning rate, or None for that of the schedule.

    Raises:
        RunError: If the loss or a gradient isn't finite: then no weight has changed. Also if
            another process is lost.
    """
    progress, optimizer = trainer.progress, trainer.optimizer
    if lr is None:
        lr = learning_rate(
            trainer.settings, progress.updates, trainer.total_updates, plateaus(progress.history)
        )
    optimizer.forget_gradients()
    total, losses, number = _backward(trainer, batch)
    loss, correct, norm = optimizer.step(lr, total / number, losses.correct)
    for name, value in (("loss", loss), ("gradient", norm)):
        if not math.isfinite(value):
            raise _not_finite(trainer, name, batch, losses.each)
    time_steps = int(batch.lengths.sum())
    progress.add_batch(loss, int(correct), number, time_steps)
    return UpdateEvent(
        phase=progress.phase,
        epoch=progress.epoch + 1,
        update=progress.updates,
        batch=progress.batches,
        num_batches=num_batches,
        loss=loss / num_losses(trainer),
        lr=lr,
        time_steps=time_steps,
    )


def _backward(trainer: Trainer, batch: Batch) -> tuple[Tensor, Losses, int]:
    """Compute the gradients of the mean loss of a batch, by all processes together.

    Each process computes the losses of a share of the rows.

    Returns:
        The sum of all losses, the losses of the batch's rows, and their number. With several
        processes in pretraining, the losses of rows are zeros, because each belongs to a token.
    """
    processes = trainer.processes
    part: Batch | None = batch
    mine = None
    if processes.size > 1:
        part, mine = _share(trainer, batch)
    zero = torch.zeros((), device=trainer.device)
    losses = Losses(zero.new_zeros(0), zero)
    if part is not None:
        losses = batch_losses(trainer, part)
    number = len(losses.each)
    if processes.size > 1:
        number = int(processes.sum(zero + number)[0])
    if part is not None:
        torch.autograd.backward(losses.each.sum() / number)
    total, each = losses.each.detach().sum(), losses.each.detach()
    if mine is None:
        return total, Losses(each, losses.correct), number
    rows = zero.new_zeros(len(batch.lengths))
    if part is not None and len(each) == len(mine):
        rows[mine] = part.restore(each)
    if trainer.groups is None:
        groups = None
    else:
        groups = trainer.groups[batch.examples]
    states = trainer.carried.starts(groups, trainer.network)
    ended = zero.new_zeros(0 if states is None else states.shape)
    if states is not None:
        ended[:, :, mine] = states[:, :, mine]
    weights = [weight for weight in trainer.optimizer.weights if weight.requires_grad]
    figures = total, losses.correct.to(zero.dtype), rows, ended
    total, correct, rows, ended = sum_gradients(
        processes, weights, trainer.optimizer.tables, *figures
    )
    trainer.carried.keep(groups, ended)
    return total, Losses(rows[batch.sorted_indices], correct), number


def _share(trainer: Trainer, batch: Batch) -> tuple[Batch | None, Ints]:
    """Return this process's share of a batch, or None if it is empty, and its rows' places.

    The places are indices in `batch.examples`.
    """
    lengths = batch.restore(batch.lengths)
    # Dealt in turn, longest first, so that two processes differ by at most the longest row.
    order = lengths.argsort(descending=True, stable=True)
    mine = trainer.processes.share(order).sort().values.numpy()
    if not len(mine):
        return None, mine
    rows = changed_rows(
        trainer, trainer.store.__getitems__(batch.examples), trainer.progress.batches
    )
    part = collate(rows.__getitems__(mine), sort_of(trainer))
    return replace(part, examples=batch.examples[mine]).to(trainer.device), mine


def batch_losses(trainer: Trainer, batch: Batch) -> Losses:
    """Return the losses of a batch, with their graph, the random numbers and the precision.

    In pretraining, these are the losses of the predicted tokens. Else they are the weighted losses
    of the examples, added up over the branches that learn.
    """
    # The rows of a batch are sorted by length, and so are their numbers.
    examples = batch.examples[batch.sorted_indices.cpu().numpy()]
    numbers = RandomNumbers.of(
        trainer.config.seed, trainer.progress.updates, torch.from_numpy(examples)
    )
    is_lowered = trainer.settings.precision == "bfloat16"
    device = trainer.device.type
    with torch.autocast(device, torch.bfloat16) if is_lowered else nullcontext():
        if isinstance(trainer.model, PretrainingModel):
            each: Tensor = trainer.model(batch, numbers)
            return Losses(each, each.new_zeros(()))
        return _classification_losses(trainer, batch, examples, numbers)


def _classification_losses(
    trainer: Trainer, batch: Batch, examples: Ints, numbers: RandomNumbers
) -> Losses:
    network, settings = trainer.network, trainer.settings
    context = ForwardContext(numbers, bptt=settings.bptt)
    carried = None if trainer.groups is None else trainer.carried
    branches = forward_carried(network.branch_logits, network, batch, carried, context)
    weights, pos_weight = None, None
    if trainer.store_weights is not None:
        weights = trainer.store_weights[examples].to(batch.labels.device)
    if trainer.class_weights is not None and batch.labels.ndim == 2:
        pos_weight = trainer.class_weights.to(batch.labels.device)
    losses = [
        example_losses(logits, batch.labels, weights, settings, pos_weight) for logits in branches
    ]
    return Losses(torch.stack(losses).sum(0), are_right(combined(branches), batch.labels).sum())


def end_epoch(trainer: Trainer, plan: list[Ints]) -> EpochEvent:
    """Score the validation split, begin the next epoch, and return the event.

    If the epoch is the best so far, or the last one of a refit, keep the weights. Forget carried
    states.

    Args:
        trainer: The trainer, after the last update of the epoch. It is changed.
        plan: Row numbers of each batch of the epoch.

    Raises:
        RunError: If the validation loss isn't finite, or if weights differ between the processes.
    """
    progress = trainer.progress
    lr = learning_rate(
        trainer.settings,
        max(0, progress.updates - 1),
        trainer.total_updates,
        plateaus(progress.history),
    )
    check_equal_weights(trainer)
    loss = progress.loss_sum / progress.examples
    accuracy = progress.correct / progress.examples
    scores, result, validation_loss = None, None, None
    if progress.phase == "pretraining":
        validation_loss = token_loss(trainer)
    elif progress.phase == "training":
        scores, result = score_epoch(trainer, loss, accuracy)
        validation_loss = None if scores is None else scores.loss
    time_steps, seconds = progress.time_steps, progress.seconds
    progress.end_epoch(result)
    if trainer.holds_model_to_keep:
        trainer.keep_best()
    trainer.keep_logits()
    trainer.carried.forget()
    return EpochEvent(
        phase=progress.phase,
        epoch=progress.epoch,
        update=progress.updates,
        loss=loss / num_losses(trainer),
        accuracy=accuracy,
        validation_loss=validation_loss,
        validation=scores,
        lr=lr,
        seconds=seconds,
        time_steps=time_steps,
        padding_fraction=padding_fraction(plan, trainer.store.lengths),
        is_best=progress.phase == "training" and trainer.best_epoch == progress.epoch,
    )


def score_epoch(
    trainer: Trainer, loss: float, accuracy: float
) -> tuple[Scores | None, EpochResult]:
    """Return the scores of the model on validation, if there is one, and the result of the epoch.

    Epochs are compared by the branches that learn. The solved ones don't change, and where they are
    good, they would hide whether the others still learn.

    Args:
        trainer: The trainer, after the last update of the epoch.
        loss: Training loss in nats.
        accuracy: Training accuracy.
    """
    settings, rows = trainer.settings, trainer.validation
    if rows is None:
        value = -loss if settings.monitor == "loss" else accuracy
        return None, EpochResult(
            value=value,
            error=0.0,
            loss=loss,
            train_loss=loss,
            train_accuracy=accuracy,
            model_value=value,
        )
    found = dict(zip(trainer.network.branch_names, trainer.validation_logits(), strict=True))
    facts = rows.labels, rows.lengths, trainer.labels
    scores = score(trainer.network.combine(list(found.values())), *facts)
    own = scores
    if len(trainer.trained_branches) < len(found):
        own = score(combined([found[name] for name in trainer.trained_branches]), *facts)
    _check_finite_loss(trainer, own.loss + scores.loss)
    return scores, EpochResult(
        value=own.monitored(settings.monitor),
        error=own.standard_error(settings.monitor),
        loss=own.loss,
        train_loss=loss,
        train_accuracy=accuracy,
        model_value=scores.monitored(settings.monitor),
    )


@torch.no_grad()
def token_loss(trainer: Trainer) -> float | None:
    """Return the mean loss per predicted token on validation in nats, or None without validation.

    All processes must call this together.
    """
    rows, model = trainer.validation, trainer.model
    if rows is None:
        return None
    model.eval()
    sums = torch.zeros(2, dtype=torch.float64, device="cpu")
    plan = plan_in_order_of_length(rows.lengths, EVALUATION_BATCHING)
    for _, losses in map_batches(
        model,
        rows,
        trainer.processes.share(plan),
        trainer.device,
        lower=keys_to_lower(trainer),
        before_batch=trainer.processes.raise_if_stopped,
    ):
        sums += sums.new_tensor([float(losses.sum()), len(losses)])
    total, number = trainer.processes.sum(sums)[0].tolist()
    _check_finite_loss(trainer, total / number)
    return float(total / number)


def _check_finite_loss(trainer: Trainer, loss: float) -> None:
    """Raise RunError if the validation loss of the current epoch isn't finite."""
    if not math.isfinite(loss):
        raise error(
            trainer,
            f"epoch {trainer.progress.epoch + 1}: the validation loss is {loss}; lower "
            f"{section_of(trainer)}.lr; what was saved stays valid",
        )


def changed_rows(trainer: Trainer, rows: SequenceStore, number: int) -> SequenceStore:
    """Return the sequences of a batch, randomly changed if training.augment is set.

    Args:
        trainer: The trainer.
        rows: The sequences.
        number: Number of the batch in the epoch.
    """
    amounts, config = trainer.settings.augment, trainer.config
    if amounts is None:
        return rows
    width = rows.values.shape[1]
    return augmented(
        rows,
        shift=amounts.get("shift", 0.0),
        slice=amounts.get("slice", 0.0),
        channels=width // {"error": 1, "mask": 2, "last": 3}[config.data.missing],
        seed=config.seed,
        epoch=trainer.progress.epoch,
        batch=number,
    )


def check_equal_weights(trainer: Trainer) -> None:
    """Compare the weights of all processes, each of which must call this.

    Raises:
        RunError: If a weight of a process differs from rank 0 in any bit. Different hardware or
            versions may be the cause.
    """
    content = (
        weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        for weight in trainer.model.state_dict().values()
    )
    others = trainer.processes.unlike_first(content)
    if others:
        raise error(
            trainer,
            f"epoch {trainer.progress.epoch + 1}: weights differ between rank 0 and {others}; "
            "what was saved after the epoch before stays valid; check that their hardware and "
            "versions are equal",
        )


def error(trainer: Trainer, problem: str) -> RunError:
    """Return a RunError. It has the message on rank 0, and no message on other ranks.

    Args:
        trainer: The trainer.
        problem: Message. The name of the phase is put before it, except in training.
    """
    phase = trainer.progress.phase
    prefix = "" if phase == "training" else f"{phase} "
    return RunError(*trainer.processes.lines(prefix + problem))


def section_of(trainer: Trainer) -> str:
    """Return the name of the config's section with the learning rate of the current phase."""
    if trainer.progress.phase == "pretraining":
        return "pretraining"
    return "training"


def sort_of(trainer: Trainer) -> str:
    """Return where the rows of a batch are sorted by length, as batching.sort names it."""
    if trainer.progress.phase == "pretraining":
        return "collate"
    return trainer.config.batching.sort


def keys_to_lower(trainer: Trainer) -> str:
    """Return the names of config keys to lower if memory runs out."""
    if trainer.progress.phase == "pretraining":
        return "pretraining.max_length, batching.batch_size or model.hidden_size"
    if trainer.config.batching.max_tokens is None:
        size = "batch_size"
    else:
        size = "max_tokens"
    return f"batching.{size}, data.max_length or model.hidden_size"


def num_losses(trainer: Trainer) -> int:
    """Return the number of branches whose losses are added up."""
    if trainer.progress.phase == "pretraining":
        return 1
    return len(trainer.trained_branches)


def _freezes(trainer: Trainer, epoch: int) -> bool:
    """Return True if the vectors of tokens are frozen in an epoch, from 0, by model.freeze."""
    model = trainer.config.model
    if trainer.progress.phase == "pretraining":
        return bool(model.freeze and model.vectors)
    if isinstance(model.freeze, bool):
        return model.freeze
    return epoch < model.freeze


def _not_finite(trainer: Trainer, name: str, batch: Batch, losses: Tensor) -> RunError:
    """Return the error for a loss or a gradient that isn't finite.

    The error names the rows whose losses aren't finite. If no such row is known, it names all rows
    of the batch.

    Args:
        trainer: The trainer.
        name: "loss" or "gradient".
        batch: The batch.
        losses: Losses of the batch's rows, or of tokens.
    """
    store, losses = trainer.store, losses.cpu()
    rows = batch.examples
    if len(losses) == len(rows) and not bool(losses.isfinite().all()):
        rows = rows[~batch.restore(losses).isfinite().numpy()]
    if len(store.files) > 1:
        places = dict.fromkeys(store.place(row) for row in rows.tolist())
        where = listed(list(places), SHOWN_FILES)
    else:
        shown = listed([str(store.lines[row]) for row in rows.tolist()], SHOWN_LINES)
        where = f"train lines {shown} (of a folder: rows through its files)"
    return error(
        trainer,
        f"update {trainer.progress.updates + 1}: the {name} isn't finite for {where}; nothing was "
        f"updated; lower {section_of(trainer)}.lr, or look at these rows",
    )
