"""The trees branch: gradient-boosted trees on aggregates of each sequence.

It suits tables with a row per time step, and symbols. Their classes often follow from a count, an
extreme value or a row feature.

B sequences, T longest length, K columns of a step, C classes, R rounds, S splits, L leaves.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqtrain.config.schema import BatchingConfig, ModelConfig
from seqtrain.engines.layout import Layout, Packed
from seqtrain.model.aggregates import AggregateLayout
from seqtrain.model.boosting import TREE_SPLITS, Trees, fit_trees, most_rounds
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.branches.solved import SolvedBranch, SolverInput, class_matrix
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.inputs import SideInputs
from seqtrain.sequences.batch import collate
from seqtrain.sequences.plan import plan_in_order_of_length
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.vocabulary import Vocabulary

MAX_TOKENS = 60
"""Largest number of tokens of a column that are counted. They are its most frequent tokens."""
_STEPS_AT_ONCE = 2**15
"""Approximate number of time steps that `features` aggregates at once, with padding."""


class TreeBranch(SolvedBranch):
    """Branch whose logits are computed by boosted trees on the aggregates of a sequence.

    Args:
        layout: layout of the aggregates.
        num_classes: number of classes.

    Attributes:
        column, cut, leaf, start: arrays as in `Trees`, with space for the largest number of rounds.
        rounds: number of rounds that are used, (1,).
    """

    name = "trees"
    title = "boosted trees"
    default_weight = 2.0
    column: Tensor
    cut: Tensor
    leaf: Tensor
    start: Tensor
    rounds: Tensor

    def __init__(self, layout: AggregateLayout, num_classes: int) -> None:
        super().__init__()
        self.layout = layout
        shape = most_rounds(num_classes), num_classes
        self.register_buffer("column", torch.zeros(*shape, TREE_SPLITS, dtype=torch.long))
        self.register_buffer("cut", torch.zeros(*shape, TREE_SPLITS))
        self.register_buffer("leaf", torch.zeros(*shape, TREE_SPLITS + 1))
        self.register_buffer("start", torch.zeros(num_classes))
        self.register_buffer("rounds", torch.zeros(1, dtype=torch.long))

    @classmethod
    def build(cls, config: ModelConfig, spec: InputSpec) -> TreeBranch | None:
        """Return the branch, or None without model.trees."""
        if config.trees:
            return cls(layout_of(spec), spec.num_classes)
        return None

    @torch.no_grad()
    def features(self, store: SequenceStore) -> npt.NDArray[np.float32]:
        """Return the aggregates of each row of a store, (B, A), NaN where missing."""
        values = np.empty((len(store), self.layout.width), np.float32)
        batching = BatchingConfig(max_tokens=_STEPS_AT_ONCE)
        for rows in plan_in_order_of_length(store.lengths, batching):
            batch = collate(store.__getitems__(rows))
            layout = Packed.of(batch.packed)
            found = self._aggregates(batch.packed.data, layout, SideInputs.of(batch))
            values[rows] = batch.restore(found).numpy()
        return values

    def solve(self, given: SolverInput) -> None:
        """Fit the trees to the aggregates of labelled sequences, and set the arrays in place."""
        labels = given.store.labels
        trees = fit_trees(
            torch.from_numpy(self.features(given.store)),
            torch.from_numpy(class_matrix(labels, len(self.start))),
            torch.from_numpy(given.weights),
            multi_label=labels.ndim == 2,
            seed=given.seed,
        )
        used = len(trees.leaf)
        self.rounds.fill_(used)
        for name in ("column", "cut", "leaf"):
            getattr(self, name).zero_()[:used] = getattr(trees, name)
        self.start[:] = trees.start

    @torch.no_grad()
    def forward(
        self, steps: Tensor, layout: Layout, side: SideInputs, context: ForwardContext
    ) -> Tensor:
        """Return the logits, (B, C), without gradients; see `Branch.forward`."""
        return self._trees().logits(self._aggregates(steps, layout, side))

    def _aggregates(self, steps: Tensor, layout: Layout, side: SideInputs) -> Tensor:
        return self.layout.aggregate(layout.pad(steps), layout.valid, side.static)

    def _trees(self) -> Trees:
        """Return the trees of the used rounds.

        Before the fit, there is one round of trees, which add 0 to the logits. Invalid column
        numbers are clamped, because a model folder may come from anyone.
        """
        used = max(1, int(self.rounds))
        column = self.column[:used].clamp(0, self.layout.width - 1)
        return Trees(column, self.cut[:used], self.leaf[:used], self.start)


def layout_of(spec: InputSpec) -> AggregateLayout:
    """Return the layout of the aggregates for step columns and row features.

    - With `by` in data.steps, a number column is also aggregated by the tokens of that column. If
      no column has `by`, a single token column is used for all number columns.
    - At most `MAX_TOKENS` tokens of a column are counted.
    - In series, indicators of missing values count as number columns.
    """
    row_tokens: tuple[int, ...] = ()
    row_numbers = 0
    if spec.static is not None:
        row_tokens = tuple(map(_counted, spec.static.vocabularies))
        row_numbers = spec.static.input_size - len(row_tokens)
    if spec.steps is None:
        if spec.features:
            return AggregateLayout((), spec.input_size, False, row_tokens, row_numbers)
        tokens = min(MAX_TOKENS, spec.input_size - 1)
        return AggregateLayout((tokens,), 0, False, row_tokens, row_numbers)
    table = spec.steps
    names = [column.name for column in table.tokens]
    by = tuple(None if x.by is None else names.index(x.by) for x in table.numbers)
    if len(names) == 1 and not any(x.by for x in table.numbers):
        by = (0,) * len(by)
    return AggregateLayout(
        tuple(map(_counted, table.vocabularies)),
        table.channels,
        table.has_indicators,
        row_tokens,
        row_numbers,
        by=by,
    )


def _counted(vocabulary: Vocabulary) -> int:
    """Return the number of ids of a vocabulary that are counted.

    These are all ids except for <pad>, but at most `MAX_TOKENS`.
    """
    return min(MAX_TOKENS, len(vocabulary) - 1)
