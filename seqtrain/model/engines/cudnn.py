"""Calls of torch's recurrent kernels on an accelerator.

On CUDA, cuDNN computes the kernels if the types and the weights meet its conditions.

B batch, N packed time steps, T longest length, E input size. H hidden size, D directions, S tensors
of a state: 1 (h), or 2 (h and c of an LSTM).
"""

from collections.abc import Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from seqtrain.model.cells import Cell, as_torch_takes


def run_kernel(
    cell: Cell,
    data: Tensor,
    batch_sizes: Tensor | None,
    start: Tensor,
    weights: Sequence[Tensor],
) -> tuple[Tensor, Tensor]:
    """Run one recurrent layer, with one direction or both, on an accelerator, without dropout.

    Under autocast on CUDA, the type of autocast is used, or float32 if cuDNN lacks kernels for this
    type. Autocast itself is switched off for the call, because it would always use float16.

    Args:
        cell: Recurrent cell.
        data: Inputs, packed or padded.
        batch_sizes: Number of sequences at each time step, on the CPU, or None if `data` is padded.
        start: Initial states.
        weights: Parameters of the layer: w_ih, w_hh, b_ih, b_hh of the forward direction, then of
            the backward direction if there is one.

    Shape:
        data: packed (N, E), or padded (B, T, E). batch_sizes: (T,). start: (S, D, B, H).
        Returns: states, packed (N, D * H) or padded (B, T, D * H), and last states (S, D, B, H).
    """
    device = data.device.type
    lowered = device == "cuda" and torch.is_autocast_enabled(device)
    dtype = _autocast_dtype(data) if lowered else data.dtype
    with torch.autocast(device, enabled=False) if lowered else nullcontext():
        state = as_torch_takes(start.to(dtype).contiguous())
        flat = in_one_buffer(weights, dtype)
        # Biases, one layer, no dropout, keep what the backward pass needs, one direction or two.
        options = (True, 1, 0.0, torch.is_grad_enabled(), len(weights) > 4)
        if batch_sizes is None:
            states, *last = cell.kernel(data.to(dtype), state, flat, *options, True)
        else:
            states, *last = cell.kernel(data.to(dtype), batch_sizes, state, flat, *options)
    return states, torch.stack(last)


def in_one_buffer(weights: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    """Return a layer's weights in a type, as views of one buffer in the layout of cuDNN.

    Without such a buffer, torch copies the weights at each call, and warns. Weights that share a
    buffer of this type already aren't copied. Outside CUDA, only the type is converted.

    Args:
        weights: Parameters of the layer, as for `run_kernel`. The result has the same order.
        dtype: Type of the result.
    """
    ordered = [w for i in range(0, len(weights), 4) for w in weights[i : i + 2]]
    ordered += [w for i in range(0, len(weights), 4) for w in weights[i + 2 : i + 4]]
    if weights[0].device.type != "cuda" or _share_buffer(ordered, dtype):
        return [w.to(dtype) for w in weights]
    flat = torch.cat([w.flatten() for w in ordered]).to(dtype)
    parts = flat.split_with_sizes([w.numel() for w in ordered])
    views = {id(w): part.view(w.shape) for w, part in zip(ordered, parts, strict=True)}
    return [views[id(w)] for w in weights]


def _share_buffer(ordered: Sequence[Tensor], dtype: torch.dtype) -> bool:
    """Return True if tensors have this type and fill one storage in this order, without gaps."""
    place = ordered[0].untyped_storage().data_ptr()
    for weight in ordered:
        if weight.dtype != dtype or weight.data_ptr() != place:
            return False
        place += weight.nbytes
    return True


def _autocast_dtype(data: Tensor) -> torch.dtype:
    """Return the type of autocast on CUDA, or float32 if cuDNN doesn't support this type."""
    asked = torch.get_autocast_dtype("cuda")
    return asked if torch.cudnn_is_acceptable(data.new_empty(1, dtype=asked)) else torch.float32
