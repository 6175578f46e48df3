"""The optimizer: torch's, but that a table learns by the rows that a batch touches.

A vocabulary has far more vectors than a batch has distinct tokens, and a dense update of all can
cost more than the model. Nobody else knows that an embedding's vectors lie idle: `reading` brings
those up to date that are about to be read, and `settle` makes up for all idle updates. The weights
of n-grams and subwords stay where they are while they lie idle, as with torch.optim.SparseAdam.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from seqtrain.config.schema import TrainingConfig
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.encoder import TokenEmbedding
from seqtrain.model.engines import native
from seqtrain.model.ngrams import NgramClassifier
from seqtrain.model.subwords import Subwords
from seqtrain.training import embedding_rows
from seqtrain.training.embedding_rows import new_state, rows_of
from seqtrain.training.native_adam import MOMENTS, NativeAdam
from seqtrain.training.state import check_tensor

SGD_MOMENTUM = 0.9
NEVER_DECAYING = ("initial_state", "ngrams.weight")
UNSETTLED = "unsettled.weight"
"""Name of the embedding's weight as it stood, beside a saved model whose weights are settled."""


class Optimizer:
    """Computes gradients, clips them, and updates the weights of a model.

    Weight decay falls on matrices alone: it spares biases, the learned initial state, and the
    weights of n-grams.

    Args:
        model: on its device; its tables are told whether their gradients are to be sparse.
        config: the config's training section.

    Attributes:
        by_rows: the tables that learn by the rows that a batch touches.
    """

    def __init__(
        self, model: SequenceClassifier | PretrainingModel, config: TrainingConfig
    ) -> None:
        self._model = model
        self._max_grad_norm = config.max_grad_norm
        self._embedding: TokenEmbedding | None = None
        self.by_rows: list[Tensor] = []
        on_mps = any(p.device.type == "mps" for p in model.parameters())  # no sparse tensors there
        sparse = config.sparse_embedding and not on_mps
        if isinstance(model.embedding, TokenEmbedding):
            model.embedding.sparse = sparse
            self._embedding = model.embedding if sparse else None
        for part in model.modules():
            if isinstance(part, Subwords | NgramClassifier):
                part.sparse = sparse
                self.by_rows += [part.weight] if sparse else []
        if self._embedding is not None:
            self.by_rows.append(self._embedding.weight)
        self._torch = _torch_optimizer(model, config)
        self._native: NativeAdam | None = None
        if not self._is_sgd and all(embedding_rows.native_serves(p) for p in self._weights):
            self._native = NativeAdam(self._torch, self.by_rows)
        self._unsettled: Tensor | None = None

    def freeze(self, *, frozen: bool) -> None:
        """Let the vectors of tokens stay as they are from now on, or learn."""
        if not isinstance(self._model.embedding, TokenEmbedding):
            return
        weight, states = self._model.embedding.weight, self._torch.state
        weight.requires_grad_(not frozen)
        thaws = not frozen and not states[weight] and any(states.values())
        if thaws and self._is_sgd and self._embedding is None:  # torch's wants all buffers or none
            states[weight]["momentum_buffer"] = torch.zeros_like(weight)

    @contextmanager
    def reading(self, *, lr: float) -> Iterator[None]:
        """While entered, the vectors of tokens are brought up to date before they are read.

        Args:
            lr: learning rate of the update to come.
        """
        embedding = self._embedding
        if embedding is None or not self._state:
            yield
            return
        embedding.before_read = partial(self._make_up, embedding.weight, self._state, lr=lr)
        try:
            yield
        finally:
            embedding.before_read = None

    def prepare(self, touched: Mapping[int, Tensor], *, lr: float) -> None:
        """Bring rows of the embedding up to date at once, before parts of a batch read them.

        Args:
            touched: rows of each table, by the id of its weight.
            lr: learning rate of the update to come.
        """
        if self._embedding is not None and self._state:
            weight = self._embedding.weight
            self._make_up(weight, self._state, touched[id(weight)], lr=lr)

    def gradient(self, loss: Tensor) -> Tensor:
        """Compute the gradient of a loss, to be scaled down to max_grad_norm.

        Returns:
            The norm before scaling, a scalar.
        """
        self.backward(loss)
        return self.clip()

    def backward(self, loss: Tensor) -> None:
        """Compute the gradient of a loss."""
        for weight in self._weights:
            weight.grad = None
        torch.autograd.backward(loss)

    def clip(self) -> Tensor:
        """Return the norm of the gradient, to be scaled down to max_grad_norm; a scalar."""
        if self._native is not None:
            return self._native.clip(self._max_grad_norm)
        return clip_gradients(self._weights, self._max_grad_norm)

    def step(self, *, lr: float) -> None:
        """Update the weights by their gradients: of a table the touched rows alone.

        Args:
            lr: learning rate of this update.
        """
        for group in self._torch.param_groups:
            group["lr"] = lr
        if self._native is not None:
            self._native.step(lr=lr)
            return
        for weight in self.by_rows:
            if weight.grad is not None:
                self._update_rows(weight, weight.grad, lr)
                weight.grad = None
        self._torch.step()

    def settle(self, *, lr: float) -> None:
        """Bring every vector up to date.

        Args:
            lr: learning rate of the last update.
        """
        if self._embedding is not None and self._state:
            weight = self._embedding.weight
            rows = torch.arange(len(weight), device=weight.device)
            self._make_up(weight, self._state, rows, lr=lr)

    @contextmanager
    def settled(self, *, lr: float) -> Iterator[None]:
        """While entered, weights are as `settle` would leave them; then as before, to the bit.

        So that a model can be saved within an epoch and nothing learned later depends on it.
        Meanwhile `tensors` holds the weights that training goes on from, too.

        Args:
            lr: learning rate of the last update.
        """
        if self._embedding is None or not self._state:
            yield
            return
        weight, state = self._embedding.weight.detach(), self._state
        idle = (state["up_to_date"] < state["step"]).nonzero().flatten()
        if not len(idle):
            yield
            return
        rows = rows_of(weight, state, idle)
        self._make_up(rows["weight"], rows, torch.arange(len(idle), device=idle.device), lr=lr)
        self._unsettled = weight.clone()
        weight[idle] = rows["weight"]
        try:
            yield
        finally:
            weight.copy_(self._unsettled)
            self._unsettled = None

    def tensors(self) -> dict[str, Tensor]:
        """Return what `load` takes, by name."""
        found = {
            f"optimizer.{index}.{name}": torch.as_tensor(value, device="cpu")
            for index, values in self._torch.state_dict()["state"].items()
            for name, value in values.items()
            if value is not None
        }
        return found if self._unsettled is None else {**found, UNSETTLED: self._unsettled}

    def load(
        self, tensors: dict[str, Tensor], *, some: bool, begun: bool, frozen: bool = False
    ) -> None:
        """Put back what `tensors` returned.

        Args:
            tensors: these among others.
            some: whether state of some weights will do; in pretraining the head has none, nor
                tokens that no batch held yet.
            begun: whether updates were made, so that there is state.
            frozen: whether the vectors of tokens stayed as they are, and have none.

        Raises:
            ValueError: it isn't what `tensors` returns for this optimizer.
        """
        states: dict[int, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            if key.startswith("optimizer."):
                _, index, name = key.split(".")
                states.setdefault(int(index), {})[name] = tensor
        if states or begun:
            self._check_states(states, some=some, frozen=frozen)
        groups = self._torch.state_dict()["param_groups"]
        self._torch.load_state_dict({"state": states, "param_groups": groups})
        for state in self._torch.state.values():
            if "up_to_date" in state:  # torch makes every state but `step` float, as the weight is
                state["up_to_date"] = state["up_to_date"].long()
        if self._native is not None:
            self._native.forget()
        if UNSETTLED in tensors:
            if self._embedding is None:
                raise ValueError(f"{UNSETTLED}: this run updates all vectors at once")
            weight = self._embedding.weight.detach()
            check_tensor(UNSETTLED, tensors[UNSETTLED], weight.shape, weight.dtype)
            weight.copy_(tensors[UNSETTLED])

    @property
    def _weights(self) -> list[nn.Parameter]:
        """All weights, in the order of the optimizer's numbers."""
        return [weight for group in self._torch.param_groups for weight in group["params"]]

    @property
    def _state(self) -> dict[str, Tensor]:
        """State of the embedding whose rows are updated; empty before its first update."""
        if self._embedding is None:
            return {}
        state: dict[str, Tensor] = self._torch.state[self._embedding.weight]
        return state

    def _update_rows(self, weight: Tensor, gradient: Tensor, lr: float) -> None:
        """Apply the optimizer's rule to the rows of a table that have a gradient."""
        rows, values = gradient.indices()[0], gradient.values()
        group, state = self._group(weight), self._torch.state[weight]
        if not state:
            state |= new_state(weight, ("momentum_buffer",) if self._is_sgd else MOMENTS)
        state["step"] += 1
        if group["weight_decay"] and not isinstance(self._torch, torch.optim.AdamW):
            values = values.add(weight.detach()[rows], alpha=group["weight_decay"])
        update = embedding_rows.sgd_rows if self._is_sgd else embedding_rows.torch_adam_rows
        update(weight, state, rows, values, **self._settings(weight, lr))

    def _make_up(
        self, weight: Tensor, state: dict[str, Tensor], rows: Tensor, *, lr: float
    ) -> None:
        """Make up for the idle updates of some rows."""
        make_up: Callable[..., None] = embedding_rows.torch_adam_idle
        if self._is_sgd:
            make_up = embedding_rows.sgd_idle
        elif self._native is not None:
            make_up = native.adam_idle
        make_up(weight, state, rows, **self._settings(self._embedding_weight, lr))

    @property
    def _is_sgd(self) -> bool:
        return isinstance(self._torch, torch.optim.SGD)

    @property
    def _embedding_weight(self) -> Tensor:
        assert self._embedding is not None, "its rows lie idle"
        return self._embedding.weight

    def _group(self, weight: Tensor) -> dict[str, Any]:
        """Return the parameter group that holds a weight."""
        groups = self._torch.param_groups
        return next(g for g in groups if any(p is weight for p in g["params"]))

    def _settings(self, weight: Tensor, lr: float) -> dict[str, Any]:
        """Return what a table's rule needs beside its state; decay where it is decoupled."""
        group = self._group(weight)
        if self._is_sgd:
            return {"lr": lr, "momentum": group["momentum"]}
        decay = group["weight_decay"] if isinstance(self._torch, torch.optim.AdamW) else 0.0
        return {"lr": lr, "betas": group["betas"], "eps": group["eps"], "weight_decay": decay}

    def _check_states(
        self, states: dict[int, dict[str, Tensor]], *, some: bool, frozen: bool
    ) -> None:
        """Every weight's moments and none more, each of its shape and type, and finite."""
        dense = {"momentum_buffer"} if self._is_sgd else {*MOMENTS, "step"}
        by_rows = dense | {"step", "up_to_date"}
        parameters = self._weights
        resting = self._model.embedding.weight if frozen else None
        numbers = {i for i, weight in enumerate(parameters) if weight is not resting}
        if not (states.keys() == numbers or (some and states.keys() < numbers)):
            raise ValueError(
                f"optimizer: found state of {len(states)} of {len(parameters)} weights"
            )
        for index in sorted(states):
            parameter = parameters[index]
            sparse = any(parameter is weight for weight in self.by_rows)
            names = by_rows if sparse else dense
            if states[index].keys() != names:
                raise ValueError(f"optimizer.{index}: expected {', '.join(sorted(names))}")
            expected = {
                **dict.fromkeys(dense, (parameter.shape, torch.float32)),
                "step": (torch.Size(), torch.float32),
                "up_to_date": (parameter.shape[:1], torch.int64),
            }
            for name, tensor in states[index].items():
                check_tensor(f"optimizer.{index}.{name}", tensor, *expected[name])
            step = states[index].get("step", torch.ones((), device="cpu"))
            done = states[index].get("up_to_date", step)
            if step < 1 or bool((done < 0).any() or (done > step).any()):
                raise ValueError(f"optimizer.{index}: no update can have left this state")


def _torch_optimizer(
    model: SequenceClassifier | PretrainingModel, config: TrainingConfig
) -> torch.optim.Optimizer:
    """Return torch's optimizer of a config; the first group holds the matrices, which decay."""
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    decaying = {
        name for name, p in named.items() if p.ndim > 1 and not name.endswith(NEVER_DECAYING)
    }
    groups = [
        {
            "params": [p for name, p in named.items() if name in decaying],
            "weight_decay": config.weight_decay,
        },
        {"params": [p for name, p in named.items() if name not in decaying], "weight_decay": 0.0},
    ]
    fused = all(p.device.type in ("cpu", "cuda") for p in named.values())
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.lr, momentum=SGD_MOMENTUM, fused=fused)
    rules: dict[str, Any] = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}
    chosen: torch.optim.Optimizer = rules[config.optimizer](groups, lr=config.lr, fused=fused)
    return chosen


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float | None) -> Tensor:
    """Scale gradients, dense and sparse, so that their joint norm is at most max_norm.

    Sparse gradients come out coalesced: each row once, in ascending order.

    Args:
        parameters: those with gradients; others are passed over.
        max_norm: None: leave them as they are.

    Returns:
        The norm before scaling, as torch.nn.utils.clip_grad_norm_ computes it; a scalar.
    """
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = _coalesce(parameter.grad)
            gradients.append(parameter.grad.values())
        elif parameter.grad is not None:
            gradients.append(parameter.grad)
    norms = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients])
    norm: Tensor = torch.linalg.vector_norm(norms)
    if max_norm is not None:
        scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(scale)
    return norm


def _coalesce(gradient: Tensor) -> Tensor:
    """Sum the entries of each row; for nothing where the rows ascend, as those of distinct ids."""
    rows = gradient._indices()[0]
    if not bool((rows[1:] > rows[:-1]).all()):
        return gradient.coalesce()
    values = gradient._values()
    return torch.sparse_coo_tensor(
        rows[None],
        values,
        gradient.shape,
        is_coalesced=True,
        check_invariants=False,
        device=values.device,
    )
