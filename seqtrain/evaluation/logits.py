"""Logits of a store, computed in batches of similar length."""

from collections.abc import Callable, Collection, Iterable, Iterator
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
from seqtrain.model.carried import CarriedStates, carried_groups, forward_carried
from seqtrain.model.inputs import SideInputs
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.batch import Batch, collate, map_batches
from seqtrain.sequences.labels import unknown_rows
from seqtrain.sequences.plan import plan_in_order_of_length
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.blocks import Ints

EVALUATION_BATCHING = BatchingConfig(max_tokens=32768)
"""Batching for evaluation. Batches are large, because a token is embedded once per batch."""
LOGITS_AT_ONCE = 2**22
"""Number of logits that are converted to double precision at once, to bound memory."""


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
    groups = carried_groups(model, store)
    was_training = model.training
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


def double_blocks(logits: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield logits in double precision with their labels, in blocks of LOGITS_AT_ONCE at most.

    If C is greater than LOGITS_AT_ONCE, a block is one example.

    Args:
        logits: Logits, (B, C).
        labels: Labels, with B as the first dimension.
    """
    size = max(1, LOGITS_AT_ONCE // logits.shape[1])
    blocks = zip(torch.split(logits, size), torch.split(labels, size), strict=True)
    for block, block_labels in blocks:
        yield block.double(), block_labels
