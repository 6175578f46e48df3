"""The optimizer: by torch's rules, but that a table learns by the rows that a batch touches.

A vocabulary has far more vectors than a batch has distinct tokens, and a dense update of all can
cost more than the model. Nobody else knows that an embedding's vectors lie idle: `reading` brings
those up to date that are about to be read, and `settle` makes up for all idle updates. The weights
of n-grams and subwords stay where they are while they lie idle, as with torch.optim.SparseAdam.

Where the native library makes the updates, torch's optimizer isn't there at all: the first one of a
process loads the compiler of torch, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from seqtrain.config.schema import TrainingConfig
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.engines import native
from seqtrain.model.inputs import TokenEmbedding
from seqtrain.model.ngrams import NgramClassifier
from seqtrain.model.subwords import Subwords
from seqtrain.training import embedding_rows
from seqtrain.training.embedding_rows import rows_of
from seqtrain.training.native_adam import BETAS, EPSILON, NativeAdam
from seqtrain.training.optimizer_state import OptimizerState, decay_of_each
from seqtrain.training.state import check_tensor

SGD_MOMENTUM = 0.9
UNSETTLED = "unsettled.weight"
"""Name of the embedding's weight as it stood, beside a saved model whose weights are settled."""


class Optimizer:
    """Computes gradients, clips them, and updates the weights of a model.

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
        decay = decay_of_each(model, config.weight_decay)
        self._rule = config.optimizer
        self._native: NativeAdam | None = None
        self._torch: torch.optim.Optimizer | None = None
        if not self._is_sgd and all(embedding_rows.native_serves(weight) for weight in decay):
            self._state = OptimizerState(decay, self.by_rows, self._rule)
            self._native = NativeAdam(self._state, decoupled=self._rule == "adamw")
        else:
            self._torch = _torch_optimizer(decay, config)
            self._state = OptimizerState(decay, self.by_rows, self._rule, self._torch.state)
        self._unsettled: Tensor | None = None

    def freeze(self, *, frozen: bool) -> None:
        """Let the vectors of tokens stay as they are from now on, or learn."""
        if not isinstance(self._model.embedding, TokenEmbedding):
            return
        weight, states = self._model.embedding.weight, self._state.of_each
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
        if embedding is None or not self._embedding_state:
            yield
            return
        embedding.before_read = partial(
            self._make_up, embedding.weight, self._embedding_state, lr=lr
        )
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
        if self._embedding is not None and self._embedding_state:
            weight = self._embedding.weight
            self._make_up(weight, self._embedding_state, touched[id(weight)], lr=lr)

    def gradient(self, loss: Tensor) -> Tensor | float:
        """Compute the gradient of a loss, to be scaled down to max_grad_norm.

        Returns:
            The norm before scaling, a scalar.
        """
        self.backward(loss)
        return self.clip()

    def backward(self, loss: Tensor) -> None:
        """Compute the gradient of a loss."""
        for weight in self._state.decay:
            weight.grad = None
        torch.autograd.backward(loss)

    def clip(self) -> Tensor | float:
        """Return the norm of the gradient, to be scaled down to max_grad_norm; a scalar."""
        if self._native is not None:
            return self._native.clip(self._max_grad_norm)
        return clip_gradients(self._state.decay, self._max_grad_norm)

    def step(self, *, lr: float) -> None:
        """Update the weights by their gradients: of a table the touched rows alone.

        Args:
            lr: learning rate of this update.
        """
        if self._native is not None:
            self._native.step(lr=lr)
            return
        assert self._torch is not None, "one of both updates"
        for group in self._torch.param_groups:
            group["lr"] = lr
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
        if self._embedding is not None and self._embedding_state:
            weight = self._embedding.weight
            rows = torch.arange(len(weight), device=weight.device)
            self._make_up(weight, self._embedding_state, rows, lr=lr)

    @contextmanager
    def settled(self, *, lr: float) -> Iterator[None]:
        """While entered, weights are as `settle` would leave them; then as before, to the bit.

        So that a model can be saved within an epoch and nothing learned later depends on it.
        Meanwhile `tensors` holds the weights that training goes on from, too.

        Args:
            lr: learning rate of the last update.
        """
        if self._embedding is None or not self._embedding_state:
            yield
            return
        weight, state = self._embedding.weight.detach(), self._embedding_state
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
        found = self._state.tensors()
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
        embedding = self._model.embedding
        resting = embedding.weight if frozen and isinstance(embedding, TokenEmbedding) else None
        self._state.load(tensors, some=some, begun=begun, resting=resting)
        if self._native is not None:
            self._native.forget()
        if UNSETTLED in tensors:
            if self._embedding is None:
                raise ValueError(f"{UNSETTLED}: this run updates all vectors at once")
            weight = self._embedding.weight.detach()
            check_tensor(UNSETTLED, tensors[UNSETTLED], weight.shape, weight.dtype)
            weight.copy_(tensors[UNSETTLED])

    @property
    def _embedding_state(self) -> dict[str, Tensor]:
        """State of the embedding whose rows are updated; empty before its first update."""
        return {} if self._embedding is None else self._state.of_each[self._embedding.weight]

    def _update_rows(self, weight: Tensor, gradient: Tensor, lr: float) -> None:
        """Apply the optimizer's rule to the rows of a table that have a gradient."""
        rows, values = gradient.indices()[0], gradient.values()
        state = self._state.begin(weight)
        state["step"] += 1
        if self._state.decay[weight] and self._rule != "adamw":
            values = values.add(weight.detach()[rows], alpha=self._state.decay[weight])
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
        return self._rule == "sgd"

    @property
    def _embedding_weight(self) -> Tensor:
        assert self._embedding is not None, "its rows lie idle"
        return self._embedding.weight

    def _settings(self, weight: Tensor, lr: float) -> dict[str, Any]:
        """Return what a table's rule needs beside its state; decay where it is decoupled."""
        if self._is_sgd:
            return {"lr": lr, "momentum": SGD_MOMENTUM}
        decay = self._state.decay[weight] if self._rule == "adamw" else 0.0
        return {"lr": lr, "betas": BETAS, "eps": EPSILON, "weight_decay": decay}


def _torch_optimizer(
    decay: Mapping[Tensor, float], config: TrainingConfig
) -> torch.optim.Optimizer:
    groups = [
        {"params": [weight for weight in decay if decay[weight] == value], "weight_decay": value}
        for value in dict.fromkeys(decay.values())
    ]
    fused = all(weight.device.type in ("cpu", "cuda") for weight in decay)
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.lr, momentum=SGD_MOMENTUM, fused=fused)
    rules: dict[str, Any] = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}
    chosen: torch.optim.Optimizer = rules[config.optimizer](
        groups, lr=config.lr, betas=BETAS, eps=EPSILON, fused=fused
    )
    return chosen


def clip_gradients(parameters: Iterable[Tensor], max_norm: float | None) -> Tensor:
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
