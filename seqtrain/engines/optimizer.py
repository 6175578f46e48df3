"""The optimizer of the weights.

A table is a weight with a row per token, such as an embedding. With training.sparse_embedding, an
update of Adam changes only the rows of a table that the batch uses, as torch.optim.SparseAdam does.

On CPUs, the native library updates all weights in one call (`NativeAdam`). Elsewhere, and for SGD,
torch's own optimizers do.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext
from itertools import accumulate
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from seqtrain.config.schema import TrainingConfig
from seqtrain.engines.native.library import Weight, why_unavailable
from seqtrain.engines.native.update import adam, describe_weight

BETAS, EPSILON, MOMENTUM = (0.9, 0.999), 1e-8, 0.9
NEVER_DECAYING = ("initial_state",)
"""Endings of the names of matrices without weight decay."""


class NativeAdam:
    """Adam and AdamW of the native library, for dense and sparse gradients on the CPU.

    A step is one call for all weights. With torch's SparseAdam, a third of the time of training
    went into the indexing of rows. Groups and states are kept as torch.optim.Optimizer keeps them,
    but this class isn't one: its methods import torch's compiler, which takes a second and 70 MB
    (`python -X importtime -c "import torch._dynamo"`).

    Args:
        groups: Groups of weights with a weight decay each.
        decoupled: True for the weight decay of AdamW, False for the L2 penalty of Adam.

    Attributes:
        param_groups: The same groups, with the learning rate as "lr".
        state: Maps each weight to its "step", "exp_avg" and "exp_avg_sq".
    """

    def __init__(self, groups: list[dict[str, Any]], *, decoupled: bool) -> None:
        self.param_groups = groups
        self.state: dict[Tensor, dict[str, Any]] = {}
        self._decay = "decay" if decoupled else "l2"
        self._described: dict[Tensor, tuple[dict[str, Any], Weight]] = {}

    @torch.no_grad()
    def clipped_step(self, max_norm: float) -> float:
        """Scale the gradients down to a norm of `max_norm`, and update the weights.

        Returns:
            The norm before scaling. If it isn't finite, no weight has changed.
        """
        lr = self.param_groups[0]["lr"]
        norm = adam(self._gradients(), lr=lr, betas=BETAS, eps=EPSILON, limit=max_norm)
        if norm is not None:
            return norm
        for weight, _ in _with_gradient(self):  # a sparse gradient has a row more than once
            if weight.grad is not None and weight.grad.is_sparse:
                weight.grad = weight.grad.coalesce()
        norm = adam(self._gradients(), lr=lr, betas=BETAS, eps=EPSILON, limit=max_norm)
        assert norm is not None, "coalesced rows are unique"
        return norm

    def _gradients(self) -> Iterator[tuple[Weight, Tensor]]:
        for weight, decay in _with_gradient(self):
            state = self.state.get(weight)
            if state is None:
                state = {"step": torch.zeros((), device="cpu")}
                state["exp_avg"] = torch.zeros_like(weight)
                state["exp_avg_sq"] = torch.zeros_like(weight)
                self.state[weight] = state
            described, known = self._described.get(weight, (None, None))
            if known is None or described is not state or known.weight != weight.data_ptr():
                known = describe_weight(weight.detach(), state, **{self._decay: decay})
                self._described[weight] = state, known
            assert weight.grad is not None
            yield known, weight.grad


Part: TypeAlias = "torch.optim.Optimizer | NativeAdam"
"""Optimizer of a part of the weights."""


class Optimizer:
    """Optimizer of all weights of a module that learn, under one learning rate.

    Args:
        module: The module, on its device.
        tables: Weights with sparse gradients.
        settings: Section of the config with the rule (adamw, adam or sgd), the weight decay and the
            largest norm.

    Attributes:
        parts: Maps a name to the optimizer of a part of the weights.
        weights: All weights that learn.
        tables: Those of them with sparse gradients.
    """

    def __init__(
        self, module: nn.Module, tables: Collection[Tensor], settings: TrainingConfig
    ) -> None:
        decaying: list[Tensor] = []
        others: list[Tensor] = []
        sparse = set(tables)
        for name, weight in module.named_parameters():
            is_matrix = weight.ndim > 1 and not name.endswith(NEVER_DECAYING)
            if weight.requires_grad and weight not in sparse:
                (decaying if is_matrix else others).append(weight)
        self.tables = [table for table in tables if table.requires_grad]
        self.weights = [*decaying, *others, *self.tables]
        self._orders = {
            "native": [*decaying, *self.tables, *others],
            "dense": [*decaying, *others],
            "sparse": self.tables,
        }
        if settings.max_grad_norm is None:
            self.max_norm = math.inf
        else:
            self.max_norm = settings.max_grad_norm
        self.parts: dict[str, Part] = {}
        self._decay, self._rule = settings.weight_decay, settings.optimizer
        groups = [
            {"params": decaying, "weight_decay": settings.weight_decay, "lr": 0.0},
            {"params": others, "weight_decay": 0.0, "lr": 0.0},
        ]
        if self._rule == "sgd":
            self.parts["dense"] = torch.optim.SGD(groups, momentum=MOMENTUM)
        elif all(map(can_update_natively, self.weights)):
            decaying.extend(self.tables)
            self.parts["native"] = NativeAdam(groups, decoupled=self._rule == "adamw")
        else:
            rule = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[self._rule]
            self.parts["dense"] = rule(groups, betas=BETAS, eps=EPSILON, fused=True)
            if self.tables:
                self.parts["sparse"] = torch.optim.SparseAdam(self.tables, betas=BETAS, eps=EPSILON)

    def forget_gradients(self) -> None:
        """Remove the gradients of all weights."""
        for weight in self.weights:
            weight.grad = None

    def step(self, lr: float, *figures: Tensor) -> tuple[float, ...]:
        """Update the weights by their gradients, scaled down to a norm of at most `max_norm`.

        If the norm or a figure isn't finite, no weight changes.

        Args:
            lr: Learning rate.
            figures: Scalars to read from the device together with the norm, so that the host waits
                only once, such as the loss.

        Returns:
            The figures, and the norm of the gradients before scaling.
        """
        for part in self.parts.values():
            for group in part.param_groups:
                group["lr"] = lr
        native = self.parts.get("native")
        if isinstance(native, NativeAdam):
            values = tuple(float(figure) for figure in figures)
            if not all(map(math.isfinite, values)):
                return *values, math.nan
            return *values, native.clipped_step(self.max_norm)
        # torch makes some sparse tensors on the current device, which may be another GPU.
        device = self.weights[0].device
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
            return self._torch_step(lr, figures)

    @torch.no_grad()
    def _torch_step(self, lr: float, figures: tuple[Tensor, ...]) -> tuple[float, ...]:
        sparse = set(self.tables)
        gradients = [
            weight.grad
            for weight in self.weights
            if weight.grad is not None and weight not in sparse
        ]
        tables = [table for table in self.tables if table.grad is not None]
        joined = [JoinedTables(own) for own in _by_width(tables)]
        gradients += [group.gradient.values() for group in joined]
        norm = torch.nn.utils.get_total_norm(gradients)
        ends = [group.ends for group in joined]
        scalars = torch.stack([*(figure.double() for figure in figures), norm.double()])
        read: list[float] = torch.cat([scalars, *(end.double() for end in ends)]).tolist()
        values, numbers = read[: len(scalars)], iter(map(int, read[len(scalars) :]))
        if not all(map(math.isfinite, values)):
            return tuple(values)
        scale = self.max_norm / (values[-1] + 1e-6)
        if scale < 1:
            torch._foreach_mul_(gradients, scale)
        for group in joined:
            group.split([next(numbers) for _ in group.tables])
        for table in self.tables:
            self._decay_rows(table, lr)
        for part in self.parts.values():
            assert not isinstance(part, NativeAdam)
            part.step()
        return tuple(values)

    def _decay_rows(self, table: Tensor, lr: float) -> None:
        """Apply the weight decay to the rows that a table's gradient has: SparseAdam has none."""
        if not self._decay or table.grad is None:
            return
        rows = table.grad.indices()[0]
        if self._rule == "adamw":
            table.index_copy_(0, rows, table[rows] * (1 - lr * self._decay))
        else:
            table.grad.values().add_(table[rows], alpha=self._decay)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the state of all weights as tensors, by names such as "dense.3.exp_avg".

        Tensors on the CPU aren't copied. A weight has no state before its first update.
        """
        tensors = {}
        for name, part in self.parts.items():
            for number, weight in enumerate(_weights_of(part)):
                # In one order, so that a resumed run writes the same bytes.
                for key, value in sorted(part.state.get(weight, {}).items()):
                    tensors[f"{name}.{number}.{key}"] = torch.as_tensor(value, device="cpu")
        return tensors

    def load_state_dict(self, tensors: Mapping[str, Tensor], *, complete: bool) -> None:
        """Restore what `state_dict` returned.

        Args:
            tensors: The tensors by name.
            complete: True if every weight must have a state, False if some weights may have none.

        Raises:
            ValueError: If the tensors don't fit the weights.
        """
        states: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in self.parts}
        for name, tensor in tensors.items():
            saved, number, key = [*name.split(".", 2), "", ""][:3]
            if saved not in self._orders or not number.isdecimal():
                raise ValueError(f"optimizer.{name[:80]}: no tensor of this optimizer")
            if saved in self.parts:
                own, place, found = saved, int(number), tensor
            else:
                own, place, found = self._translated(name, tensor)
            states[own].setdefault(place, {})[key] = found
        for name, part in self.parts.items():
            weights = _weights_of(part)
            for place, state in states[name].items():
                if place >= len(weights):
                    raise ValueError(f"optimizer.{name}.{place}: no weight of this optimizer")
                _check_state(f"optimizer.{name}.{place}", state, weights[place], part)
            if complete and len(states[name]) < len(weights):
                raise ValueError(f"optimizer.{name}: found no state of some weights")
            part.state.clear()
            for place, state in states[name].items():
                weight = weights[place]
                for key, value in state.items():
                    if isinstance(value, Tensor):
                        state[key] = value.to(weight.device)
                part.state[weight] = state

    def _translated(self, name: str, tensor: Tensor) -> tuple[str, int, Tensor]:
        """Return the part, the place and the state of a weight that other parts have saved.

        A run may resume where the native library can't be loaded, or can be for the first time.

        Raises:
            ValueError: If the optimizer has no such weight.
        """
        saved, number, key = name.split(".", 2)
        order = self._orders[saved]
        if int(number) >= len(order):
            raise ValueError(f"optimizer.{saved}.{number}: no weight of this optimizer")
        weight = order[int(number)]
        own = next(part for part in self.parts if any(x is weight for x in self._orders[part]))
        place = next(i for i, x in enumerate(self._orders[own]) if x is weight)
        if key == "step":
            tensor = tensor.to(torch.int64 if own == "sparse" else torch.float32)
        return own, place, tensor


class JoinedTables:
    """Gradients of tables of one width, coalesced together.

    On CUDA, the host waits for the number of distinct rows. So it waits once, not once per table.

    Args:
        tables: Tables with sparse gradients, (V, E) each, with the same E.

    Attributes:
        tables: The same tables.
        gradient: Gradient of all tables below one another, with distinct rows in order.
        ends: Number of its rows up to the end of each table, as a tensor on the device.
    """

    def __init__(self, tables: list[Tensor]) -> None:
        self.tables = tables
        self._starts = [0, *accumulate(len(table) for table in tables)]
        rows, values = [], []
        for start, table in zip(self._starts, tables, strict=False):
            assert table.grad is not None
            rows.append(table.grad._indices()[0] + start)
            values.append(table.grad._values())
        shape = self._starts[-1], tables[0].shape[1]
        self.gradient = _sparse(torch.cat(rows), torch.cat(values), shape).coalesce()
        distinct = self.gradient.indices()[0]
        self.ends = torch.stack([torch.searchsorted(distinct, end) for end in self._starts[1:]])

    def split(self, ends: list[int]) -> None:
        """Set the gradient of each table to its part of the joined gradient.

        Args:
            ends: The numbers of `ends`, on the host.
        """
        rows, values = self.gradient.indices()[0], self.gradient.values()
        begins = [0, *ends]
        for table, start, begin, end in zip(self.tables, self._starts, begins, ends, strict=False):
            own = _sparse(rows[begin:end] - start, values[begin:end], table.shape)
            table.grad = own._coalesced_(True)


def _by_width(tables: list[Tensor]) -> list[list[Tensor]]:
    """Return lists of the tables that have vectors of the same size."""
    widths: dict[int, list[Tensor]] = {}
    for table in tables:
        widths.setdefault(table.shape[1], []).append(table)
    return list(widths.values())


def _sparse(rows: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a sparse tensor with the given rows, (U,), and their values, (U, E)."""
    return torch.sparse_coo_tensor(
        rows[None], values, shape, device=values.device, check_invariants=False
    )


def can_update_natively(weight: Tensor) -> bool:
    """Return True if the native library is available and can update a weight.

    It can update contiguous float32 weights on the CPU.
    """
    on_cpu = weight.device.type == "cpu" and weight.dtype == torch.float32
    return on_cpu and weight.is_contiguous() and not why_unavailable()


def _weights_of(part: Part) -> list[Tensor]:
    """Return the weights of all groups of an optimizer, in order."""
    return [weight for group in part.param_groups for weight in group["params"]]


def _with_gradient(part: Part) -> Iterator[tuple[Tensor, float]]:
    """Yield each weight of an optimizer that has a gradient, and its weight decay."""
    for group in part.param_groups:
        for weight in group["params"]:
            if weight.grad is not None:
                yield weight, group["weight_decay"]


def _check_state(name: str, state: dict[str, Any], weight: Tensor, part: Part) -> None:
    """Check the state of a weight from a file, and convert its number of updates.

    Args:
        name: Name for messages.
        state: The tensors. "step" of SparseAdam becomes a number, as torch keeps it.
        weight: The weight.
        part: Optimizer of the weight.

    Raises:
        ValueError: If a tensor is missing, unknown, of another shape or type, or not finite.
    """
    keys = ["exp_avg", "exp_avg_sq"]
    if isinstance(part, torch.optim.SGD):
        keys = ["momentum_buffer"]
    expected = {f"{name}.{key}": weight for key in keys}
    # SparseAdam counts its updates in an int, whose powers are float64.
    is_sparse = isinstance(part, torch.optim.SparseAdam)
    if "exp_avg" in keys:
        number = torch.zeros((), dtype=torch.int64 if is_sparse else torch.float32, device="cpu")
        expected[f"{name}.step"] = number
    check_tensors({f"{name}.{key}": tensor for key, tensor in state.items()}, expected)
    if "step" in state and not 1 <= float(state["step"]) <= 2**53:
        raise ValueError(f"{name}.step: expected 1 or more")
    if is_sparse:
        state["step"] = int(state["step"])


def check_tensors(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Check that tensors from a file can replace the tensors of a model or optimizer.

    Args:
        found: Tensors from the file, by name.
        expected: Tensors of the model or optimizer, by name.

    Raises:
        ValueError: If the names, a shape or a type differ, or a value from the file isn't finite.
    """
    for name in sorted(found.keys() ^ expected.keys()):
        raise ValueError(f"tensor {name[:80]}: {'missing' if name in expected else 'unknown'}")
    for name, tensor in found.items():
        like = expected[name]
        if tensor.shape != like.shape or tensor.dtype != like.dtype:
            shapes = (
                f"{tensor.dtype} {list(tensor.shape)}, expected {like.dtype} {list(like.shape)}"
            )
            raise ValueError(f"tensor {name}: found {shapes}; of another version? train it again")
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"tensor {name}: holds values that aren't finite")
