"""What must hold before native code sees a tensor: types, devices, sizes, ranges."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqtrain.model.cells import PARAMETERS
from seqtrain.model.engines.native.call import Projected


def check_parameters(gru: nn.GRU) -> None:
    """Check the parameters of a GRU.

    Raises:
        TypeError: not float32 on the CPU.
        ValueError: another shape than the GRU's sizes say.
    """
    directions = 2 if gru.bidirectional else 1
    for number, weights in enumerate(gru.all_weights):
        layer, reverse = divmod(number, directions)
        columns = directions * gru.hidden_size if layer else gru.input_size
        shapes = [(columns,), (gru.hidden_size,), (), ()]
        for name, parameter, rest in zip(PARAMETERS, weights, shapes, strict=False):
            name = f"{name}_l{layer}{'_reverse' if reverse else ''}"
            check_type(name, parameter, torch.float32)
            shape = (3 * gru.hidden_size, *rest)
            if parameter.shape != shape:
                raise ValueError(f"{name}: shape {tuple(parameter.shape)}, must be {shape}")


def check_vectors(vectors: Tensor | Projected, gru: nn.GRU) -> None:
    """Check what the first layer reads.

    Raises:
        TypeError: not float32 on the CPU.
        ValueError: not vectors of the GRU's input size, or projected for a GRU of other sizes.
    """
    if isinstance(vectors, Projected):
        found = (vectors.input_size, vectors.hidden_size, len(vectors.rows))
        sizes = (gru.input_size, gru.hidden_size, 2 if gru.bidirectional else 1)
        if found != sizes:
            raise ValueError(
                f"inputs: projected for (input size, hidden size, directions) {found}, "
                f"must be {sizes}; project again"
            )
        return
    check_type("inputs", vectors, torch.float32)
    if vectors.dim() != 2 or vectors.shape[1] != gru.input_size:
        raise ValueError(
            f"inputs: shape {tuple(vectors.shape)}, must be (tokens, {gru.input_size})"
        )


def check_tokens(batch_sizes: Tensor, index: Tensor | None, vectors: int) -> tuple[int, int]:
    """Check where packed tokens stand, and which of the vectors each is.

    Returns:
        The numbers of tokens and of sequences.

    Raises:
        TypeError: another type or device than the library takes.
        ValueError: sizes that don't fit, or an index outside the table.
    """
    check_type("batch_sizes", batch_sizes, torch.int64)
    if batch_sizes.dim() != 1 or not batch_sizes.shape[0]:
        raise ValueError(f"batch_sizes: shape {tuple(batch_sizes.shape)}, must be (steps,)")
    sizes: list[int] = batch_sizes.tolist()
    if sizes[-1] < 1 or sizes != sorted(sizes, reverse=True):
        raise ValueError("batch_sizes: must be positive and never grow (longest sequence first)")
    tokens = sum(sizes)
    if index is None and tokens != vectors:
        raise ValueError(f"batch_sizes: sum is {tokens}, but {vectors} tokens")
    if index is None:
        return tokens, sizes[0]
    check_type("index", index, torch.int64)
    if index.shape != (tokens,):
        raise ValueError(
            f"index: shape {tuple(index.shape)}, but batch_sizes: sum is {tokens} tokens"
        )
    low, high = (int(bound) for bound in index.aminmax())
    if low < 0 or high >= vectors:
        raise ValueError(f"index: {low} to {high}, must be 0 to {vectors - 1}")
    return tokens, sizes[0]


def check_start(h0: Tensor, gru: nn.GRU, batch: int) -> None:
    """Check initial states.

    Raises:
        TypeError: not float32 on the CPU.
        ValueError: another shape than (layers * directions, batch, hidden).
    """
    check_type("h0", h0, torch.float32)
    directions = 2 if gru.bidirectional else 1
    shape = (gru.num_layers * directions, batch, gru.hidden_size)
    if h0.shape != shape:
        raise ValueError(f"h0: shape {tuple(h0.shape)}, must be {shape}")


def check_type(name: str, tensor: Tensor, dtype: torch.dtype) -> None:
    """Check that a tensor is what the library reads: of this type, strided, on the CPU.

    Raises:
        TypeError: it isn't.
    """
    if tensor.dtype != dtype or tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise TypeError(
            f"{name}: {tensor.dtype} on {tensor.device}, the native engine takes {dtype} on cpu"
        )
