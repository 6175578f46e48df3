"""Losses of a batch and their gradients, which processes compute together."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from seqtrain.model.randomness import RandomNumbers
from seqtrain.sequences.batch import Batch, augmented, collate
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.blocks import Ints
from seqtrain.training.losses import Losses
from seqtrain.training.processes import sum_gradients
from seqtrain.training.trainer import Trainer


def compute_gradients(trainer: Trainer, batch: Batch) -> tuple[Tensor, Losses, int]:
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
    total = losses.each.detach().sum()
    each = losses.each.detach()
    if mine is None:
        return total, Losses(each, losses.correct), number
    rows = zero.new_zeros(len(batch.lengths))
    if part is not None and len(each) == len(mine):
        rows[mine] = part.restore(each)
    if trainer.setup.groups is None:
        groups = None
    else:
        groups = trainer.setup.groups[batch.examples]
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
        trainer, trainer.setup.rows.__getitems__(batch.examples), trainer.progress.batches
    )
    part = collate(rows.__getitems__(mine), trainer.setup.sort)
    return replace(part, examples=batch.examples[mine]).to(trainer.device), mine


def batch_losses(trainer: Trainer, batch: Batch) -> Losses:
    """Return the losses of a batch, with their graph, the random numbers and the precision.

    In pretraining, these are the losses of the predicted tokens. Else they are the weighted losses
    of the examples.
    """
    # The rows of a batch are sorted by length, and so are their numbers.
    examples = batch.examples[batch.sorted_indices.cpu().numpy()]
    numbers = RandomNumbers.of(
        trainer.config.seed, trainer.progress.updates, torch.from_numpy(examples)
    )
    is_lowered = trainer.setup.settings.precision == "bfloat16"
    device = trainer.device.type
    with torch.autocast(device, torch.bfloat16) if is_lowered else nullcontext():
        return trainer.setup.losses(batch, examples, numbers, trainer.carried)


def changed_rows(trainer: Trainer, rows: SequenceStore, number: int) -> SequenceStore:
    """Return the sequences of a batch, randomly changed if training.augment is set.

    Args:
        trainer: The trainer.
        rows: The sequences.
        number: Number of the batch in the epoch.
    """
    amounts = trainer.setup.settings.augment
    config = trainer.config
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
