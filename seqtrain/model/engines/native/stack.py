"""A stack of recurrent layers over packed sequences, computed by the native library.

Legend of shapes: B batch, T longest length, N packed tokens, U distinct vectors, E input size,
H hidden size, L layers, D directions, P parts of a state (h, and c of an LSTM).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import cell_of
from seqtrain.model.engines.interface import Between, DistinctInputs
from seqtrain.model.engines.native.call import Projected, Reading, allows_bfloat16, layer_parameters
from seqtrain.model.engines.native.checks import (
    check_parameters,
    check_start,
    check_tokens,
    check_vectors,
)
from seqtrain.model.engines.native.layer import run_layer
from seqtrain.model.engines.native.library import load_library


def run_stack(
    encoder: nn.RNNBase,
    inputs: PackedSequence | DistinctInputs,
    start: Tensor | None = None,
    *,
    need_outputs: bool = True,
    between: Between | None = None,
) -> tuple[Tensor | None, Tensor]:
    """Run all layers over packed sequences: what `encoder(packed, start)` does, gradients included.

    Under autocast to bfloat16, matrix products round what they multiply to it, where the processor
    has such products; their sums, and all else, stay float32. Any number of forwards may wait for
    their backward; each is gone back through once, as backward overwrites what forward saved.

    Args:
        encoder: owner of the parameters; its own dropout isn't applied.
        inputs: the sequences, longest first; without gradients, the distinct vectors may have
            been projected before (`project`).
        start: initial states, in the order of the packed sequences; None: zeros.
        need_outputs: also return the states of all steps.
        between: as for `Engine.run`.

    Shape:
        inputs N tokens of size E, start (P, L * D, B, H) -> outputs (N, D * H), last states
        (P, L * D, B, H).

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
    check_parameters(encoder)
    layers = [layer_parameters(encoder, layer) for layer in range(encoder.num_layers)]
    reading = _read(encoder, inputs)
    if start is not None:
        check_start(start, encoder, reading.batch)
    saving = _gradients_wanted(reading.vectors, start, *chain(*layers))
    directions = 2 if encoder.bidirectional else 1
    outputs: Tensor | None = None
    lasts = []
    for layer, parameters in enumerate(layers):
        top = layer == encoder.num_layers - 1
        if start is not None:
            of_layer = start[:, layer * directions : (layer + 1) * directions]
            reading = replace(reading, start=of_layer.contiguous())
        outputs, last = run_layer(library, reading, parameters, need_outputs or not top, saving)
        lasts.append(last)
        if outputs is not None and not top:
            below = outputs if between is None else between(outputs, layer).contiguous()
            reading = replace(reading, vectors=below, index=None)
    return outputs, lasts[0] if len(lasts) == 1 else torch.cat(lasts, dim=1)


def _read(encoder: nn.RNNBase, inputs: PackedSequence | DistinctInputs) -> Reading:
    """Check the inputs; return what the first layer reads, but for its initial states."""
    vectors = inputs.data if isinstance(inputs, PackedSequence) else inputs.table
    index = None if isinstance(inputs, PackedSequence) else inputs.index.contiguous()
    if isinstance(vectors, Tensor):
        vectors = vectors.to(torch.float32).contiguous()
    elif not isinstance(vectors, Projected):
        raise TypeError("inputs: projected for another engine than native")
    check_vectors(vectors, encoder)
    tokens, batch = check_tokens(inputs.batch_sizes, index, len(vectors))
    return Reading(
        cell=cell_of(encoder),
        vectors=vectors,
        index=index,
        batch_sizes=inputs.batch_sizes.contiguous(),
        start=None,
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
