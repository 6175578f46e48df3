"""What the fused engine computes of each cell: its steps forward, and the gradient by hand.

Only what a step needs from the step before stays in the loop over steps: a product with the
recurrent weight and a few operations in place. The rest is done for a block of steps at once.

Legend of shapes: B batch, M packed time steps of a block, H hidden size, G gates, P parts of a
state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import repeat
from typing import Any, ClassVar

import torch
from torch import Tensor

from seqtrain.model.cells import GRU, LSTM, RNN, Cell
from seqtrain.model.engines.fused.matmul import product


class Arithmetic(ABC):
    """A cell's arithmetic over a block of steps.

    Attributes:
        kept: tensors (M, H) that backward needs besides the gates: the hidden state before each
            step, and what a cell has beyond it.
    """

    kept: ClassVar[int]

    def prepare(self, w_hh: Tensor, b_hh: Tensor) -> tuple[Tensor, Tensor]:
        """Return the recurrent weight (G * H, H) and bias (G * H,) as `advance` takes them."""
        return w_hh, b_hh

    @abstractmethod
    def advance(
        self,
        state: Tensor,
        sizes: list[int],
        gates: Tensor,
        w_hh: Tensor,
        b_hh: Tensor,
        kept: Tensor | None,
        after: Tensor | None,
    ) -> None:
        """Carry the states through a block's steps.

        Args:
            state: (P, B, H), changed in place; a sequence that has ended keeps its last.
            sizes: number of sequences at every step.
            gates: the projected inputs (M, G * H); become the gates' values.
            w_hh: recurrent weight, prepared.
            b_hh: recurrent bias, prepared.
            kept: receives what backward needs (kept, M, H); None: nothing is kept.
            after: receives the hidden states after each step (M, H); None: not wanted.
        """

    @abstractmethod
    def retreat(
        self,
        d_state: Tensor,
        sizes: list[int],
        gates: Tensor,
        w_hh: Tensor,
        kept: Tensor,
        d_after: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Carry the gradient of the states back through a block's steps.

        Args:
            d_state: (P, B, H), changed in place; a sequence's row waits for its last step.
            sizes: number of sequences at every step.
            gates: the gates' values (M, G * H).
            w_hh: recurrent weight, transposed (H, G * H).
            kept: as `advance` filled it.
            d_after: gradient of the states after each step (M, H); None: no such.

        Returns:
            The gradients of the gates' sums for the recurrence (M, G * H); and that of the last
            gate's for the input (M, H) where it differs, or None.
        """


class GruArithmetic(Arithmetic):
    """Cho et al. 2014, arXiv:1406.1078, with torch's place for the reset gate, after the product.

        r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)
        z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
        q = W_hn h + b_hn
        n = tanh(W_in x + b_in + r q)
        h' = (1 - z) n + z h

    It keeps h and q.
    """

    kept = 2

    def advance(
        self,
        state: Tensor,
        sizes: list[int],
        gates: Tensor,
        w_hh: Tensor,
        b_hh: Tensor,
        kept: Tensor | None,
        after: Tensor | None,
    ) -> None:
        """Carry the states through a block's steps; as `Arithmetic.advance`."""
        hidden, size = state[0], state.shape[2]
        r, z, n = gates.chunk(3, 1)
        before, q = (None, None) if kept is None else kept.unbind()
        for rz_t, r_t, z_t, n_t, before_t, q_t, after_t in _by_step(
            sizes, gates[:, : 2 * size], r, z, n, before, q, after
        ):
            h = hidden[: len(r_t)]
            recurrent_rz, recurrent_q = product(h, w_hh, b_hh).split_with_sizes((2 * size, size), 1)
            rz_t.add_(recurrent_rz).sigmoid_()
            if q_t is not None:
                before_t.copy_(h)
                q_t.copy_(recurrent_q)
            _tanh_(n_t.addcmul_(r_t, recurrent_q))
            torch.lerp(n_t, h, z_t, out=h)
            if after_t is not None:
                after_t.copy_(h)

    def retreat(
        self,
        d_state: Tensor,
        sizes: list[int],
        gates: Tensor,
        w_hh: Tensor,
        kept: Tensor,
        d_after: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Carry the gradient back through a block's steps; as `Arithmetic.retreat`."""
        z = gates.chunk(3, 1)[1]
        d_gates, d_n = self._derivatives(gates, *kept.unbind())
        by_gate = d_gates.view(len(gates), 3, -1)
        steps = [*_by_step(sizes, z, d_gates, by_gate, d_n, d_after)]
        for z_t, d_gates_t, by_gate_t, d_n_t, d_after_t in reversed(steps):
            d = d_state[0, : len(z_t)]
            if d_after_t is not None:
                d.add_(d_after_t)
            by_gate_t.mul_(d.unsqueeze(1))
            d_n_t.mul_(d)
            torch.addcmul(product(d_gates_t, w_hh), z_t, d, out=d)
        return d_gates, d_n

    @staticmethod
    def _derivatives(gates: Tensor, before: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Derivatives of h' by W_hr h, W_hz h and q (M, 3H), and by W_in x (M, H)."""
        r, z, n = gates.chunk(3, 1)
        by_gates = torch.empty_like(gates)
        by_r, by_z, by_q = by_gates.chunk(3, 1)
        one = gates.new_ones(())
        rest = one - z
        by_n = torch.addcmul(one, n, n, value=-1).mul_(rest)
        torch.mul(by_n, r, out=by_q)
        slope = by_q * q
        torch.addcmul(slope, slope, r, value=-1, out=by_r)
        torch.sub(before, n, out=by_z).mul_(z).mul_(rest)
        return by_gates, by_n


class LstmArithmetic(Arithmetic):
    """Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000.

        i, f, o = sigmoid(W x + W_h h + biases), each with its own
        g = tanh(W_ig x + b_ig + W_hg h + b_hg) = 2 s - 1, with s = sigmoid(2 (...))
        c' = f c + i g
        h' = o tanh(c')

    All four gates are one sigmoid: `prepare` doubles g's rows. It keeps h and c.
    """

    kept = 2

    def prepare(self, w_hh: Tensor, b_hh: Tensor) -> tuple[Tensor, Tensor]:
        """Double g's rows; as `Arithmetic.prepare`."""
        w_hh, b_hh = w_hh.clone(), b_hh.clone()
        w_hh.chunk(4)[2].mul_(2)
        b_hh.chunk(4)[2].mul_(2)
        return w_hh, b_hh

    def advance(
        self,
        state: Tensor,
        sizes: list[int],
        gates: Tensor,
        w_hh: Tensor,
        b_hh: Tensor,
        kept: Tensor | None,
        after: Tensor | None,
    ) -> None:
        """Carry the states through a block's steps; as `Arithmetic.advance`."""
        i, f, g, o = gates.chunk(4, 1)
        g.mul_(2)
        for gates_t, i_t, f_t, s_t, o_t, kept_t, after_t in _by_step(
            sizes, gates, i, f, g, o, None if kept is None else kept.transpose(0, 1), after
        ):
            h, c = before = state[:, : len(i_t)]
            if kept_t is not None:
                kept_t.copy_(before.transpose(0, 1))
            gates_t.add_(product(h, w_hh, b_hh)).sigmoid_()
            c.mul_(f_t).sub_(i_t).addcmul_(i_t, s_t, value=2)
            _tanh_(h.copy_(c)).mul_(o_t)
            if after_t is not None:
                after_t.copy_(h)
        g.mul_(2).sub_(1)

    def retreat(
        self,
        d_state: Tensor,
        sizes: list[int],
        gates: Tensor,
        w_hh: Tensor,
        kept: Tensor,
        d_after: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Carry the gradient back through a block's steps; as `Arithmetic.retreat`.

        With t = tanh(c') and dc the gradient of c' by all ways:

            dc += dh o (1 - t^2)           do = dh t o (1 - o)
            di = dc g i (1 - i)            df = dc c f (1 - f)         dg = dc i (1 - g^2)
        """
        i, f, g, o = gates.chunk(4, 1)
        one, c = gates.new_ones(()), kept[1]
        d_gates = torch.empty_like(gates)
        by_i, by_f, by_g, by_o = d_gates.chunk(4, 1)
        torch.mul(i, one - i, out=by_i).mul_(g)
        torch.mul(f, one - f, out=by_f).mul_(c)
        torch.mul(i, torch.addcmul(one, g, g, value=-1), out=by_g)
        t = _tanh_(torch.addcmul(i * g, f, c))
        torch.mul(o, one - o, out=by_o).mul_(t)
        through_o = torch.addcmul(one, t, t, value=-1).mul_(o)
        by_gate = d_gates.view(len(gates), 4, -1)
        steps = [*_by_step(sizes, f, d_gates, by_gate[:, :3], by_o, through_o, d_after)]
        for f_t, d_gates_t, by_ifg_t, by_o_t, through_o_t, d_after_t in reversed(steps):
            dh, dc = d_state[:, : len(f_t)]
            if d_after_t is not None:
                dh.add_(d_after_t)
            dc.addcmul_(dh, through_o_t)
            by_ifg_t.mul_(dc.unsqueeze(1))
            by_o_t.mul_(dh)
            dc.mul_(f_t)
            dh.copy_(product(d_gates_t, w_hh))
        return d_gates, None


class RnnArithmetic(Arithmetic):
    """Elman 1990, with tanh: h' = tanh(W_ih x + b_ih + W_hh h + b_hh). It keeps h."""

    kept = 1

    def advance(
        self,
        state: Tensor,
        sizes: list[int],
        gates: Tensor,
        w_hh: Tensor,
        b_hh: Tensor,
        kept: Tensor | None,
        after: Tensor | None,
    ) -> None:
        """Carry the states through a block's steps; as `Arithmetic.advance`."""
        for gates_t, before_t in _by_step(sizes, gates, None if kept is None else kept[0]):
            h = state[0, : len(gates_t)]
            if before_t is not None:
                before_t.copy_(h)
            h.copy_(_tanh_(gates_t.add_(product(h, w_hh, b_hh))))
        if after is not None:
            after.copy_(gates)

    def retreat(
        self,
        d_state: Tensor,
        sizes: list[int],
        gates: Tensor,
        w_hh: Tensor,
        kept: Tensor,
        d_after: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Carry the gradient back through a block's steps; as `Arithmetic.retreat`."""
        d_gates = torch.addcmul(gates.new_ones(()), gates, gates, value=-1)
        for d_gates_t, d_after_t in reversed([*_by_step(sizes, d_gates, d_after)]):
            dh = d_state[0, : len(d_gates_t)]
            if d_after_t is not None:
                dh.add_(d_after_t)
            dh.copy_(product(d_gates_t.mul_(dh), w_hh))
        return d_gates, None


ARITHMETIC: dict[Cell, Arithmetic] = {
    GRU: GruArithmetic(),
    LSTM: LstmArithmetic(),
    RNN: RnnArithmetic(),
}
"""The cells that the fused engine has."""


def _by_step(sizes: list[int], *tensors: Tensor | None) -> Iterator[tuple[Any, ...]]:
    """Yield each step's rows of the packed tensors of a block."""
    steps = (repeat(None, len(sizes)) if t is None else t.split_with_sizes(sizes) for t in tensors)
    return zip(*steps, strict=True)


def _tanh_(x: Tensor) -> Tensor:
    """Take tanh in place; on the CPU as 2 sigmoid(2x) - 1, twice as fast in torch."""
    return x.mul_(2).sigmoid_().mul_(2).sub_(1) if x.device.type == "cpu" else x.tanh_()
