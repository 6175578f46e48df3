"""The recurrent encoder over packed sequences, and over long ones segment by segment.

Sequences are cut backward from their ends, so that the last segment holds the last `steps` time
steps of each. In training this is truncated backpropagation through time (Williams & Peng 1990):
states are carried from segment to segment, gradients are not. For a loss on the last valid state,
the segments before the last run forward alone. A loss on pooled states reaches all time steps, each
within its segment, which runs again when its gradient is due (Chen et al. 2016, arXiv:1604.06174).

B batch, T longest length, N steps of all sequences, H hidden size, L layers, S tensors of a state:
1 (h), or 2 (h and c of an LSTM).
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils.checkpoint import checkpoint

from seqtrain.config.schema import ModelConfig
from seqtrain.model.cells import CELLS
from seqtrain.model.packing import lengths_of, rows_and_steps
from seqtrain.model.pooling import Pooling

RunPacked = Callable[[PackedSequence, Tensor | None, Tensor | None], tuple[Tensor | None, Tensor]]
"""Packed time steps, a start (S, L, B, H) or None (zeros), the number of each row's first time step
in its sequence (B,) or None (0) -> states of all time steps, last states."""


def make_encoder(config: ModelConfig, width: int) -> nn.RNNBase:
    """Return torch's module that holds the weights for every engine; it reads (…, width)."""
    return CELLS[config.rnn].module(
        width,
        config.hidden_size,
        num_layers=config.num_layers,
        bidirectional=config.bidirectional,
        dropout=config.dropout if config.num_layers > 1 else 0.0,
        batch_first=True,
    )


class Segment(NamedTuple):
    """Consecutive time steps of some sequences, longest first; row i is row i of the whole.

    `begin` is the number of each row's first time step in its sequence, (B,) int64; `later` is how
    many segments come later.
    """

    packed: PackedSequence
    begin: Tensor
    later: int


def segments_of(packed: PackedSequence, steps: int) -> Iterator[Segment]:
    """Cut packed sequences into segments of at most `steps` steps, the last ones full."""
    lengths = lengths_of(packed.batch_sizes)
    first_of_step = packed.batch_sizes.cumsum(0) - packed.batch_sizes
    for later in range((int(lengths[0]) - 1) // steps, -1, -1):
        stop = lengths - later * steps
        stop = stop[stop > 0]
        start = (stop - steps).clamp(min=0)
        sizes = len(stop) - (stop - start).bincount()[:-1].cumsum(0)
        row, step = rows_and_steps(sizes)
        index = first_of_step[start[row] + step] + row
        data = packed.data[index.to(packed.data.device)]
        yield Segment(PackedSequence(data, sizes), start, later)


def run_in_segments(
    run: RunPacked, pooling: Pooling | None, packed: PackedSequence, start: Tensor, steps: int
) -> tuple[Tensor | None, Tensor]:
    """Run an encoder segment by segment, in one direction.

    With pooling, gradients reach each step, but not beyond its segment; without it the last
    `steps` steps of each sequence.

    Shape:
        start: (S, L, B, H). Returns: pooled (B, K * H), None without pooling, and the last valid
        states (S, L, B, H).
    """
    learning, after = torch.is_grad_enabled(), start[:, :, :0]
    pool = None if pooling is None else pooling.begin(start.shape[2], like=start)
    if pool is not None and learning:
        pool.requires_grad_()  # or checkpoint sees nothing to go back to
    for segment in segments_of(packed, steps):
        state = _start_of(segment, start, after)
        if pooling is None or pool is None:
            with torch.set_grad_enabled(learning and segment.later == 0):
                after = run(segment.packed, state, segment.begin)[1]
            # What autocast lowered without gradients must not serve where they are wanted.
            torch.clear_autocast_cache()
            continue
        add, data = partial(_add, run, pooling, segment), segment.packed.data
        if learning:
            pool, after = checkpoint(
                add, pool, state, data, use_reentrant=True, preserve_rng_state=False
            )
        else:
            pool, after = add(pool, state, data)
    return None if pooling is None or pool is None else pooling.finish(pool), after


def _add(
    run: RunPacked, pooling: Pooling, segment: Segment, pool: Tensor, state: Tensor, data: Tensor
) -> tuple[Tensor, Tensor]:
    sizes = segment.packed.batch_sizes
    outputs, after = run(PackedSequence(data, sizes), state, segment.begin)
    assert outputs is not None, "pooling asks for the states of all steps"
    return pooling.add(pool, outputs, sizes), after


def _start_of(segment: Segment, start: Tensor, before: Tensor) -> Tensor:
    rows = len(segment.begin)
    return torch.cat((before.detach(), start[:, :, before.shape[2] : rows]), dim=2)
