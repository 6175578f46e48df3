"""The GRU over packed sequences, computed by the native library: a drop-in for `fused_gru`.

Legend of shapes: B batch, T longest length, N packed tokens, U distinct vectors, E input size,
H hidden size, L layers, D directions.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import GRU, Cell
from seqtrain.model.engines.interface import DistinctInputs, Engine
from seqtrain.model.engines.native.call import Projected, Reading, allows_bfloat16, layer_parameters
from seqtrain.model.engines.native.checks import (
    check_parameters,
    check_start,
    check_tokens,
    check_vectors,
)
from seqtrain.model.engines.native.layer import run_layer
from seqtrain.model.engines.native.library import load_library, why_not
from seqtrain.model.engines.native.projected import project


class NativeEngine(Engine):
    """Calls the compiled library: float32 on the CPU."""

    name = "native"
    cells = (GRU,)
    reads_distinct = True

    @classmethod
    def why_not(cls, cell: Cell, device: torch.device, dtype: torch.dtype) -> str:
        """Return in one line why it can't run; as `Engine.why_not`."""
        absent = super().why_not(cell, device, dtype)
        if not absent and device.type != "cpu":
            absent = f"it has no kernels for {device.type}"
        if not absent and dtype != torch.float32:
            absent = f"native takes float32 alone, not {str(dtype).removeprefix('torch.')}"
        return absent or why_not()

    def run(
        self,
        encoder: nn.RNNBase,
        inputs: PackedSequence | DistinctInputs,
        start: Tensor | None = None,
        *,
        need_outputs: bool = True,
    ) -> tuple[Tensor | None, Tensor]:
        """Run all layers; as `Engine.run`."""
        assert isinstance(encoder, nn.GRU), "why_not lets no other cell through"
        h0 = None if start is None else start[0]
        outputs, h_n = native_gru(inputs, encoder, h0, need_outputs=need_outputs)
        return outputs, h_n.unsqueeze(0)

    def project(self, table: Tensor, encoder: nn.RNNBase) -> Projected:
        """Project a table once; as `Engine.project`."""
        assert isinstance(encoder, nn.GRU), "why_not lets no other cell through"
        return project(table, encoder)


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
    vectors = inputs.data if isinstance(inputs, PackedSequence) else inputs.table
    index = None if isinstance(inputs, PackedSequence) else inputs.index.contiguous()
    if isinstance(vectors, Tensor):
        vectors = vectors.to(torch.float32).contiguous()
    elif not isinstance(vectors, Projected):
        raise TypeError("inputs: projected for another engine than native")
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
