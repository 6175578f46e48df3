"""The recurrent encoder, over whole packed sequences or segment by segment.

Segments are cut backward from the ends: the last segment has the last `steps` time steps of each
sequence. In training this is truncated backpropagation through time (Williams & Peng 1990): states
go from segment to segment, gradients don't.

- If only the last valid state is used, only the last segment has gradients.
- If states are pooled, all segments have gradients. To save memory, each segment is computed again
  in the backward pass (Chen et al. 2016, arXiv:1604.06174).

B sequences, T longest length, N packed time steps. H hidden size, L layers, S tensors of a state: 1
(h), or 2 (h and c of an LSTM).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.cells import CELLS
from seqtrain.engines.layout import Layout, Packed
from seqtrain.model.pooling import PoolingList
from seqtrain.sequences.transfer import to_device

RunSteps = Callable[[Tensor, Layout, Tensor | None, Tensor | None], tuple[Tensor | None, Tensor]]
"""Function that runs an encoder over time steps.

The function has four arguments:

- the time steps,
- their layout,
- the initial states, (S, L, B, H), or None for zeros,
- the time step at which each row begins in its sequence, (B,), or None for 0.

It returns the states of all time steps, or None if they aren't needed, and the last states,
(S, L, B, H).
"""


def make_encoder(config: ModelConfig, width: int) -> nn.RNNBase:
    """Return a new recurrent module of torch, which holds the weights for all engines.

    Args:
        config: the section model of a config.
        width: size of an input vector.
    """
    return CELLS[config.rnn].module(
        width,
        config.hidden_size,
        num_layers=config.num_layers,
        bidirectional=config.bidirectional,
        dropout=config.dropout if config.num_layers > 1 else 0.0,
        batch_first=True,
    )


class Segment(NamedTuple):
    """Segment of packed sequences: consecutive time steps of some rows of a batch.

    Row i of the segment belongs to row i of the batch. The last rows of the batch are missing if
    their sequences have no steps in the segment.

    Attributes:
        steps: the time steps, packed.
        layout: positions of these steps.
        begin: time step at which each row begins in its sequence, (B,) int64.
        later: number of segments after this one.
    """

    steps: Tensor
    layout: Packed
    begin: Tensor
    later: int


def segments_of(steps: Tensor, layout: Packed, length: int) -> Iterator[Segment]:
    """Yield the segments of packed sequences, from the beginnings to the ends.

    A segment has `length` time steps of each of its sequences. Only the first segment of a sequence
    may have fewer.
    """
    lengths = layout.lengths_on_cpu
    first_of_step = layout.batch_sizes.cumsum(0) - layout.batch_sizes
    for later in range((int(lengths[0]) - 1) // length, -1, -1):
        stop = lengths - later * length
        stop = stop[stop > 0]
        start = (stop - length).clamp(min=0)
        sizes = len(stop) - (stop - start).bincount()[:-1].cumsum(0)
        own = Packed(sizes, layout.device)
        row, step = own.places
        index = first_of_step[start[row] + step] + row
        yield Segment(steps[to_device(index, layout.device)], own, start, later)


def run_in_segments(
    run: RunSteps,
    pooling: PoolingList | None,
    steps: Tensor,
    layout: Packed,
    start: Tensor,
    length: int,
) -> tuple[Tensor | None, Tensor]:
    """Run an encoder of one direction segment by segment, from the first to the last.

    The module's docstring describes which time steps gradients reach.

    Args:
        run: function that runs the encoder over a segment.
        pooling: pooling of all states, or None if only the last states are used.
        steps: the time steps, packed.
        layout: positions of the steps.
        start: initial states.
        length: largest number of time steps of a segment.

    Shape:
        start: (S, L, B, H). Returns: pooled states (B, K * H), or None without pooling, and the
        last valid states (S, L, B, H).
    """
    learning, after = torch.is_grad_enabled(), start[:, :, :0]
    anchor = start.new_zeros(0, requires_grad=True)
    summary: Tensor | None = None

    def add(
        _anchor: Tensor, steps: Tensor, state: Tensor, segment: Segment, before: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        assert pooling is not None
        outputs, after = run(steps, segment.layout, state, segment.begin)
        assert outputs is not None, "pooling needs the states of all steps"
        return pooling.add_segment(before, outputs, segment.layout), after

    for segment in segments_of(steps, layout, length):
        state = _start_of(segment, start, after)
        if pooling is None:
            with torch.set_grad_enabled(learning and segment.later == 0):
                _, after = run(segment.steps, segment.layout, state, segment.begin)
            # A weight that autocast lowered without gradients must not be used with gradients.
            torch.clear_autocast_cache()
            continue
        inputs = anchor, segment.steps, state, segment, summary
        if learning:  # checkpoint only computes gradients if one of its inputs requires one
            summary, after = checkpoint(add, *inputs, use_reentrant=True, preserve_rng_state=False)
        else:
            summary, after = add(*inputs)
    return None if pooling is None or summary is None else pooling.finalize(summary), after


def _start_of(segment: Segment, start: Tensor, before: Tensor) -> Tensor:
    rows = len(segment.begin)
    return torch.cat((before.detach(), start[:, :, before.shape[2] : rows]), dim=2)
