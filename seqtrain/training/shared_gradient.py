"""The gradient of a batch whose rows are shared by several processes.

One sum over a flat array joins all: dense gradients, the rows of tables that any part touches (all
know them, for all know the whole batch), and figures. A table is never sent whole.

U touched rows of a table, E size of a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqtrain.data.batch import Batch, Spellings, sort_and_pack
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.inputs import distinct_ids
from seqtrain.processes.group import Group
from seqtrain.signals import STOPPING
from seqtrain.training.parts import rows_of_parts

FIGURES = 3
"""Sum of the losses, right answers, and how many losses there are."""


class SharedGradient:
    """Adds up the gradients of a batch's rows, this process's and all others'.

    Args:
        model: whose weights have gradients.
        by_rows: its tables whose gradients hold touched rows alone.
        group: the processes.

    Attributes:
        touched: rows of each table that the whole batch touches, by the id of the weight.
    """

    def __init__(
        self, model: SequenceClassifier | PretrainingModel, by_rows: Sequence[Tensor], group: Group
    ) -> None:
        self._model = model
        self._weights = [p for p in model.parameters() if p.requires_grad]
        self._by_rows = [any(p is weight for weight in by_rows) for p in self._weights]
        self._group = group
        self.touched: dict[int, Tensor] = {}

    def rows_of(self, batch: Batch) -> Tensor:
        """Begin with a batch; return the rows of it that this process computes."""
        self.touched = touched_rows(self._model, batch) if any(self._by_rows) else {}
        return rows_of_parts(batch.lengths, self._group.size)[self._group.rank]

    def sum(self, losses: Tensor, correct: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Add up the gradients of all processes; the weights then have that of the mean loss.

        Args:
            losses: of this process's rows, whose gradients the weights have.
            correct: right answers among them; None: this process has no rows.

        Returns:
            The sum of the losses, right answers, and how many losses there are, scalars.

        Raises:
            RunError: a process is lost.
        """
        zero = self._weights[0].new_zeros(())
        figures = zero.new_zeros(FIGURES)
        if correct is not None:
            figures = torch.stack((losses.detach().sum(), correct, zero + len(losses))).to(zero)
        pieces = [self._piece(i, empty=correct is None) for i in range(len(self._weights))]
        given = zero.new_tensor([correct is not None and p.grad is not None for p in self._weights])
        asked = zero.new_tensor(self._group.asked_to_stop())
        summed = self._group.sum(torch.cat((*pieces, given.to(zero), figures, asked)))
        sizes = [len(piece) for piece in pieces]
        *gradients, given, figures, came = summed.split_with_sizes(
            [*sizes, len(self._weights), FIGURES, len(STOPPING)]
        )
        self._group.heed(came.tolist())
        total, right, count = figures
        for i, is_given in enumerate(given.tolist()):
            self._weights[i].grad = self._gradient(i, gradients[i] / count) if is_given else None
        return total, right, count

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
