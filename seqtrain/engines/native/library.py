"""The compiled library of the native engine: loading, and its C interface in ctypes."""

import ctypes
import functools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from seqtrain.engines.cells import GRU, LSTM, RNN, Cell
from seqtrain.engines.native.build import LIBRARY, sources_digest

VARIABLE = "SEQTRAIN_NATIVE"
"""Environment variable that forces a set of vector instructions, or switches the library off."""
CHOICES = ("auto", "avx512", "avx2", "portable", "neon", "off")
"""Values of the variable. With avx512 and neon, matrix products can round to bfloat16."""
CELL_KINDS: dict[Cell, int] = {GRU: 0, LSTM: 1, RNN: 2}
"""Maps each cell that the library computes to its number in `enum CellKind` of interface.h."""
ALLOCATOR_OPTIONS = ((-4, 0), (-1, 2**31 - 1))
"""glibc's M_MMAP_MAX and M_TRIM_THRESHOLD. Freed memory is kept, because new pages are slow."""

_POINTER, _NUMBER, _REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


def _fields(kind: Any, names: str) -> tuple[tuple[str, Any], ...]:
    return tuple((name, kind) for name in names.split())


class LayerCall(ctypes.Structure):
    """Arguments of the functions for one recurrent layer and direction.

    The fields equal the fields of `struct LayerCall` in interface.h. Pointers are memory addresses.
    """

    _fields_ = (
        *_fields(_NUMBER, "cell threads reverse tokens steps batch vectors"),
        *_fields(_NUMBER, "input_size hidden_size states_stride"),
        *_fields(_POINTER, "batch_sizes index vectors_in w_ih w_hh b_ih b_hh h0 c0"),
        *_fields(_POINTER, "states gates last last_c"),
        *_fields(_POINTER, "scratch d_states d_last d_last_c d_vectors"),
        *_fields(_NUMBER, "add_d_vectors"),
        *_fields(_POINTER, "d_w_ih d_w_hh d_b_ih d_b_hh d_h0 d_c0"),
    )


class Weight(ctypes.Structure):
    """A weight with its gradient and its state of Adam, for one update.

    The fields equal the fields of `struct Weight` in interface.h.
    """

    _fields_ = (
        *_fields(_NUMBER, "rows row_size touched"),
        *_fields(_POINTER, "which gradient weight mean square step"),
        *_fields(_REAL, "decay l2"),
    )


class Update(ctypes.Structure):
    """Arguments of the function that updates all weights by Adam.

    The fields equal the fields of `struct Update` in interface.h.
    """

    _fields_ = (
        *_fields(_NUMBER, "threads count"),
        ("weights", ctypes.POINTER(Weight)),
        *_fields(_REAL, "lr beta1 beta2 eps limit"),
    )


class RowSums(ctypes.Structure):
    """Arguments of the functions for weighted sums of rows of a table.

    The fields equal the fields of `struct RowSums` in interface.h.
    """

    _fields_ = (
        *_fields(_NUMBER, "threads of sums rows width"),
        *_fields(_POINTER, "offsets chosen which weights table totals place"),
    )


class PoolCall(ctypes.Structure):
    """Arguments of the functions for pooling.

    The fields equal the fields of `struct PoolCall` in interface.h.
    """

    _fields_ = (
        *_fields(_NUMBER, "threads tokens steps batch width size"),
        *_fields(_POINTER, "batch_sizes states w b v hidden weights pooled scratch"),
        *_fields(_POINTER, "d_pooled d_states d_w d_b d_v"),
    )


class TreeCall(ctypes.Structure):
    """Arguments of the function that grows a tree.

    The fields equal the fields of `struct TreeCall` in interface.h.
    """

    _fields_ = (
        *_fields(_NUMBER, "threads rows used depth"),
        *_fields(_POINTER, "bins columns gradient hessian column last place scratch"),
        *_fields(_REAL, "least_rows ridge least_gain"),
    )


_function: Any = ctypes.CFUNCTYPE
_CALL, _UPDATE, _SUMS, _POOL, _TREE = map(
    ctypes.POINTER, (LayerCall, Update, RowSums, PoolCall, TreeCall)
)


class Kernels(ctypes.Structure):
    """Table of the library's functions for one vector path.

    The fields equal the fields of `struct Kernels` in interface.h.
    """

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("gate_row", _function(_NUMBER, _NUMBER, _NUMBER)),
        ("scratch", _function(_NUMBER, _CALL, ctypes.c_int)),
        *_fields(_function(None, _CALL), "forward backward"),
        ("adam", _function(ctypes.c_float, _UPDATE)),
        ("sum_rows", _function(_NUMBER, _SUMS)),
        ("summed_rows", _function(_NUMBER, _SUMS, _POINTER)),
        ("add_to_rows", _function(None, _SUMS)),
        (
            "drop",
            _function(
                *(None, ctypes.c_uint64, _POINTER, _POINTER, *(_NUMBER,) * 3),
                *(ctypes.c_float, _POINTER, _POINTER),
            ),
        ),
        ("pool_scratch", _function(_NUMBER, _POOL)),
        *_fields(_function(None, _POOL), "pool pool_back"),
        ("grow_tree", _function(None, _TREE)),
    )


class Library(SimpleNamespace):
    """The compiled functions for one vector path: a set of vector instructions such as avx2.

    Each field of `Kernels` is an attribute. The functions release Python's global lock while they
    run. ``gate_row(cell, hidden_size)`` returns the number of floats that forward saves for each
    time step of a sequence.

    Attributes:
        rounding: a `Library` whose matrix products round their factors to bfloat16. If the
            processor has no such products, the attribute is this library itself.
    """

    def __init__(self, kernels: Kernels) -> None:
        super().__init__(**{name: getattr(kernels, name) for name, *_ in Kernels._fields_})
        self.rounding = self


def _open(path: Path, path_name: str) -> Library:
    """Load the library from a file, and check it.

    Under glibc, also make the process keep freed memory; see `ALLOCATOR_OPTIONS`.

    Args:
        path: the compiled file.
        path_name: vector path, one of `CHOICES` except "off".

    Raises:
        OSError: If the file can't be loaded, was built from other sources, or lacks the path.
    """
    library = ctypes.CDLL(str(path))
    library.seqtrain_sources.restype = ctypes.c_char_p
    if library.seqtrain_sources().decode() != sources_digest():
        raise OSError("it was built from other sources: reinstall seqtrain")
    find = library.seqtrain_find
    find.restype = ctypes.POINTER(Kernels)
    found, rounding = (find(path_name.encode(), _NUMBER(rounds)) for rounds in (0, 1))
    if not found:
        raise OSError(f"{VARIABLE}={path_name}: this processor has no {path_name}")
    process = ctypes.CDLL(None)
    for option, value in ALLOCATOR_OPTIONS if hasattr(process, "mallopt") else ():
        process.mallopt(option, value)
    kernels = Library(found.contents)
    if rounding.contents.name != found.contents.name:
        kernels.rounding = Library(rounding.contents)
    return kernels


@functools.cache
def find_library() -> Library | str:
    """Load the compiled library once and return it, or return the reason why it can't be used.

    The environment variable `VARIABLE` is read at the first call only.
    """
    path_name = os.environ.get(VARIABLE, "auto")
    if path_name not in CHOICES:
        return f"{VARIABLE}={path_name}: must be one of {', '.join(CHOICES)}"
    if path_name == "off":
        return f"the native engine is switched off ({VARIABLE}=off)"
    path = Path(__file__).parent / LIBRARY
    if not path.exists():
        return (
            "the native engine isn't built: "
            "install a C++ compiler (g++ or clang++), then reinstall seqtrain"
        )
    try:
        return _open(path, path_name)
    except OSError as error:
        return f"the native engine doesn't load: {error}"


def why_unavailable() -> str:
    """Return the reason why the library can't be used, or an empty string if it can."""
    library = find_library()
    if isinstance(library, str):
        return library
    return ""


def vector_path() -> str:
    """Return the vector path in use: avx512, avx2, portable or neon; "none" without a library."""
    library = find_library()
    if isinstance(library, str):
        return "none"
    name: bytes = library.name
    return name.decode()


def load_library() -> Library:
    """Return the compiled library, or under autocast to bfloat16 its variant `rounding`.

    Raises:
        RuntimeError: If it can't be used.
    """
    library = find_library()
    if isinstance(library, str):
        raise RuntimeError(library)
    lowered = torch.is_autocast_enabled("cpu")
    lowered = lowered and torch.get_autocast_dtype("cpu") == torch.bfloat16
    if lowered:
        return library.rounding
    return library


def new(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return an uninitialized tensor of this shape, always on the CPU."""
    return torch.empty(shape, dtype=dtype, device="cpu")


def address(tensor: Tensor | None, offset: int = 0, *, dtype: torch.dtype = torch.float32) -> int:
    """Return the address of an element of a tensor, or 0 (null) if the tensor is None.

    Args:
        tensor: the tensor, or None.
        offset: index of the element in the flattened tensor, which isn't checked.
        dtype: type that the tensor must have.

    Raises:
        TypeError: If the tensor isn't contiguous, isn't on the CPU, or has another type.
    """
    if tensor is None:
        return 0
    if tensor.dtype != dtype or not tensor.is_cpu or not tensor.is_contiguous():
        contiguous = "" if tensor.is_contiguous() else ", not contiguous"
        raise TypeError(
            f"{tensor.dtype} on {tensor.device}{contiguous}: the native engine takes contiguous "
            f"{dtype} on cpu"
        )
    return tensor.data_ptr() + offset * dtype.itemsize
