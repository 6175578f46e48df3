"""A table of vectors projected once, for the many batches that a prediction reads from it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqtrain.model.cells import cell_of
from seqtrain.model.engines.native.buffers import address, new
from seqtrain.model.engines.native.call import (
    Projected,
    Reading,
    allows_bfloat16,
    describe,
    layer_parameters,
)
from seqtrain.model.engines.native.checks import check_parameters, check_vectors
from seqtrain.model.engines.native.library import KINDS, load_library


@torch.no_grad()
def project(table: Tensor, encoder: nn.RNNBase) -> Projected:
    """Multiply every row of a table by the input weights of an encoder's first layer.

    Args:
        table: the vectors, such as the weight of an embedding.
        encoder: owner of the parameters.

    Shape:
        table (U, E): U distinct vectors of the encoder's input size E.

    Returns:
        What `DistinctInputs.table` may be in a `run_stack` without gradients.

    Raises:
        RuntimeError: the native library isn't there.
        TypeError: a tensor of another type or device than the library's.
        ValueError: sizes that don't fit.
    """
    library = load_library()
    check_parameters(encoder)
    check_vectors(table, encoder)
    reading = Reading(
        cell=cell_of(encoder),
        vectors=table.contiguous(),
        index=new(1, dtype=torch.int64).zero_(),  # tokens share vectors; none of them is read here
        batch_sizes=new(1, dtype=torch.int64).fill_(1),
        start=None,
        tokens=1,
        batch=1,
        threads=torch.get_num_threads(),
        bfloat16=allows_bfloat16(),
    )
    parameters = layer_parameters(encoder, 0)
    columns = library.projected_row(KINDS[reading.cell], encoder.hidden_size)
    rows = []
    for direction in range(len(parameters) // 4):
        rows.append(new(len(table), columns))
        call = describe(reading, parameters, direction)
        call.projected = address(rows[-1])
        scratch = new(library.scratch(call, 0) // 4)
        call.scratch = address(scratch)
        library.project(call)
    return Projected(reading.cell, tuple(rows), encoder.input_size, encoder.hidden_size)
