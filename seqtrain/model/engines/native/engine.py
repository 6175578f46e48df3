"""The GRU over packed sequences, computed by the native library: a drop-in for `fused_gru`.

Legend of shapes: B batch, T longest length, N packed tokens, U distinct vectors, E input size,
H hidden size, L layers, D directions.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.engines.fused.engine import DistinctInputs
from seqtrain.model.engines.native.call import Projected, Reading, allows_bfloat16, layer_parameters
from seqtrain.model.engines.native.checks import (
    check_parameters,
    check_start,
    check_tokens,
    check_vectors,
)
from seqtrain.model.engines.native.layer import run_layer
from seqtrain.model.engines.native.library import load_library, why_not


def serves(encoder: nn.Module) -> TypeGuard[nn.GRU]:
    """Return whether the native engine can run this module: a float32 GRU on the CPU."""
    return (
        not why_not()
        and isinstance(encoder, nn.GRU)
        and all(p.dtype == torch.float32 and p.device.type == "cpu" for p in encoder.parameters())
    )


def native_gru(
    inputs: PackedSequence | DistinctInputs,
    gru: nn.GRU,
    h0: Tensor | None = None,
    *,
    need_outputs: bool = True,
) -> tuple[Tensor | None, Tensor]:
    """Run a GRU over packed sequences: what `gru(packed, h0)` does, gradients included.

    Under autocast to bfloat16, matrix products round what they multiply to it, where the processor
    has such products; their sums, and all else, stay float32. Any number of forwards may wait for
    their backward; each is gone back through once, as backward overwrites what forward saved.

    Args:
        inputs: the sequences, longest first; without gradients, the distinct vectors may have
            been projected before (`project`).
        gru: owner of the parameters and of the dropout between layers.
        h0: initial states, in the order of the packed sequences; None: zeros.
        need_outputs: also return the states of all steps.

    Shape:
        inputs N tokens of size E, h0 (L * D, B, H) -> outputs (N, D * H), h_n (L * D, B, H).

    Returns:
        The last layer's states of all steps, packed (None where not needed), and the last valid
        state of each sequence; float32, whatever autocast says.

    Raises:
        RuntimeError: the native library isn't there.
        TypeError: a tensor of another type or device than the library's.
        ValueError: sizes that don't fit, an index outside the table, or gradients wanted of
            projected vectors.
    """
    library = load_library()
    check_parameters(gru)
    layers = [layer_parameters(gru, layer) for layer in range(gru.num_layers)]
    reading = _read(inputs, gru)
    if h0 is not None:
        check_start(h0, gru, reading.batch)
    saving = _gradients_wanted(reading.vectors, h0, *chain(*layers))
    directions = 2 if gru.bidirectional else 1
    outputs: Tensor | None = None
    finals = []
    for layer, parameters in enumerate(layers):
        last = layer == gru.num_layers - 1
        if h0 is not None:
            start = h0[layer * directions : (layer + 1) * directions].contiguous()
            reading = replace(reading, h0=start)
        outputs, final = run_layer(library, reading, parameters, need_outputs or not last, saving)
        finals.append(final)
        if outputs is not None and not last:
            dropped = functional.dropout(outputs, gru.dropout, gru.training)
            reading = replace(reading, vectors=dropped, index=None)
    return outputs, finals[0] if len(finals) == 1 else torch.cat(finals)


def _read(inputs: PackedSequence | DistinctInputs, gru: nn.GRU) -> Reading:
    """Check the inputs; return what the first layer reads, but for its initial states."""
    vectors: Tensor | Projected = (
        inputs.data if isinstance(inputs, PackedSequence) else inputs.table
    )
    index = None if isinstance(inputs, PackedSequence) else inputs.index.contiguous()
    if isinstance(vectors, Tensor):
        vectors = vectors.to(torch.float32).contiguous()
    check_vectors(vectors, gru)
    tokens, batch = check_tokens(inputs.batch_sizes, index, len(vectors))
    return Reading(
        vectors=vectors,
        index=index,
        batch_sizes=inputs.batch_sizes.contiguous(),
        h0=None,
        tokens=tokens,
        batch=batch,
        threads=torch.get_num_threads(),
        bfloat16=allows_bfloat16(),
    )


def _gradients_wanted(vectors: Tensor | Projected, *others: Tensor | None) -> bool:
    """Return whether a backward may come.

    Raises:
        ValueError: it may, but projected vectors have none.
    """
    wanted = torch.is_grad_enabled() and any(
        isinstance(tensor, Tensor) and tensor.requires_grad for tensor in (vectors, *others)
    )
    if wanted and isinstance(vectors, Projected):
        raise ValueError("inputs: projected vectors have no gradients; run under torch.no_grad()")
    return wanted
