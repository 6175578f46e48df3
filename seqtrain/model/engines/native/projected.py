"""A table of vectors projected once, for the many batches that a prediction reads from it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqtrain.model.engines.native.call import (
    Projected,
    Reading,
    address,
    allows_bfloat16,
    describe,
    layer_parameters,
)
from seqtrain.model.engines.native.checks import check_parameters, check_vectors
from seqtrain.model.engines.native.library import load_library


@torch.no_grad()
def project(table: Tensor, gru: nn.GRU) -> Projected:
    """Multiply every row of a table by the input weights of a GRU's first layer.

    Args:
        table: the vectors, such as the weight of an embedding.
        gru: owner of the parameters.

    Shape:
        table (U, E): U distinct vectors of the GRU's input size E.

    Returns:
        What `DistinctInputs.table` may be in a `native_gru` without gradients.

    Raises:
        RuntimeError: the native library isn't there.
        TypeError: a tensor of another type or device than the library's.
        ValueError: sizes that don't fit.
    """
    library = load_library()
    check_parameters(gru)
    check_vectors(table, gru)
    reading = Reading(
        vectors=table.contiguous(),
        index=torch.zeros(1, dtype=torch.int64),  # tokens share vectors; none of them is read here
        batch_sizes=torch.ones(1, dtype=torch.int64),
        h0=None,
        tokens=1,
        batch=1,
        threads=torch.get_num_threads(),
        bfloat16=allows_bfloat16(),
    )
    parameters = layer_parameters(gru, 0)
    rows = []
    for direction in range(len(parameters) // 4):
        rows.append(table.new_empty(len(table), library.projected_row(gru.hidden_size)))
        call = describe(reading, parameters, direction)
        call.projected = address(rows[-1])
        scratch = table.new_empty(library.scratch(call, 0) // 4)
        call.scratch = address(scratch)
        library.project(call)
    return Projected(tuple(rows), gru.input_size, gru.hidden_size)
