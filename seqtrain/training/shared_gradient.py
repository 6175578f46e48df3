"""The gradient of a batch whose parts are computed apart, by several processes or one by one.

One sum over a flat array joins all: dense gradients, the rows of tables that any part touches (all
know them, for all know the whole batch), and figures. A table is never sent whole.

U touched rows of a table, E size of a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqtrain.data.batch import Batch, sort_and_pack
from seqtrain.data.spellings import Spellings
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.encoder import distinct_ids
from seqtrain.processes.group import Group
from seqtrain.signals import STOPPING
from seqtrain.training.parts import rows_of_parts

FIGURES = 3
"""Sum of the losses, right answers, and how many losses there are."""


class SharedGradient:
    """Adds up the gradients of a batch's parts, this process's and all others'.

    Args:
        model: whose weights have gradients.
        by_rows: its tables whose gradients hold touched rows alone.
        group: the processes.
        shards: parts of a batch, at least; their sums are added in an order that doesn't depend on
            the number of processes, where both are powers of two. None: one part per process.

    Attributes:
        touched: rows of each table that the whole batch touches, by the id of the weight.
    """

    def __init__(
        self,
        model: SequenceClassifier | PretrainingModel,
        by_rows: Sequence[Tensor],
        group: Group,
        shards: int | None,
    ) -> None:
        self._model = model
        self._weights = [p for p in model.parameters() if p.requires_grad]
        self._by_rows = [any(p is weight for weight in by_rows) for p in self._weights]
        self._group = group
        self._in_order = shards is not None
        self._shards = max(shards or 1, group.size)
        self.touched: dict[int, Tensor] = {}
        self._sums: list[Tensor] = []

    def begin(self, batch: Batch) -> list[Tensor]:
        """Begin with a batch; return the rows of each part that this process computes."""
        self._sums = []
        self.touched = touched_rows(self._model, batch) if any(self._by_rows) else {}
        parts = rows_of_parts(batch.lengths, self._shards)
        rank, size = self._group.rank, self._group.size
        return parts[rank * self._shards // size : (rank + 1) * self._shards // size]

    def add(self, loss: Tensor | None, correct: Tensor | None, count: int) -> None:
        """Take the gradients that the weights have now, of a part.

        Args:
            loss: sum of its losses; None: the part is empty, and counts for nothing.
            correct: its right answers.
            count: of its losses.
        """
        zero = self._weights[0].new_zeros(())
        if loss is None or correct is None:
            figures = zero.new_zeros(FIGURES)
        else:
            figures = torch.stack((loss.detach(), correct, zero + count)).to(zero.dtype)
        pieces = [self._piece(i, empty=loss is None) for i in range(len(self._weights))]
        given = zero.new_tensor(
            [loss is not None and p.grad is not None for p in self._weights], dtype=zero.dtype
        )
        self._sums.append(torch.cat((*pieces, given, figures)))

    def join(self) -> tuple[Tensor, Tensor, Tensor]:
        """Add up all parts of all processes; the weights then have the gradient of the mean loss.

        Returns:
            The sum of the losses, right answers, and how many losses there are, scalars.

        Raises:
            RunError: a process is lost.
        """
        asked = self._sums[0].new_tensor(self._group.asked_to_stop())
        total = torch.cat((added_in_pairs(self._sums), asked))
        self._sums = []
        self._group.sum(total, in_order=self._in_order)
        sizes = [self._size(i) for i in range(len(self._weights))]
        *gradients, given, figures, came = total.split_with_sizes(
            [*sizes, len(self._weights), FIGURES, len(STOPPING)]
        )
        self._group.heed(came.tolist())
        loss, correct, count = figures
        for i, is_given in enumerate(given.tolist()):
            self._weights[i].grad = self._gradient(i, gradients[i] / count) if is_given else None
        return loss, correct, count

    def _size(self, i: int) -> int:
        weight = self._weights[i]
        if not weight.requires_grad:
            return 0
        return (
            len(self.touched[id(weight)]) * weight.shape[1] if self._by_rows[i] else weight.numel()
        )

    def _piece(self, i: int, *, empty: bool) -> Tensor:
        """Return a weight's gradient laid out flat, zeros where it has none."""
        weight = self._weights[i]
        gradient = weight.grad
        if gradient is None or empty:
            return weight.new_zeros(self._size(i))
        if not gradient.is_sparse:
            return gradient.flatten()
        gradient = gradient.coalesce()
        rows = self.touched[id(weight)]
        flat = weight.new_zeros(len(rows), weight.shape[1])
        flat[torch.searchsorted(rows, gradient.indices()[0])] = gradient.values()
        return flat.flatten()

    def _gradient(self, i: int, flat: Tensor) -> Tensor:
        weight = self._weights[i]
        if not self._by_rows[i]:
            return flat.view_as(weight)
        rows = self.touched[id(weight)]
        return torch.sparse_coo_tensor(
            rows[None],
            flat.view(len(rows), -1),
            weight.shape,
            is_coalesced=True,
            check_invariants=False,
            device=weight.device,
        )


def added_in_pairs(parts: Sequence[Tensor]) -> Tensor:
    """Add up tensors by a tree: first with second, third with fourth, then their sums."""
    while len(parts) > 1:
        pairs = [parts[i] + parts[i + 1] for i in range(0, len(parts) - 1, 2)]
        parts = [*pairs, *parts[2 * len(pairs) :]]
    return parts[0]


def touched_rows(model: SequenceClassifier | PretrainingModel, batch: Batch) -> dict[int, Tensor]:
    """Return the rows of each table that a batch touches, ascending, by the id of the weight.

    Shape:
        Returns: (U,) int64 each.
    """
    classifier = model.classifier if isinstance(model, PretrainingModel) else model
    embedding, packed = classifier.embedding, batch.packed
    found = {}
    if isinstance(embedding, torch.nn.Embedding):
        found[id(embedding.weight)] = distinct_ids(packed.data, embedding.num_embeddings)[0]
    if classifier.subwords is not None:
        spelled = batch.spellings
        if spelled is not None and isinstance(batch.inputs, Tensor):
            numbers = sort_and_pack(spelled.numbers, batch.lengths)[0].data
            spelled = Spellings(numbers, spelled.grams)
        ids = torch.unique(classifier.inputs.numbered(packed, spelled).data)
        grams = None if spelled is None else spelled.grams
        buckets, _ = classifier.subwords.buckets(ids, grams)
        found[id(classifier.subwords.weight)] = torch.unique(buckets)
    if classifier.ngrams is not None:
        found[id(classifier.ngrams.weight)] = torch.unique(classifier.ngrams.find(packed).index)
    return found
