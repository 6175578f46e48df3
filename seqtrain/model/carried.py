"""Hidden states that are carried from a sequence to the next one of its group."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.batch import Batch, Result
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.blocks import Ints


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
        zeros = _zeros(model)
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
        zeros = _zeros(model)
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
        zeros = _zeros(model)
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


def carried_groups(model: ClassifierNetwork, store: SequenceStore) -> Ints | None:
    """Return the group of each sequence, (B,), if the model carries states over, or else None."""
    if model.config.initial_state == "carried":
        return store.groups
    return None


def _zeros(model: ClassifierNetwork) -> Tensor:
    """Return the state from which a group starts, (S, L, H)."""
    return recurrent_branch(model).zero_state(1)[:, :, 0]
