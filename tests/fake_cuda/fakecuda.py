"""A device named "cuda" in the CPU's memory, for torch's build without CUDA; see README.md.

Import this module, or run ``pytest -p fakecuda``, before anything imports torch: torch asks for its
CUDA library once, while it is imported. The module then changes ``torch.cuda`` for this process.
"""

import ctypes
import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

SOURCE = Path(__file__).with_name("device.cpp")
BUILD = Path(__file__).parents[2] / "build" / "fake_cuda"
"""Folder of compiled libraries, one per version of torch and of the source. Git ignores it."""


def library() -> ctypes.CDLL:
    """Compile the device if it isn't compiled yet, and load it."""
    found = importlib.util.find_spec("torch")
    assert found is not None, "torch isn't installed"
    torch_folder = Path(str(found.origin)).parent
    key = hashlib.sha256(SOURCE.read_bytes())
    key.update(f"{importlib.metadata.version('torch')} {sys.version}".encode())
    path = BUILD / f"device-{key.hexdigest()[:16]}.so"
    if not path.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            command = ["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", str(SOURCE)]
            command += [f"-I{torch_folder / 'include'}", f"-L{torch_folder / 'lib'}"]
            command += ["-ltorch_cpu", "-lc10", f"-Wl,-rpath,{torch_folder / 'lib'}"]
            subprocess.run([*command, "-o", f"{folder}/device.so"], check=True)
            os.replace(f"{folder}/device.so", path)
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


assert "torch" not in sys.modules, "import fakecuda before torch"
LIBRARY = library()
# Processes that this one starts, in whichever folder, import sitecustomize and so this module.
os.environ["FAKE_CUDA"] = "1"
os.environ["PYTHONPATH"] = f"{Path(__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"

import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.backends.cudnn import rnn as cudnn_rnn  # noqa: E402

for name in ("allocated", "peak", "launches", "waits"):
    getattr(LIBRARY, f"fake_cuda_{name}").restype = ctypes.c_int64
LIBRARY.fake_cuda_limit.argtypes = [ctypes.c_int64]
LIBRARY.fake_cuda_start()

TOTAL_MEMORY = 2**40
limit = TOTAL_MEMORY


class Recurrence(NamedTuple):
    """A call of cuDNN: type of number, whether TF32 was allowed, and whether input was packed."""

    dtype: torch.dtype
    tf32: bool
    packed: bool


recurrences: list[Recurrence] = []


def launches() -> int:
    """Return the number of kernels launched so far."""
    return int(LIBRARY.fake_cuda_launches())


def waits() -> int:
    """Return how often the host waited for the device so far."""
    return int(LIBRARY.fake_cuda_waits())


def limit_memory(size: int = TOTAL_MEMORY) -> None:
    """Set the bytes of memory that the device has. An allocation beyond it fails."""
    global limit
    limit = size
    LIBRARY.fake_cuda_limit(size)


# ---- torch.cuda ---------------------------------------------------------------------------------
SYNC_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(mode: int | str) -> None:
    LIBRARY.fake_cuda_sync_mode(SYNC_MODES.get(mode, mode))  # type: ignore[arg-type]


def synchronize(device: Any = None) -> None:
    torch.zeros((), device="cuda").item()  # a wait that counts


class Event:
    """An event of the device, as `torch.cuda.Event()` makes it."""

    def __new__(cls) -> Any:
        return torch.Event("cuda")


REPLACED = {
    "Event": Event,
    "_lazy_init": lambda: None,
    "_exchange_device": lambda index: int(LIBRARY.fake_cuda_set_device(index)),
    "_maybe_exchange_device": lambda index: int(LIBRARY.fake_cuda_set_device(index)),
    "is_available": lambda: True,
    "is_initialized": lambda: True,
    "is_bf16_supported": lambda including_emulation=True: True,
    "is_current_stream_capturing": lambda: False,
    "current_device": lambda: int(LIBRARY.fake_cuda_device()),
    "device_count": lambda: 2,
    "empty_cache": lambda: None,
    "get_device_capability": lambda device=None: (9, 0),
    "get_device_name": lambda device=None: "a device in the memory of the CPU",
    "get_device_properties": lambda device=None: SimpleNamespace(total_memory=limit),
    "max_memory_allocated": lambda device=None: int(LIBRARY.fake_cuda_peak()),
    "mem_get_info": lambda device=None: (limit - int(LIBRARY.fake_cuda_allocated()), limit),
    "memory_allocated": lambda device=None: int(LIBRARY.fake_cuda_allocated()),
    "reset_peak_memory_stats": lambda device=None: LIBRARY.fake_cuda_reset_peak(),
    "set_device": lambda device: LIBRARY.fake_cuda_set_device(torch.device(device).index or 0),
    "set_sync_debug_mode": set_sync_debug_mode,
    "synchronize": synchronize,
}
for name, replacement in REPLACED.items():
    setattr(torch.cuda, name, replacement)
torch.backends.cudnn.is_acceptable = lambda tensor: tensor.is_cuda
cudnn_rnn.get_cudnn_mode = {"RNN_RELU": 0, "RNN_TANH": 1, "LSTM": 2, "GRU": 3}.__getitem__

copy_of_host_tensor = Tensor.__deepcopy__


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """Copy a tensor as torch does; torch's own way asks for the device's Python storage."""
    if not self.is_cuda or self.is_sparse:
        return copy_of_host_tensor(self, memo)
    assert self.is_leaf, "only tensors created by the user support deepcopy"
    if id(self) not in memo:
        copied = self.detach().clone()
        if isinstance(self, torch.nn.Parameter):
            copied = torch.nn.Parameter(copied)
        memo[id(self)] = copied.requires_grad_(self.requires_grad)
    return memo[id(self)]


Tensor.__deepcopy__ = deepcopy

# ---- Recurrences: cuDNN's checks, computed by torch on the CPU ----------------------------------
FUNCTIONS = {1: torch.rnn_tanh, 2: torch.lstm, 3: torch.gru}
worker = ThreadPoolExecutor(1)


def in_another_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a kernel where neither autograd nor autocast is active, and copies aren't counted."""

    def uncounted(arguments: tuple[Any, ...]) -> Any:
        LIBRARY.fake_cuda_count(0)
        try:
            return function(*arguments)
        finally:
            LIBRARY.fake_cuda_count(1)

    @wraps(function)
    def run(*arguments: Any) -> Any:
        return worker.submit(uncounted, arguments).result()

    return run


def in_order(weights: list[Tensor]) -> list[Tensor]:
    """Return weights in the order in which cuDNN's buffer has them: matrices, then biases."""
    layers = [weights[first : first + 4] for first in range(0, len(weights), 4)]
    return [w for layer in layers for w in layer[:2]] + [w for layer in layers for w in layer[2:]]


def is_one_buffer(weights: list[Tensor]) -> bool:
    place = weights[0].untyped_storage().data_ptr()
    for weight in in_order(weights):
        if weight.data_ptr() != place:
            return False
        place += weight.nbytes
    return True


def require(condition: object, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def rounded(x: Tensor) -> Tensor:
    """Round float32 to the 10 bits of mantissa that TF32 has."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


class Operands:
    """Operands of one call of cuDNN, as float32 or float64 on the CPU."""

    def __init__(self, x: Tensor, weights: list[Tensor], hx: Tensor, cx: Tensor | None) -> None:
        states = [hx] if cx is None else [hx, cx]
        for other in (*states, *weights):
            require(other.device == x.device, f"rnn: tensors on {x.device} and {other.device}")
            require(other.dtype == x.dtype, f"rnn: tensors of {x.dtype} and {other.dtype}")
        require(all(s.is_contiguous() for s in states), "rnn: hx is not contiguous")
        allowed = torch.backends.cudnn.rnn.fp32_precision == "tf32"
        tf32 = x.dtype == torch.float32 and allowed
        kind = x.dtype if x.dtype == torch.float64 else torch.float32
        values = [t.detach().cpu().to(kind) for t in (x, *states, *weights)]
        # Real kernels are chosen by shape: here one sequence has another one than several.
        operands = [rounded(t) for t in values] if tf32 and hx.shape[1] > 1 else values
        self.tf32 = tf32
        self.x = operands[0].requires_grad_()
        self.states = [s.requires_grad_() for s in operands[1 : 1 + len(states)]]
        self.weights = [w.requires_grad_() for w in operands[1 + len(states) :]]

    def run(self, mode: int, layers: int, first: bool, both: bool, sizes: list[int]) -> list[Any]:
        state = self.states if mode == 2 else self.states[0]
        options = (len(self.weights) // layers // (1 + both) == 4, layers, 0.0, False, both)
        if sizes:
            results = FUNCTIONS[mode](self.x, torch.tensor(sizes), state, self.weights, *options)
        else:
            results = FUNCTIONS[mode](self.x, state, self.weights, *options, first)
        return list(results)


@in_another_thread
def forward(
    x: Tensor, weights: list[Tensor], stride: int, buffer: Tensor | None, hx: Tensor,
    cx: Tensor | None, mode: int, hidden: int, projection: int, layers: int, first: bool,
    dropout: float, train: bool, both: bool, sizes: list[int], dropout_state: Tensor | None,
) -> tuple[Tensor, ...]:  # fmt: skip
    operands = Operands(x, weights, hx, cx)
    recurrences.append(Recurrence(x.dtype, operands.tf32, bool(sizes)))
    if not is_one_buffer(weights):
        warnings.warn("RNN module weights are not part of single contiguous chunk", stacklevel=1)
    with torch.no_grad():
        results = operands.run(mode, layers, first, both, list(sizes))
    output, *states = (result.to(x.dtype).to(x.device) for result in results)
    nothing = x.new_empty(0)
    reserve = x.new_ones(int(train), dtype=torch.uint8)
    return output, states[0], nothing if cx is None else states[1], reserve, nothing.clone()


@in_another_thread
def backward(
    x: Tensor, weights: list[Tensor], stride: int, buffer: Tensor, hx: Tensor, cx: Tensor | None,
    output: Tensor, d_output: Tensor | None, d_hy: Tensor | None, d_cy: Tensor | None, mode: int,
    hidden: int, projection: int, layers: int, first: bool, dropout: float, train: bool,
    both: bool, sizes: list[int], dropout_state: Tensor | None, reserve: Tensor, mask: list[bool],
) -> tuple[Any, ...]:  # fmt: skip
    require(train and len(reserve), "cudnn RNN backward can only be called in training mode")
    operands = Operands(x, weights, hx, cx)
    results = operands.run(mode, layers, first, both, list(sizes))
    gradients = zip(results, (d_output, d_hy, d_cy)[: len(results)], strict=True)
    due = [(result, d.cpu().to(result.dtype)) for result, d in gradients if d is not None]
    inputs = [operands.x, *operands.states, *operands.weights]
    outputs, arriving = zip(*due, strict=True)
    found = torch.autograd.grad(outputs, inputs, arriving, materialize_grads=True)
    on_device = [d.to(x.dtype).to(x.device) for d in found]
    states = len(operands.states)
    d_cx = on_device[2] if states > 1 else x.new_empty(0)
    return on_device[0], on_device[1], d_cx, on_device[1 + states :]


def flatten(weights: list[Tensor], *shape: Any) -> Tensor:
    """Move weights into one buffer; they become views of it."""
    copies = flattened_copies(weights)
    for weight, copied in zip(weights, copies, strict=True):
        weight.set_(copied)
    return copies[0]._base


def autocast_forward(x: Tensor, weights: list[Tensor], *others: Any) -> tuple[Tensor, ...]:
    """Compute in float16, whatever type autocast has: so does torch's AutocastRNN.cpp."""
    stride, _, hx, cx, *options = others
    x, hx, cx, *weights = (t if t is None else t.half() for t in (x, hx, cx, *weights))
    excluded = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)
    with torch._C._ExcludeDispatchKeyGuard(excluded):
        results: tuple[Tensor, ...] = torch.ops.aten._cudnn_rnn(
            x, flattened_copies(weights), stride, None, hx, cx, *options
        )
    return results


def flattened_copies(weights: list[Tensor]) -> list[Tensor]:
    """Return the same weights as views of one buffer."""
    ordered = in_order(weights)
    flat = torch.cat([weight.reshape(-1) for weight in ordered])
    pieces = flat.split([weight.numel() for weight in ordered])
    views = {id(old): new.view(old.shape) for old, new in zip(ordered, pieces, strict=True)}
    return [views[id(weight)] for weight in weights]


@in_another_thread
def batch_norm(
    x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, train: bool,
    momentum: float, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Normalise, and change the running statistics: torch's schema hides that it does."""
    on_host = [None if t is None else t.detach().cpu() for t in (x, weight, bias, mean, variance)]
    results = torch.native_batch_norm(*on_host, train, momentum, eps)  # type: ignore[arg-type]
    for before, after in zip((mean, variance), on_host[3:], strict=True):
        if train and before is not None:
            before.data.copy_(after)
    return tuple(result.to(x.device) for result in results)


CUDA = torch.library.Library("aten", "IMPL", "CUDA")
CUDA.impl("_cudnn_rnn", forward)
CUDA.impl("_cudnn_rnn_backward", backward)
CUDA.impl("_cudnn_rnn_flatten_weight", flatten)
CUDA.impl("native_batch_norm", batch_norm)
AUTOCAST = torch.library.Library("aten", "IMPL", "AutocastCUDA")
AUTOCAST.impl("_cudnn_rnn", autocast_forward)
