"""The optimizer (Adam, AdamW and SGD) and the schedules of the learning rate.

A table is a weight with a row per token or n-gram, such as an embedding. With
training.sparse_embedding, only the rows of a table that the batch uses are updated. The other rows
don't change, as with torch.optim.SparseAdam: neither momentum nor weight decay changes them.

On CPUs, the native library updates all weights in one call, if it is available and the rule isn't
SGD. On CUDA, `training.fused_update` updates them.

To add a schedule, add an entry to ``SCHEDULES`` and its name to ``training.schedule`` in
``config/schema.py``.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping

import torch
from torch import Tensor, nn

from seqtrain.config.schema import TrainingConfig
from seqtrain.engines.native.library import Weight, why_unavailable
from seqtrain.engines.native.update import adam, describe_weight
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.network import ClassifierNetwork
from seqtrain.training.fused_update import WeightUpdate, fused_update
from seqtrain.training.state import check_tensors

BETAS, EPSILON, MOMENTUM = (0.9, 0.999), 1e-8, 0.9
NEVER_DECAYING = ("initial_state",)
"""Endings of the names of matrices without weight decay."""
MOMENTS = {
    "adamw": ("exp_avg", "exp_avg_sq"),
    "adam": ("exp_avg", "exp_avg_sq"),
    "sgd": ("momentum_buffer",),
}
"""Maps each update rule to the names of its moments of a weight: tensors of the weight's shape."""


PLATEAU_FACTOR = 0.5
"""Factor of the learning rate after each epoch without a better monitored value.

Only the schedule "plateau" has this factor.
"""

SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "constant": lambda progress, plateaus: 1.0,
    "linear": lambda progress, plateaus: 1.0 - progress,
    "cosine": lambda progress, plateaus: 0.5 * (1.0 + math.cos(math.pi * progress)),
    "plateau": lambda progress, plateaus: PLATEAU_FACTOR**plateaus,
}
"""Maps each schedule to a function that returns the factor of ``training.lr``.

The arguments of the function are the share of the updates after the warmup that were made, in
[0, 1], and the number of epochs without a better monitored value.
"""


class Optimizer:
    """Optimizer of the weights of a model, on the device of the model.

    Args:
        model: Model whose weights are updated.
        config: Section of the config with the update rule (adamw, adam or sgd), the weight decay
            and the largest norm.

    Attributes:
        is_fused: True if all weights are float32 on CUDA. Then `step` doesn't wait for the device.
        tables: Weights with sparse gradients. Of these, only the rows that a batch uses are
            updated. There are none without training.sparse_embedding, and on MPS.
    """

    def __init__(self, model: ClassifierNetwork | PretrainingModel, config: TrainingConfig) -> None:
        self._rule = config.optimizer
        self._max_grad_norm = config.max_grad_norm
        self._decay = decay_of_each(model, config.weight_decay)
        self._state: dict[Tensor, dict[str, Tensor]] = {}
        on_mps = any(p.device.type == "mps" for p in model.parameters())  # no sparse tensors there
        network = model.classifier if isinstance(model, PretrainingModel) else model
        self._embedding = recurrent_branch(network).embedding
        self.tables = network.set_sparse_gradients(config.sparse_embedding and not on_mps)
        self._is_native = self._rule != "sgd" and all(map(can_update_natively, self._decay))
        self.is_fused = all(w.is_cuda and w.dtype == torch.float32 for w in self._decay)
        self._failed: Tensor | None = None
        self._described: dict[Tensor, Weight] = {}

    def freeze(self, *, frozen: bool) -> None:
        """Freeze the embedding of tokens if `frozen` is True; let it learn again if it is False.

        Only an embedding of single tokens can be frozen. Any other input layer, such as that of
        numbers, always learns.
        """
        if isinstance(self._embedding, nn.Embedding):
            self._embedding.weight.requires_grad_(not frozen)

    @property
    def weights(self) -> Collection[Tensor]:
        """All weights that `step` updates if they have a gradient."""
        return [*self._decay]

    def forget_gradient(self) -> None:
        """Remove the gradients of all weights."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self, *, lr: float, loss: Tensor | None = None) -> float | Tensor:
        """Scale down the gradients if their joint norm exceeds max_grad_norm; update the weights.

        If the norm isn't finite, no weight is changed. On CUDA, a loss that isn't finite has the
        same effect, and later steps change no weight either. The gradients may be changed in place.

        Args:
            lr: Learning rate.
            loss: Loss of the batch, which is checked on CUDA only, or None to check nothing.

        Returns:
            The norm of the gradients before scaling. It is a float, or on CUDA a scalar tensor
            that may still be computed.
        """
        limit = math.inf if self._max_grad_norm is None else self._max_grad_norm
        if self.is_fused:
            return self._fused_step(lr, loss, limit)
        norm = self._native_step(lr, limit) if self._is_native else None
        if norm is None:
            norm = float(clip_gradients(self._decay, limit))
            if not math.isfinite(norm):
                return norm
            if self._is_native:  # a gradient had a row more than once
                self._native_step(lr, math.inf)
            else:
                self._torch_step(lr)
        return norm

    def _fused_step(self, lr: float, loss: Tensor | None, limit: float) -> Tensor:
        if self._failed is None:
            self._failed = torch.zeros((), device=next(iter(self._decay)).device)
        found = [(weight, weight.grad, decay) for weight, decay in self._decay.items()]
        return fused_update(
            self._rule,
            [
                WeightUpdate(weight, gradient, self._state_of(weight), decay)
                for weight, gradient, decay in found
                if gradient is not None
            ],
            self._failed,
            self._failed if loss is None else loss,
            lr=lr,
            betas=BETAS,
            eps=EPSILON,
            momentum=MOMENTUM,
            limit=limit,
        )

    def _native_step(self, lr: float, limit: float) -> float | None:
        """Update the weights by the native library, and return the norm as `step` does.

        If a sparse gradient has a row twice, change nothing and return None.
        """
        found = ((weight, weight.grad) for weight in self._decay)
        gradients = ((self._describe(weight), grad) for weight, grad in found if grad is not None)
        return adam(gradients, lr=lr, betas=BETAS, eps=EPSILON, limit=limit)

    def _torch_step(self, lr: float) -> None:
        for weight, decay in self._decay.items():
            if weight.grad is not None:
                rows, gradient = _rows_and_values(weight.grad)
                if self._rule == "sgd":
                    _sgd(weight, self._state_of(weight), rows, gradient, lr=lr, l2=decay)
                else:
                    adamw = self._rule == "adamw"
                    decays = {"decay": decay, "l2": 0.0} if adamw else {"decay": 0.0, "l2": decay}
                    _adam(weight, self._state_of(weight), rows, gradient, lr=lr, **decays)

    def tensors(self) -> dict[str, Tensor]:
        """Return the state of the optimizer as tensors on the CPU, by name.

        Tensors that were on the CPU aren't copied, so later steps change them. A weight has no
        tensors before its first update.
        """
        return {
            f"optimizer.{number}.{name}": tensor.cpu()
            for number, weight in enumerate(self._decay)
            for name, tensor in self._state.get(weight, {}).items()
        }

    def load(self, tensors: Mapping[str, Tensor], *, some: bool) -> None:
        """Restore the state that `tensors` returned.

        Args:
            tensors: Tensors by name. Tensors of other parts of the training state are ignored.
            some: True if weights may have no tensors, as before their first update.

        Raises:
            ValueError: If the tensors don't fit the weights, or a value is invalid.
        """
        self._state.clear()
        self._described.clear()
        for number, weight in enumerate(self._decay):
            prefix = f"optimizer.{number}."
            found = {name: tensors[name] for name in tensors if name.startswith(prefix)}
            if some and not found:
                continue
            state = {prefix + name: tensor for name, tensor in self._state_of(weight).items()}
            check_tensors(found, state)
            for name, tensor in found.items():
                state[name].copy_(tensor)
            if state[f"{prefix}step"] < 1:
                raise ValueError(f"{prefix}step: expected 1 or more")

    def _state_of(self, weight: Tensor) -> dict[str, Tensor]:
        """Return the state of a weight: its moments and "step". Before its first update, all are 0.

        The tensors aren't copies: a change of a tensor changes the state.
        """
        if weight not in self._state:
            state = {name: torch.zeros_like(weight) for name in MOMENTS[self._rule]}
            where = weight.device if self.is_fused else "cpu"
            state["step"] = torch.zeros((), dtype=torch.float32, device=where)
            self._state[weight] = state
        return self._state[weight]

    def _describe(self, weight: Tensor) -> Weight:
        """Return the description of a weight for the native library, with pointers to its data."""
        known = self._described.get(weight)
        if known is None or known.weight != weight.data_ptr():
            decay = {"decay" if self._rule == "adamw" else "l2": self._decay[weight]}
            known = describe_weight(weight.detach(), self._state_of(weight), **decay)
            self._described[weight] = known
        return known


def can_update_natively(weight: Tensor) -> bool:
    """Return True if the native library is available and can update a weight.

    It can update contiguous float32 weights on the CPU.
    """
    mine = weight.device.type == "cpu" and weight.dtype == torch.float32
    return mine and weight.is_contiguous() and not why_unavailable()


def decay_of_each(model: nn.Module, weight_decay: float) -> dict[Tensor, float]:
    """Return a dict that maps each weight that requires a gradient to its weight decay.

    Weights of two or more dimensions, such as matrices, have `weight_decay`. Biases and other
    vectors, and the weights of NEVER_DECAYING, have 0. Weights that decay come first.

    Args:
        model: The model.
        weight_decay: Weight decay of matrices.
    """
    decaying: dict[Tensor, float] = {}
    others: dict[Tensor, float] = {}
    for name, weight in model.named_parameters():
        if not weight.requires_grad:
            continue
        if weight.ndim > 1 and not name.endswith(NEVER_DECAYING):
            decaying[weight] = weight_decay
        else:
            others[weight] = 0.0
    return {**decaying, **others}


def clip_gradients(weights: Iterable[Tensor], max_norm: float) -> Tensor:
    """Scale the gradients of weights so that their joint norm is at most `max_norm`.

    Sparse gradients are coalesced: each row occurs once, in ascending order. Weights without a
    gradient are skipped.

    Args:
        weights: The weights. Their ``grad`` is changed. At least one must have a gradient.
        max_norm: Largest norm of all gradients together, or infinity.

    Returns:
        The norm before scaling, a scalar tensor.
    """
    gradients = []
    for weight in weights:
        if weight.grad is not None and weight.grad.is_sparse:
            weight.grad = weight.grad.coalesce()
        if weight.grad is not None:
            gradients.append(_rows_and_values(weight.grad)[1])
    norms = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients])
    norm: Tensor = torch.linalg.vector_norm(norms)
    if max_norm < math.inf:
        scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(scale)
    return norm


def _rows_and_values(gradient: Tensor) -> tuple[Tensor | slice, Tensor]:
    """Return the rows of a weight that its gradient covers, and the gradient of these rows.

    If the gradient is dense, the rows are a slice of all rows. If it is sparse, they are indices,
    (U,), in which a row may occur twice unless the gradient is coalesced. The second result isn't a
    copy: a change of its values changes the gradient.
    """
    if gradient.is_sparse:
        return gradient._indices()[0], gradient._values()
    return slice(None), gradient


def _adam(
    weight: Tensor,
    state: Mapping[str, Tensor],
    rows: Tensor | slice,
    gradient: Tensor,
    *,
    lr: float,
    decay: float,
    l2: float,
) -> None:
    state["step"] += 1
    step, before = int(state["step"]), weight[rows]
    gradient = gradient.add(before, alpha=l2) if l2 else gradient
    mean = state["exp_avg"][rows].lerp(gradient, 1 - BETAS[0])
    square = (state["exp_avg_sq"][rows] * BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
    spread = (square / (1 - BETAS[1] ** step)).sqrt_().add_(EPSILON)
    rate = -lr / (1 - BETAS[0] ** step)
    weight[rows] = (before * (1 - lr * decay)).addcdiv_(mean, spread, value=rate)
    state["exp_avg"][rows], state["exp_avg_sq"][rows] = mean, square


def _sgd(
    weight: Tensor,
    state: Mapping[str, Tensor],
    rows: Tensor | slice,
    gradient: Tensor,
    *,
    lr: float,
    l2: float,
) -> None:
    state["step"] += 1
    before = weight[rows]
    gradient = gradient.add(before, alpha=l2) if l2 else gradient
    velocity = (state["momentum_buffer"][rows] * MOMENTUM).add_(gradient)
    weight[rows] = before.add(velocity, alpha=-lr)
    state["momentum_buffer"][rows] = velocity


def lr_at(update: int, total_updates: int, config: TrainingConfig, plateaus: int = 0) -> float:
    """Return the learning rate of an update.

    Args:
        update: Number of earlier updates in the phase. From `total_updates` on, the rate is the
            last one of the schedule.
        total_updates: Number of updates of the whole phase.
        config: Section of the config with the learning rate, the schedule and the warmup.
        plateaus: Number of epochs so far without a better monitored value.
    """
    warmup = round(config.warmup * total_updates)
    if update < warmup:
        return config.lr * (update + 1) / warmup
    progress = min(1.0, (update - warmup) / max(1, total_updates - warmup))
    return config.lr * SCHEDULES[config.schedule](progress, plateaus)
