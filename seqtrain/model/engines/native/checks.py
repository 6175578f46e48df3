"""What must hold before native code sees a tensor: types, devices, sizes, ranges."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqtrain.model.cells import PARAMETERS, cell_of
from seqtrain.model.engines.native.call import Projected


def check_parameters(encoder: nn.RNNBase) -> None:
    """Check the parameters of an encoder, and that it is one of those that the library has.

    Raises:
        TypeError: not float32 on the CPU.
        ValueError: another shape than the encoder's sizes say, or an option of torch's modules
            that the library hasn't.
    """
    if encoder.proj_size or encoder.mode == "RNN_RELU":
        raise ValueError(f"{encoder}: the native engine has neither proj_size nor relu")
    directions, gates = 2 if encoder.bidirectional else 1, cell_of(encoder).gates
    for number, weights in enumerate(encoder.all_weights):
        layer, reverse = divmod(number, directions)
        columns = directions * encoder.hidden_size if layer else encoder.input_size
        shapes = [(columns,), (encoder.hidden_size,), (), ()]
        for name, parameter, rest in zip(PARAMETERS, weights, shapes, strict=False):
            name = f"{name}_l{layer}{'_reverse' if reverse else ''}"
            check_type(name, parameter, torch.float32)
            shape = (gates * encoder.hidden_size, *rest)
            if parameter.shape != shape:
                raise ValueError(f"{name}: shape {tuple(parameter.shape)}, must be {shape}")


def check_vectors(vectors: Tensor | Projected, encoder: nn.RNNBase) -> None:
    """Check what the first layer reads.

    Raises:
        TypeError: not float32 on the CPU.
        ValueError: not vectors of the encoder's input size, or projected for another encoder.
    """
    if isinstance(vectors, Projected):
        found = (vectors.cell.name, vectors.input_size, vectors.hidden_size, len(vectors.rows))
        directions = 2 if encoder.bidirectional else 1
        ours = (cell_of(encoder).name, encoder.input_size, encoder.hidden_size, directions)
        if found != ours:
            raise ValueError(
                f"inputs: projected for (cell, input size, hidden size, directions) {found}, "
                f"must be {ours}; project again"
            )
        return
    check_type("inputs", vectors, torch.float32)
    if vectors.dim() != 2 or vectors.shape[1] != encoder.input_size:
        raise ValueError(
            f"inputs: shape {tuple(vectors.shape)}, must be (tokens, {encoder.input_size})"
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


def check_start(start: Tensor, encoder: nn.RNNBase, batch: int) -> None:
    """Check initial states.

    Raises:
        TypeError: not float32 on the CPU.
        ValueError: another shape than (parts, layers * directions, batch, hidden).
    """
    check_type("start", start, torch.float32)
    layers = encoder.num_layers * (2 if encoder.bidirectional else 1)
    shape = (cell_of(encoder).parts, layers, batch, encoder.hidden_size)
    if start.shape != shape:
        raise ValueError(f"start: shape {tuple(start.shape)}, must be {shape}")


def check_type(name: str, tensor: Tensor, dtype: torch.dtype) -> None:
    """Check that a tensor is what the library reads: of this type, strided, on the CPU.

    Raises:
        TypeError: it isn't.
    """
    if tensor.dtype != dtype or not tensor.is_cpu or tensor.layout != torch.strided:
        raise TypeError(
            f"{name}: {tensor.dtype} on {tensor.device}, the native engine takes {dtype} on cpu"
        )
