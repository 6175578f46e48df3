"""The classifier: a list of branches, and a calibration of their combined logits.

B sequences, N packed time steps, C classes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.layout import Packed
from seqtrain.engines.threads import one_thread_after_fork
from seqtrain.model.branches import BRANCHES
from seqtrain.model.branches.branch import Branch, ForwardContext
from seqtrain.model.branches.solved import SolvedBranch, SolverInput
from seqtrain.model.calibration import LogitCalibration
from seqtrain.model.initialization import draw_defaults, materialize
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.inputs import SideInputs
from seqtrain.sequences.batch import Batch, sort_and_pack
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.blocks import Array, Ints

SomeBranch = TypeVar("SomeBranch", bound=Branch)


class ClassifierNetwork(nn.Module):
    """Many-to-one classifier.

    A new network has shapes but no memory: call `initialize`, or load weights with ``assign=True``.

    Args:
        config: the section model of a config.
        spec: description of inputs and classes, such as the size of the vocabulary.
        multi_label: True if a sequence may have several labels or none.

    Attributes:
        branches: the branches that the config uses, in the order of `BRANCHES`.
        branch_names: names of `branches`, in the same order.
        reads_ids: True if a time step is a single token id.
        calibration: calibration of predictions. It isn't used in training.
    """

    def __init__(self, config: ModelConfig, spec: InputSpec, *, multi_label: bool = False) -> None:
        super().__init__()
        one_thread_after_fork()
        self.config = config
        self.input_size = spec.input_size
        self.num_classes = spec.num_classes
        self.reads_ids = not spec.features and spec.steps is None
        self.multi_label = multi_label
        self.calibration = LogitCalibration()
        self.branches: list[Branch] = []
        with torch.device("meta"):
            for kind in BRANCHES:
                branch = kind.build(config, spec)
                if branch is not None:
                    self.add_module(kind.name, branch.float())
                    self.branches.append(branch)
        self.branch_names = [branch.name for branch in self.branches]
        self.register_state_dict_post_hook(_remove_first_prefix)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(_add_first_prefix)  # type: ignore[no-untyped-call]

    @property
    def solved_branches(self) -> list[str]:
        """Names of the branches that `solve` fits and training doesn't change, such as trees."""
        return [branch.name for branch in self.branches if isinstance(branch, SolvedBranch)]

    def find(self, kind: type[SomeBranch]) -> SomeBranch | None:
        """Return the branch of a class, or None if the network has none."""
        return next((branch for branch in self.branches if isinstance(branch, kind)), None)

    def initialize(self, seed: int) -> None:
        """Give the weights memory on the CPU, and draw them from a generator with this seed.

        Solved branches aren't fitted: their arrays are zero.
        """
        materialize(self)
        generator = torch.Generator("cpu").manual_seed(seed)
        draw_defaults(self, generator)
        for branch in self.branches:
            branch.initialize(generator)

    def solve(self, store: SequenceStore, weights: Array | None, seed: int, num_train: int) -> None:
        """Fit the branches that training doesn't change, in place.

        Args:
            store: labelled sequences.
            weights: weight of each row, (B,): that of its class times its own. A row with a weight
                of 2 counts like two equal rows, and a row with 0 is left out. None if all are 1.
            seed: seed of all random choices.
            num_train: number of rows of the training split, also in a refit.
        """
        if weights is None:
            weights = np.ones(len(store))
        else:
            weights = np.asarray(weights, np.float64)
        if not weights.all():
            rows = np.flatnonzero(weights)
            store, weights = store.selection(rows), weights[rows]
        for branch in self.branches:
            if isinstance(branch, SolvedBranch):
                branch.solve(SolverInput(store, weights, seed, num_train))

    def set_sparse_gradients(self, sparse: bool) -> list[Tensor]:
        """Make the gradients of all tables in `Branch.tables` sparse or dense, from now on.

        Returns:
            The weights of the tables if `sparse` is True, else an empty list.
        """
        tables = [table for branch in self.branches for table in branch.tables()]
        for table in tables:
            table.sparse = sparse
        if sparse:
            return [table.weight for table in tables]
        return []

    def forward(self, batch: Batch, context: ForwardContext | None = None) -> Tensor:
        """Return the mean of the branches' logits with equal weights, (B, C), without calibration.

        The rows are in the order of the batch. In training mode, solved branches are left out.
        Arguments, changes of the context and errors are as in `branch_logits`.
        """
        return combined(self.branch_logits(batch, context))

    def branch_logits(
        self,
        batch: Batch,
        context: ForwardContext | None = None,
        names: Collection[str] | None = None,
    ) -> list[Tensor]:
        """Return the logits of each branch, (B, C), row by row of the batch.

        The list is in the order of `branches`. In training mode, solved branches are left out.

        Args:
            batch: packed, or padded in any order.
            context: settings of the forward pass, or None for the defaults of prediction. The
                recurrent branch sets its `final_states`.
            names: names of the branches to compute, or None for all.

        Raises:
            ValueError: If the lengths of a padded batch are invalid, if random numbers that
                training needs are missing, or if the batch lacks row features.
            ConfigError: If model.engine asks for an engine that can't run here.
        """
        context = ForwardContext() if context is None else context
        if not isinstance(batch.inputs, PackedSequence):
            return self._sorted_branch_logits(batch, context, names)
        layout, side = Packed.of(batch.inputs), SideInputs.of(batch)
        return [
            branch(batch.inputs.data, layout, side, context)
            for branch in self.branches
            if names is None or branch.name in names
            if not (self.training and isinstance(branch, SolvedBranch))
        ]

    def _sorted_branch_logits(
        self, batch: Batch, context: ForwardContext, names: Collection[str] | None
    ) -> list[Tensor]:
        """Compute `branch_logits` of a padded batch, by a copy that is sorted and packed.

        The logits and the final states of the context are in the order of the padded batch.
        """
        order = batch.lengths.argsort(descending=True, stable=True)
        start, random = context.start, context.random
        own = replace(
            context,
            start=None if start is None else start[:, :, order.to(start.device)],
            random=None if random is None else random.rows(order),
        )
        logits = self.branch_logits(_packed(batch), own, names)
        back = order.argsort().to(batch.inputs.data.device)
        if own.final_states is not None:
            context.final_states = own.final_states[:, :, back]
        return [found[back] for found in logits]

    @property
    def whole_sequence_key(self) -> str | None:
        """Config key that makes predictions need whole sequences, or None.

        If several branches have such a key, it is the key of the first one. Without such a key,
        `step_logits` can predict after every time step.
        """
        keys = [branch.whole_sequence_key for branch in self.branches]
        return next(filter(None, keys), None)

    def step_logits(self, batch: Batch, context: ForwardContext | None = None) -> Tensor:
        """Return the calibrated logits after every step of a packed batch, (N, C), in packed order.

        The final states of the context are set.

        Raises:
            NotImplementedError: If a branch needs whole sequences; see `whole_sequence_key`.
            ValueError: If the batch lacks row features.
        """
        if self.whole_sequence_key is not None:
            raise NotImplementedError(f"{self.whole_sequence_key}: needs whole sequences")
        context = ForwardContext() if context is None else context
        packed, side = batch.packed, SideInputs.of(batch)
        layout = Packed.of(packed, every_step=True)
        logits = [branch(packed.data, layout, side, context) for branch in self.branches]
        return self.combine(logits)

    def combine(self, branches: Sequence[Tensor]) -> Tensor:
        """Return the calibrated logits of a prediction, (…, C).

        Args:
            branches: logits of every branch, (…, C), in the order of `branches`.
        """
        calibration = self.calibration
        logits = combined(branches, calibration.branch_weights)
        if calibration.temperature != 1:
            device = logits.device
            divisor = torch.tensor(calibration.temperature, dtype=torch.float32, device=device)
            logits = logits.float() / divisor
        if calibration.shift is not None:
            logits = logits + logits.new_tensor(calibration.shift)
        return logits

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the probability of each class, (…, C) float64, from calibrated logits.

        The probabilities add up to 1, unless the task is multi-label.
        """
        if self.multi_label:
            return logits.double().sigmoid()
        return logits.double().softmax(-1)

    @property
    def default_branch_weights(self) -> list[float] | None:
        """Default weights of the branches, with a sum of 1, or None for equal weights."""
        weights = [branch.default_weight for branch in self.branches]
        if len(set(weights)) == 1:
            return None
        return [weight / sum(weights) for weight in weights]


def _packed(batch: Batch) -> Batch:
    """Return what branches read of a padded batch, with its rows sorted by length and packed.

    Raises:
        ValueError: If the lengths don't fit the padded inputs.
    """
    packed, order, _ = sort_and_pack(batch.inputs.data, batch.lengths)
    spellings, static, vectors = batch.spellings, batch.static, batch.vectors
    return replace(
        batch,
        inputs=packed,
        lengths=batch.lengths[order.cpu()],
        spellings=None if spellings is None else spellings.packed(batch.lengths),
        static=None if static is None else static[order],
        vectors=None if vectors is None else vectors[order],
        on_host=None if batch.on_host is None else _packed(batch.on_host),
    )


def combined(branches: Sequence[Tensor], weights: Sequence[float] | None = None) -> Tensor:
    """Return the weighted mean of the branches' logits, (…, C), in float32.

    The logits of a single branch are returned unchanged, in their own type. In a single-label task
    the mean of logits gives the same probabilities as the mean of log-probabilities.

    Args:
        branches: logits of each branch, (…, C).
        weights: weight of each branch, with a sum of 1, or None for equal weights.
    """
    if len(branches) == 1:
        return branches[0]
    stacked = torch.stack([logits.float() for logits in branches])
    if weights is None:
        return stacked.mean(0)
    total: Tensor = torch.tensordot(stacked.new_tensor(weights), stacked, 1)
    return total


def _remove_first_prefix(
    network: ClassifierNetwork, state: dict[str, Tensor], prefix: str, metadata: Any
) -> None:
    """Remove the name of the first branch from the names of its weights, after `state_dict`.

    It is a hook of torch, which changes `state` in place.
    """
    first = f"{prefix}{network.branch_names[0]}."
    for name in list(state):  # each entry moves to the end, so that their order stays
        tensor = state.pop(name)
        state[name.replace(first, prefix, 1)] = tensor


def _add_first_prefix(
    network: ClassifierNetwork, state: dict[str, Tensor], prefix: str, *rest: Any
) -> None:
    """Add the name of the first branch to the names of its weights, before `load_state_dict`.

    It is a hook of torch, which changes `state` in place.
    """
    first, *others = (f"{prefix}{name}." for name in network.branch_names)
    for name in list(state):
        if name.startswith(prefix) and not name.startswith(tuple(others)):
            state[first + name.removeprefix(prefix)] = state.pop(name)


def new_network(
    config: ModelConfig, preprocessing: Preprocessing, lengths: Ints | None = None
) -> ClassifierNetwork:
    """Return a network whose weights have no memory, and whose calibration changes nothing.

    Initialize the weights, or load them with ``assign=True``.

    Args:
        config: the section model of a config.
        preprocessing: the fitted preprocessing of the network's inputs.
        lengths: number of time steps of each training sequence, (B,), which model.kernels needs.
            The smallest, the median and the largest number are enough. If it is None, the network
            has no kernel branch.
    """
    spec = InputSpec.of(preprocessing, lengths if config.kernels else None)
    return ClassifierNetwork(config.architecture, spec, multi_label=preprocessing.multi_label)
