"""The rows of tables that a batch touches, and the sum of gradients over processes.

One sum over one flat array takes dense gradients, the touched rows of tables (all processes know
the whole batch), and figures. U touched rows of a table, E size of a row.
"""

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from seqtrain.data.batch import Batch
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.model.column_embedding import ColumnEmbedding
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.inputs import distinct_ids
from seqtrain.training.distributed import Processes


def touched_rows(
    model: ClassifierNetwork | PretrainingModel, batch: Batch, tables: Collection[Tensor]
) -> dict[Tensor, Tensor]:
    """Return the rows of these tables that a batch touches, ascending, (U,) int64 each."""
    classifier = model.classifier if isinstance(model, PretrainingModel) else model
    found, spelled = dict[Tensor, Tensor](), batch.spellings
    if spelled is not None and isinstance(batch.inputs, Tensor):
        spelled = spelled.packed(batch.lengths)
    grams = None if spelled is None else spelled.grams
    packed = classifier.inputs.numbered(batch.packed, spelled)
    columns = (classifier.embedding, batch.packed.data), (classifier.static, batch.static)
    for holder, values in columns:
        if isinstance(holder, ColumnEmbedding) and values is not None:
            for table, ids in zip(holder.embeddings, values.unbind(1), strict=False):
                found[table.weight] = torch.unique(ids.long())
    for part in (classifier.embedding, classifier.subwords, classifier.ngrams):
        weight = getattr(part, "weight", None)
        if not any(weight is table for table in tables):
            continue
        assert isinstance(weight, Tensor)
        if part is classifier.embedding:
            found[weight] = distinct_ids(batch.packed.data, len(weight))[0]
        elif part is classifier.subwords:
            assert classifier.subwords is not None
            found[weight] = classifier.subwords.buckets(torch.unique(packed.data), grams)
        else:
            assert classifier.ngrams is not None
            found[weight] = torch.unique(classifier.ngrams.find(packed, grams).which).long()
    return found


def sum_gradients(
    processes: Processes,
    weights: Collection[Tensor],
    touched: Mapping[Tensor, Tensor],
    count: Tensor,
    *figures: Tensor,
) -> list[Tensor]:
    """Let weights have the gradient of the mean over the losses of all processes.

    A weight without a gradient counts as zeros, or stays without one where no process has one. Of a
    table with a sparse gradient the touched rows are sent. `count` is the number of this process's
    losses, a scalar. Returns the sums of count and figures over the processes.

    Raises:
        RunError: a process is lost.
    """
    learning = [weight for weight in weights if weight.requires_grad]
    pieces = [_dense(weight, touched.get(weight)) for weight in learning]
    given = pieces[0].new_tensor([weight.grad is not None for weight in learning])
    given = given.to(pieces[0].dtype)
    given, *sums = processes.sum(given, *pieces, count, *figures)
    summed, figures_summed = sums[: len(learning)], sums[len(learning) :]
    for weight, is_given, total in zip(learning, given.tolist(), summed, strict=True):
        mean = total / figures_summed[0]
        weight.grad = _gradient(weight, mean, touched.get(weight)) if is_given else None
    return figures_summed


def _dense(weight: Tensor, rows: Tensor | None) -> Tensor:
    """Return a weight's gradient, of a table the touched rows alone: (U, E)."""
    gradient = weight.grad
    if rows is None:
        return torch.zeros_like(weight) if gradient is None else gradient
    values = weight.new_zeros(len(rows), weight.shape[1])
    if gradient is not None:
        gradient = gradient.coalesce()
        values[torch.searchsorted(rows, gradient.indices()[0])] = gradient.values()
    return values


def _gradient(weight: Tensor, values: Tensor, rows: Tensor | None) -> Tensor:
    if rows is None:
        return values
    return torch.sparse_coo_tensor(
        rows[None], values, weight.shape,
        is_coalesced=True, check_invariants=False, device=weight.device,
    )  # fmt: skip
