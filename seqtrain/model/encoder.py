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
from torch.nn.utils.rnn import PackedSequence
from torch.utils.checkpoint import checkpoint

from seqtrain.config.schema import ModelConfig
from seqtrain.model.cells import CELLS, as_torch_takes, cell_of
from seqtrain.model.packing import lengths_of, rows_and_steps
from seqtrain.model.pooling import AnyPooling, add_segment
from seqtrain.sequences.transfer import to_device

RunPacked = Callable[[PackedSequence, Tensor | None, Tensor | None], tuple[Tensor | None, Tensor]]
"""Function that runs an encoder over packed time steps.

The function has three arguments:

- the time steps,
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
        packed: the time steps, longest row first.
        begin: time step at which each row begins in its sequence, (B,) int64.
        later: number of segments after this one.
    """

    packed: PackedSequence
    begin: Tensor
    later: int


def segments_of(packed: PackedSequence, steps: int) -> Iterator[Segment]:
    """Yield the segments of packed sequences, from the beginnings to the ends.

    A segment has `steps` time steps of each of its sequences. Only the first segment of a sequence
    may have fewer.
    """
    lengths = lengths_of(packed.batch_sizes)
    first_of_step = packed.batch_sizes.cumsum(0) - packed.batch_sizes
    for later in range((int(lengths[0]) - 1) // steps, -1, -1):
        stop = lengths - later * steps
        stop = stop[stop > 0]
        start = (stop - steps).clamp(min=0)
        sizes = len(stop) - (stop - start).bincount()[:-1].cumsum(0)
        row, step = rows_and_steps(sizes)
        index = first_of_step[start[row] + step] + row
        data = packed.data[to_device(index, packed.data.device)]
        yield Segment(PackedSequence(data, sizes), start, later)


def run_in_segments(
    run: RunPacked, pooling: AnyPooling | None, packed: PackedSequence, start: Tensor, steps: int
) -> tuple[Tensor | None, Tensor]:
    """Run an encoder of one direction segment by segment, from the first to the last.

    The module's docstring describes which time steps gradients reach.

    Args:
        run: function that runs the encoder over a segment.
        pooling: pooling of all states, or None if only the last states are used.
        packed: the time steps.
        start: initial states.
        steps: largest number of time steps of a segment.

    Shape:
        start: (S, L, B, H). Returns: pooled states (B, K * H), or None without pooling, and the
        last valid states (S, L, B, H).
    """
    learning, after = torch.is_grad_enabled(), start[:, :, :0]
    summary: Tensor | None = None
    for segment in segments_of(packed, steps):
        state = _start_of(segment, start, after)
        if pooling is None:
            with torch.set_grad_enabled(learning and segment.later == 0):
                after = run(segment.packed, state, segment.begin)[1]
            # A weight that autocast lowered without gradients must not be used with gradients.
            torch.clear_autocast_cache()
        elif learning:
            summary, after = _with_checkpoint(run, pooling, segment, summary, state)
        else:
            summary, after = _add(run, pooling, segment, summary, state, segment.packed.data)
    return None if pooling is None or summary is None else pooling.finish(summary), after


def _with_checkpoint(
    run: RunPacked, pooling: AnyPooling, segment: Segment, summary: Tensor | None, state: Tensor
) -> tuple[Tensor, Tensor]:
    # checkpoint only computes gradients if one of its inputs requires one.
    anchor = state.new_zeros(0, requires_grad=True)

    def add(anchor: Tensor, summary: Tensor | None, state: Tensor, data: Tensor) -> object:
        return _add(run, pooling, segment, summary, state, data)

    inputs = anchor, summary, state, segment.packed.data
    result: tuple[Tensor, Tensor] = checkpoint(
        add, *inputs, use_reentrant=True, preserve_rng_state=False
    )
    return result


def _add(
    run: RunPacked,
    pooling: AnyPooling,
    segment: Segment,
    summary: Tensor | None,
    state: Tensor,
    data: Tensor,
) -> tuple[Tensor, Tensor]:
    sizes = segment.packed.batch_sizes
    outputs, after = run(PackedSequence(data, sizes), state, segment.begin)
    assert outputs is not None, "pooling needs the states of all steps"
    return add_segment(pooling, summary, outputs, sizes), after


def _start_of(segment: Segment, start: Tensor, before: Tensor) -> Tensor:
    rows = len(segment.begin)
    return torch.cat((before.detach(), start[:, :, before.shape[2] : rows]), dim=2)


def encode_padded(
    encoder: nn.RNNBase, steps: Tensor, lengths: Tensor, start: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Run all layers of an encoder over padded sequences, by operations that ONNX has.

    For the backward direction, each sequence is reversed within its length.

    Args:
        encoder: torch's module with the parameters.
        steps: padded inputs, (T, B, E).
        lengths: number of valid steps of each row, (B,).
        start: initial state of all rows, (S, L * D, H), or None for zeros.

    Returns:
        Two tensors of the top layer: the states, (T, B, D * H), arbitrary at padding; and the last
        valid states, (B, D * H).
    """
    last = steps
    reversed_steps = (lengths - 1 - torch.arange(steps.shape[0])[:, None]).clamp(min=0)
    directions = 2 if encoder.bidirectional else 1
    for layer in range(encoder.num_layers):
        states = [_one_direction(encoder, steps, layer * directions, start)]
        if encoder.bidirectional:
            backward = select_steps(steps, reversed_steps)
            states.append(_one_direction(encoder, backward, layer * directions + 1, start))
        last = torch.cat([select_steps(each, lengths - 1) for each in states], dim=1)
        states[1:] = [select_steps(each, reversed_steps) for each in states[1:]]
        steps = torch.cat(states, dim=2)
    return steps, last


def select_steps(values: Tensor, steps: Tensor) -> Tensor:
    """Return the values of selected time steps of each row, (…, B, E).

    Args:
        values: values of all time steps, (T, B, E).
        steps: indices of time steps, (…, B). Column b selects steps of row b.
    """
    rows = values.shape[1]
    return values.flatten(0, 1)[steps * rows + torch.arange(rows)]


def _one_direction(encoder: nn.RNNBase, steps: Tensor, number: int, start: Tensor | None) -> Tensor:
    """Return the states of one layer and direction for padded steps, (T, B, H).

    The steps are read from the first to the last, padding included. For the backward direction, the
    caller must reverse the steps.

    Args:
        encoder: torch's module with the parameters.
        steps: inputs of the layer, (T, B, E).
        number: layer * D + direction.
        start: initial state of all rows, (S, L * D, H), or None for zeros.
    """
    cell, rows = cell_of(encoder), steps.shape[1]
    if start is None:
        own = steps.new_zeros(cell.tensors, 1, rows, encoder.hidden_size)
    else:
        own = start[:, number, None, None].expand(-1, 1, rows, -1)
    states: Tensor = cell.kernel(
        steps,
        as_torch_takes(own),
        encoder.all_weights[number],
        has_biases=True,
        num_layers=1,
        dropout=0.0,
        train=False,
        bidirectional=False,
        batch_first=False,
    )[0]
    return states
