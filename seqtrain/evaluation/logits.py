"""Logits of a store, computed in batches of similar length; states that are carried in groups."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor
from typing_extensions import TypedDict, Unpack

from seqtrain.config.schema import BatchingConfig
from seqtrain.engines.interface import Engine
from seqtrain.engines.layout import Packed
from seqtrain.errors import RunError
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.inputs import SideInputs
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.batch import Batch, Result, collate, map_batches
from seqtrain.sequences.labels import unknown_rows
from seqtrain.sequences.plan import plan_in_order_of_length
from seqtrain.sequences.store import Ints, SequenceStore

EVALUATION_BATCHING = BatchingConfig(max_tokens=32768)
"""Batching for evaluation. Batches are large, because a token is embedded once per batch."""


@dataclass
class CarriedStates:
    """Hidden states at which groups of sequences ended, for models that carry states over.

    The next sequence of a group starts from the state at which the one before it ended. States
    have no gradient.

    Attributes:
        frozen: If True, `keep` does nothing.

    Shape letters: B sequences of a batch; G groups; S tensors of a state; L layers times
    directions; H width of a state.
    """

    frozen: bool = False
    _states: dict[int, Tensor] = field(default_factory=dict)

    def starts(self, groups: Ints | None, model: ClassifierNetwork) -> Tensor | None:
        """Return the states from which the sequences of a batch start, (S, L, B, H).

        Args:
            groups: Group of each sequence, (B,), or None to return None. A sequence starts from
                zeros if it is in no group, or if its group has no state yet.
            model: The network.
        """
        if groups is None:
            return None
        zeros = recurrent_branch(model).zero_state(1)[:, :, 0]
        return torch.stack([self._states.get(group, zeros) for group in groups.tolist()], dim=2)

    def keep(self, groups: Ints | None, states: Tensor) -> None:
        """Store the states at which the sequences of a batch ended.

        Args:
            groups: Group of each sequence, (B,), or None to store nothing. A sequence with a
                negative number is in no group.
            states: The states, (S, L, B, H).
        """
        if groups is None or self.frozen:
            return
        for group, state in zip(groups.tolist(), states.detach().unbind(2), strict=True):
            if group >= 0:
                self._states[group] = state.clone()

    def forget(self) -> None:
        """Forget all states, so that every group starts from zeros again."""
        self._states.clear()

    def tensors(self, model: ClassifierNetwork) -> dict[str, Tensor]:
        """Return the states as tensors for a checkpoint.

        They are "carried.groups", the numbers of the groups, (G,), and "carried.states", their
        states, (G, S, L, H).
        """
        groups = torch.tensor(list(self._states), dtype=torch.int64, device="cpu")
        zeros = recurrent_branch(model).zero_state(1)[:, :, 0]
        states = torch.stack([zeros, *self._states.values()])[1:]
        return {"carried.groups": groups, "carried.states": states}

    def load(self, tensors: dict[str, Tensor], model: ClassifierNetwork) -> None:
        """Restore the states from the tensors of a checkpoint, as `tensors` returns them.

        All earlier states are forgotten, also if an error is raised.

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
            or len(set(groups.tolist())) < len(groups)
        ):
            raise ValueError(f"carried: expected groups (G,) and states (G, {list(zeros.shape)})")
        self._states = dict(zip(groups.tolist(), states.to(zeros.device).unbind(), strict=True))


def forward_carried(
    compute: Callable[[Batch, ForwardContext], Result],
    model: ClassifierNetwork,
    batch: Batch,
    carried: CarriedStates | None,
    context: ForwardContext,
) -> Result:
    """Run a forward pass on a batch, and carry the states of its groups over.

    Args:
        compute: A forward pass of the model. It starts from `context.start` and sets
            `context.final_states`.
        model: The network.
        batch: Sequences. No two of them are of one group.
        carried: States at which groups ended. They are read before the pass and updated after it.
            None if the model carries no states.
        context: Settings of the forward pass. Its `start` is set if states are carried.

    Returns:
        The result of `compute`.
    """
    if carried is None:
        return compute(batch, context)
    context.start = carried.starts(batch.groups, model)
    result = compute(batch, context)
    if context.start is not None and context.final_states is not None:
        # Autocast may have lowered the states.
        carried.keep(batch.groups, context.final_states.to(context.start.dtype))
    return result


class BatchOptions(TypedDict, total=False):
    """Options of `run_batches` that other functions pass on."""

    plan: Iterable[Ints] | None
    collate: Callable[[SequenceStore], Batch]
    before_batch: Callable[[], None]
    engine: Engine | None


@torch.inference_mode()
def run_batches(
    compute: Callable[[Batch, ForwardContext], list[Tensor]],
    model: ClassifierNetwork,
    store: SequenceStore,
    device: torch.device,
    carried: CarriedStates | None = None,
    *,
    plan: Iterable[Ints] | None = None,
    collate: Callable[[SequenceStore], Batch] = collate,
    before_batch: Callable[[], None] = lambda: None,
    engine: Engine | None = None,
) -> Iterator[tuple[Batch, list[Tensor]]]:
    """Yield each batch of a store with the result of `compute`, in evaluation mode.

    At the end, the earlier mode of the network is restored.

    Args:
        compute: A forward pass, as for `forward_carried`.
        model: The network, on the device.
        store: The sequences.
        device: Device that computes.
        carried: States from which groups start, if the model carries states. They are updated.
            None to start each group from zeros.
        plan: Row numbers of each batch, or None for large batches of similar length. If states are
            carried, the rows of a group must be in different batches, in order.
        collate: Function that makes a batch of all rows of a store.
        before_batch: Function that is called before each batch.
        engine: Engine of the recurrence, or None to choose it for the model and the device.
    """
    groups, was_training = carried_groups(model, store), model.training
    states = None
    if groups is not None:
        states = CarriedStates() if carried is None else carried
    if plan is None:
        plan = plan_in_order_of_length(store.lengths, EVALUATION_BATCHING, groups)

    def run(batch: Batch) -> list[Tensor]:
        context = ForwardContext(engine=engine)
        if states is None:
            return compute(batch, context)
        return forward_carried(compute, model, batch, states, context)

    model.eval()
    try:
        yield from map_batches(run, store, plan, device, collate=collate, before_batch=before_batch)
    finally:
        model.train(was_training)


def branch_logits(
    model: ClassifierNetwork,
    store: SequenceStore,
    device: torch.device,
    carried: CarriedStates | None = None,
    *,
    names: Collection[str] | None = None,
    **options: Unpack[BatchOptions],
) -> list[Tensor]:
    """Return the logits of each branch for all sequences.

    Up to rounding, they don't depend on the batches. `names` are the branches to compute, or None
    for all branches. All other arguments are as in `run_batches`.

    Returns:
        One tensor per branch, (B, C) float32 on the CPU. Rows that aren't in `plan` are 0. So
        processes that compute parts of a plan can add up their results.
    """
    count = len(model.branch_names) if names is None else len(names)
    shape = count, len(store), model.num_classes
    logits = torch.zeros(shape, dtype=torch.float32, device="cpu")
    compute = partial(model.branch_logits, names=names)
    for batch, found in run_batches(compute, model, store, device, carried, **options):
        for own, of_branch in zip(logits, found, strict=True):
            own[torch.from_numpy(batch.examples)] = batch.restore(of_branch.float().cpu())
    return list(logits)


def predict_logits(
    model: ClassifierNetwork,
    store: SequenceStore,
    device: torch.device,
    carried: CarriedStates | None = None,
    **options: Unpack[BatchOptions],
) -> Tensor:
    """Return the calibrated logits of the whole model for all sequences, (B, C) on the CPU.

    The arguments are as in `run_batches`.
    """
    return model.combine(branch_logits(model, store, device, carried, **options))


def embed_sequences(
    model: ClassifierNetwork, store: SequenceStore, device: torch.device, carried: CarriedStates
) -> Tensor:
    """Return the pooled states of the recurrent branch for all sequences, (B, H) on the CPU.

    The arguments are described at `run_batches`.
    """
    branch = recurrent_branch(model)

    def compute(batch: Batch, context: ForwardContext) -> list[Tensor]:
        packed = batch.packed
        layout = Packed(packed.batch_sizes, packed.data.device)
        pooled = branch.embed(packed.data, layout, SideInputs.of(batch), context)
        return [pooled.float().cpu()]

    vectors = torch.zeros((len(store), branch.pooled_width), dtype=torch.float32, device="cpu")
    for batch, (found,) in run_batches(compute, model, store, device, carried):
        vectors[torch.from_numpy(batch.examples)] = batch.restore(found)
    return vectors


def are_right(logits: Tensor, labels: Tensor) -> Tensor:
    """Return True for each example that is predicted right, (B,) bool.

    The most probable class is predicted. If multi-label, each class from a probability of 0.5 on is
    predicted, and all labels must be right. An example with an unknown label is never right.

    Args:
        logits: Logits, (B, C).
        labels: Class indices, (B,), or labels as in a SequenceStore, (B, C), if multi-label.
    """
    if labels.ndim == 1:
        return logits.argmax(1) == labels
    known: Tensor = ~unknown_rows(labels)
    return ((logits >= 0) == (labels > 0)).all(1) & known


def carried_groups(model: ClassifierNetwork, store: SequenceStore) -> Ints | None:
    """Return the group of each sequence, (B,), if the model carries states over, or else None."""
    if model.config.initial_state == "carried":
        return store.groups
    return None


def check_finite(logits: Tensor, store: SequenceStore) -> Tensor:
    """Return the logits as they are, after checking that they are finite.

    Args:
        logits: Logits, (B, C).
        store: The sequences. The message names the line of the first sequence with a logit that
            isn't finite.

    Raises:
        RunError: If a logit is infinite or NaN, because the weights are very large.
    """
    finite = logits.isfinite().all(dim=1)
    if not bool(finite.all()):
        raise RunError(
            f"line {store.lines[int(finite.byte().argmin())]}: the model's prediction isn't "
            "finite; its weights are too large; train a new model with a lower training.lr"
        )
    return logits
