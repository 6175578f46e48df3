"""Logits of a store, computed in batches of similar length; states that are carried in groups."""

from collections.abc import Callable, Collection, Iterable
from functools import partial

import torch
from torch import Tensor

from seqtrain.config.schema import BatchingConfig
from seqtrain.data.batch import Batch, collate, map_batches
from seqtrain.data.labels import unknown_rows
from seqtrain.data.plan import plan_in_order_of_length
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import RunError
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.model.engines.interface import Engine

EVALUATION_BATCHING = BatchingConfig(max_tokens=32768)
"""Large batches: a token is embedded and projected once in each."""


class CarriedStates:
    """State at the end of the last row of each group, detached: the start of its next row.

    While `frozen` is True, states don't change. G groups.
    """

    def __init__(self) -> None:
        self.frozen = False
        self._states: dict[int, Tensor] = {}

    def starts(self, groups: Ints | None, model: ClassifierNetwork) -> Tensor | None:
        """Return each row's start state, (P, L, B, H); zeros for a group's first row."""
        if groups is None:
            return None
        zeros = recurrent_branch(model).zero_state(1)[:, :, 0]
        return torch.stack([self._states.get(group, zeros) for group in groups.tolist()], dim=2)

    def keep(self, groups: Ints | None, states: Tensor) -> None:
        """Store the states (P, L, B, H) at the end of these groups' rows, detached."""
        if groups is None or self.frozen:
            return
        for group, state in zip(groups.tolist(), states.detach().unbind(2), strict=True):
            if group >= 0:
                self._states[group] = state.clone()

    def forget(self) -> None:
        """Reset every group to zeros."""
        self._states.clear()

    def tensors(self, model: ClassifierNetwork) -> dict[str, Tensor]:
        """Return what `load` takes: groups (G,) and their states (G, P, L, H)."""
        groups = torch.tensor([*self._states], dtype=torch.int64, device="cpu")
        zeros = recurrent_branch(model).zero_state(1)[:, :, 0]
        states = torch.stack([zeros, *self._states.values()])[1:]
        return {"carried.groups": groups, "carried.states": states}

    def load(self, tensors: dict[str, Tensor], model: ClassifierNetwork) -> None:
        """Restore what `tensors` returned.

        Raises:
            ValueError: If the tensors don't fit the model.
        """
        self.forget()
        groups, states = tensors.get("carried.groups"), tensors.get("carried.states")
        if groups is None or states is None:
            raise ValueError("carried: the states that groups ended in are missing")
        zeros = recurrent_branch(model).zero_state(1)[:, :, 0]
        if (
            groups.dtype != torch.int64
            or states.dtype != zeros.dtype
            or states.shape != (*groups.shape, *zeros.shape)
            or not bool(torch.isfinite(states).all())
            or not bool((groups >= 0).all())
            or len({*groups.tolist()}) < len(groups)
        ):
            raise ValueError(f"carried: expected groups (G,) and states (G, {[*zeros.shape]})")
        self._states = dict(zip(groups.tolist(), states.to(zeros.device).unbind(), strict=True))


def classify(
    model: ClassifierNetwork,
    batch: Batch,
    carried: CarriedStates | None = None,
    context: ForwardContext | None = None,
    names: Collection[str] | None = None,
) -> list[Tensor]:
    """Return the logits of a batch for each branch, (B, C), row by row of the batch.

    Args:
        model: the network.
        batch: sequences. No two of them are of one group.
        carried: states at which the rows start, and which get those where they end, or None.
        context: settings of the forward pass. None means prediction.
        names: branches to compute, or None for all.
    """
    context = ForwardContext() if context is None else context
    if carried is not None:
        context.start = carried.starts(batch.groups, model)
    branches = model.branch_logits(batch, context, names)
    if carried is not None and context.start is not None and context.final_states is not None:
        # Autocast may have lowered the states.
        carried.keep(batch.groups, context.final_states.to(context.start.dtype))
    return branches


def predict_logits(
    model: ClassifierNetwork,
    store: SequenceStore,
    device: torch.device,
    batching: BatchingConfig = EVALUATION_BATCHING,
    carried: CarriedStates | None = None,
) -> Tensor:
    """Return the calibrated logits of every sequence, (B, C); `branch_logits` has the arguments."""
    return model.combine(branch_logits(model, store, device, batching, carried))


@torch.inference_mode()
def branch_logits(
    model: ClassifierNetwork,
    store: SequenceStore,
    device: torch.device,
    batching: BatchingConfig = EVALUATION_BATCHING,
    carried: CarriedStates | None = None,
    *,
    before_batch: Callable[[], None] = lambda: None,
    share: tuple[int, int] = (0, 1),
    names: Collection[str] | None = None,
) -> list[Tensor]:
    """Return each branch's logits of every sequence, (B, C) float32 on the CPU, equal in any batch.

    Args:
        model: on the device; switched to evaluation meanwhile.
        store: the sequences.
        device: where to compute.
        batching: how many go together.
        carried: as for `classify`; None: all groups start from zeros.
        before_batch: is called before each batch.
        share: rank and size of the processes that divide the batches; other ranks' rows are 0, so
            that a sum over the ranks gives all. Where states are carried, rank 0 computes all.
        names: branches to compute, or None for all.
    """
    rank, size = share
    groups = carried_groups(model, store)
    plan = plan_in_order_of_length(store.lengths, batching, groups)
    if groups is None:
        plan = plan[rank::size]
    elif rank > 0:
        plan = []  # a batch starts from the states of earlier ones
    return branches_of_batches(
        model,
        store,
        plan,
        device,
        partial(collate, sort=batching.sort),
        None if groups is None else carried or CarriedStates(),
        before_batch,
        names=names,
    )


@torch.inference_mode()
def embed_sequences(
    model: ClassifierNetwork, store: SequenceStore, device: torch.device, carried: CarriedStates
) -> Tensor:
    """Return the pooled states of the recurrent branch for every sequence, (B, H) on the CPU.

    Args:
        model: The network, on the device.
        store: The sequences.
        device: Device that computes.
        carried: States at which groups start, if the model carries states.
    """
    groups, branch = carried_groups(model, store), recurrent_branch(model)

    def compute(batch: Batch) -> Tensor:
        start = None if groups is None else carried.starts(batch.groups, model)
        pooled, states = branch.embed(batch, ForwardContext(start=start))
        if groups is not None:
            carried.keep(batch.groups, states)
        return pooled.float().cpu()

    vectors = torch.zeros((len(store), branch.pooled_width), dtype=torch.float32, device="cpu")
    plan = plan_in_order_of_length(store.lengths, EVALUATION_BATCHING, groups)
    model.eval()
    for batch, found in map_batches(compute, store, plan, device):
        vectors[torch.from_numpy(batch.examples)] = batch.restore(found)
    return vectors


def are_right(logits: Tensor, labels: Tensor) -> Tensor:
    """Return True for each example whose labels are all right at a threshold of 0.5, (B,) bool."""
    if labels.ndim == 1:
        return logits.argmax(1) == labels
    known: Tensor = ~unknown_rows(labels)
    return ((logits >= 0) == (labels > 0)).all(1) & known


def carried_groups(model: ClassifierNetwork, store: SequenceStore) -> Ints | None:
    """Return the group of each sequence if the model carries states, or None."""
    return store.groups if model.config.initial_state == "carried" else None


def check_finite(logits: Tensor, store: SequenceStore) -> Tensor:
    """Return the logits, (B, C).

    Raises:
        RunError: If a logit isn't finite, as very large weights give.
    """
    finite = logits.isfinite().all(dim=1)
    if not bool(finite.all()):
        raise RunError(
            f"line {store.lines[int(finite.byte().argmin())]}: the model's prediction isn't "
            "finite; its weights are too large; train a new model with a lower training.lr"
        )
    return logits


@torch.inference_mode()
def branches_of_batches(
    model: ClassifierNetwork,
    store: SequenceStore,
    plan: Iterable[Ints],
    device: torch.device,
    collate: Callable[[SequenceStore], Batch] = collate,
    carried: CarriedStates | None = None,
    before_batch: Callable[[], None] = lambda: None,
    *,
    names: Collection[str] | None = None,
    engine: Engine | None = None,
) -> list[Tensor]:
    """Return each branch's logits of every sequence, (B, C) float32 on the CPU, by a plan.

    The plan holds the rows of each batch, each row once; rows in no batch get zeros. With carried
    states, a row comes in a later batch than the row before it in its group. `engine` computes the
    recurrence, or None for the one that fits the model.
    """

    def compute(batch: Batch) -> list[Tensor]:
        context = ForwardContext(engine=engine)
        branches = classify(model, batch, carried, context, names)
        return [logits.float().cpu() for logits in branches]

    was_training, shape = model.training, (len(store), model.num_classes)
    model.eval()
    count = len(model.branch_names) if names is None else len(names)
    whole = [torch.zeros(shape, dtype=torch.float32, device="cpu") for _ in range(count)]
    try:
        for batch, found in map_batches(
            compute, store, plan, device, collate=collate, before_batch=before_batch
        ):
            for logits, own in zip(whole, found, strict=True):
                logits[torch.from_numpy(batch.examples)] = batch.restore(own)
    finally:
        model.train(was_training)
    return whole
