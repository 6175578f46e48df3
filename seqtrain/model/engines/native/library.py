"""The compiled library: found, checked and loaded once; the C interface as ctypes sees it."""

import ctypes
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqtrain.model.cells import GRU, LSTM, RNN, Cell
from seqtrain.model.engines.native.build import LIBRARY, sources_digest

VARIABLE = "SEQTRAIN_NATIVE"
"""Environment variable that forces a vector path, or off."""
CHOICES = ("auto", "avx512", "avx2", "portable", "neon", "off")
"""Products in bfloat16 belong to avx512 and neon."""
KINDS: dict[Cell, int] = {GRU: 0, LSTM: 1, RNN: 2}
"""The cells that the library has, by `enum CellKind` of interface.h."""
OPENMP = ("GOMP_parallel", "GOMP_barrier", "omp_get_thread_num", "omp_get_num_threads")
"""Functions of `Threads`, as the OpenMP libraries of GCC, LLVM and Intel name them."""

_POINTER, _NUMBER, _REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


def _fields(kind: Any, names: str) -> tuple[tuple[str, Any], ...]:
    return tuple((name, kind) for name in names.split())


class LayerCall(ctypes.Structure):
    """`struct LayerCall` of interface.h, field by field; pointers are addresses, None is null."""

    _fields_ = (
        *_fields(_NUMBER, "cell threads bfloat16 reverse tokens steps batch vectors"),
        *_fields(_NUMBER, "input_size hidden_size states_stride"),
        *_fields(_POINTER, "batch_sizes index vectors_in w_ih w_hh b_ih b_hh h0 c0"),
        *_fields(_POINTER, "projected states gates last last_c"),
        *_fields(_POINTER, "scratch d_states d_last d_last_c d_vectors"),
        *_fields(_NUMBER, "add_d_vectors"),
        *_fields(_POINTER, "d_w_ih d_w_hh d_b_ih d_b_hh d_h0 d_c0"),
    )


class Weight(ctypes.Structure):
    """`struct Weight` of interface.h, field by field."""

    _fields_ = (
        *_fields(_NUMBER, "rows row_size touched"),
        *_fields(_POINTER, "which gradient weight mean square step"),
        *_fields(_REAL, "decay l2"),
    )


class Update(ctypes.Structure):
    """`struct Update` of interface.h, field by field."""

    _fields_ = (
        *_fields(_NUMBER, "threads count"),
        ("weights", ctypes.POINTER(Weight)),
        *_fields(_REAL, "lr beta1 beta2 eps scale"),
    )


class RowSums(ctypes.Structure):
    """`struct RowSums` of interface.h, field by field."""

    _fields_ = (
        *_fields(_NUMBER, "threads of sums rows width"),
        *_fields(_POINTER, "offsets chosen which weights table totals place"),
    )


class PoolCall(ctypes.Structure):
    """`struct PoolCall` of interface.h, field by field."""

    _fields_ = (
        *_fields(_NUMBER, "threads bfloat16 tokens steps batch width size"),
        *_fields(_POINTER, "batch_sizes states w b v hidden weights pooled scratch"),
        *_fields(_POINTER, "d_pooled d_states d_w d_b d_v"),
    )


class Threads(ctypes.Structure):
    """`struct Threads` of interface.h, field by field."""

    _fields_ = _fields(_POINTER, "parallel barrier number of")


class Library:
    """The library's functions; they release Python's lock while they run.

    Given the kind of cell and the hidden size, gate_row and projected_row are how many numbers
    forward saves for a token, and a projected vector has. An OSError says why it can't be used.
    """

    def __init__(self, path: Path, wanted: str) -> None:
        library = ctypes.CDLL(str(path))

        def declared(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
            function: Any = getattr(library, f"seqtrain_{name}")
            function.restype, function.argtypes = result, arguments
            return function  # type: ignore[no-any-return]

        if declared("sources", ctypes.c_char_p)().decode() != sources_digest():
            raise OSError("it was built from other sources: reinstall seqtrain")
        chosen = declared("choose", ctypes.c_char_p, ctypes.c_char_p)(wanted.encode())
        if chosen is None:
            raise OSError(f"{VARIABLE}={wanted}: this processor has no {wanted}")
        self.vector_path: str = chosen.decode()
        self.has_bfloat16 = bool(declared("has_bfloat16", _NUMBER)())
        call, update = ctypes.POINTER(LayerCall), ctypes.POINTER(Update)
        self.gate_row = functools.cache(declared("gate_row", _NUMBER, _NUMBER, _NUMBER))
        self.projected_row = declared("projected_row", _NUMBER, _NUMBER, _NUMBER)
        self.scratch = declared("scratch", _NUMBER, call, ctypes.c_int)
        self.project, self.forward, self.backward = (
            declared(name, None, call) for name in ("project", "forward", "backward")
        )
        self.distinct = declared("distinct", _NUMBER, _POINTER, _NUMBER, _NUMBER, *(_POINTER,) * 3)
        self.gradient_norm = declared("gradient_norm", _REAL, update)
        self.adam = declared("adam", _NUMBER, update)
        sums, pool = ctypes.POINTER(RowSums), ctypes.POINTER(PoolCall)
        self.sum_rows = declared("sum_rows", _NUMBER, sums)
        self.summed_rows = declared("summed_rows", _NUMBER, sums, _POINTER)
        self.add_to_rows = declared("add_to_rows", None, sums)
        seeds, sizes = (ctypes.c_uint64, _POINTER, _POINTER), (_NUMBER,) * 3
        self.drop = declared("drop", None, *seeds, *sizes, ctypes.c_float, _POINTER, _POINTER)
        self.pool_scratch = declared("pool_scratch", _NUMBER, pool)
        self.pool, self.pool_back = (declared(name, None, pool) for name in ("pool", "pool_back"))
        threads = _torchs_threads()
        if threads is not None:
            declared("use_threads", None, ctypes.POINTER(Threads))(threads)


def _torchs_threads() -> Threads | None:
    """Return the functions of the OpenMP library that torch has loaded; None where it has none."""
    process = ctypes.CDLL(None)
    try:
        functions = [getattr(process, name) for name in OPENMP]
    except AttributeError:
        return None
    return Threads(*(ctypes.cast(function, _POINTER).value for function in functions))


@functools.cache
def find_library() -> Library | str:
    """Return the library, or in one line why there is none."""
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in CHOICES:
        return f"{VARIABLE}={wanted}: must be one of {', '.join(CHOICES)}"
    if wanted == "off":
        return f"the native engine is switched off ({VARIABLE}=off)"
    path = Path(__file__).parent / LIBRARY
    if not path.exists():
        return (
            "the native engine isn't built: "
            "install a C++ compiler (g++ or clang++), then reinstall seqtrain"
        )
    try:
        return Library(path, wanted)
    except OSError as error:
        return f"the native engine doesn't load: {error}"


def why_not() -> str:
    """Return in one line why the native engine can't run here; empty where it can."""
    library = find_library()
    return library if isinstance(library, str) else ""


def vector_path() -> str:
    """Return which of the compiled vector paths runs: avx512, avx2, portable or neon; or none."""
    library = find_library()
    return "none" if isinstance(library, str) else library.vector_path


def load_library() -> Library:
    """Return the library; a RuntimeError says why there is none."""
    library = find_library()
    if isinstance(library, str):
        raise RuntimeError(library)
    return library


def new(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return memory that the library may write, on the CPU whatever torch's default device is."""
    return torch.empty(shape, dtype=dtype, device="cpu")


def address(tensor: Tensor | None, offset: int = 0, *, dtype: torch.dtype = torch.float32) -> int:
    """Return where number `offset` of a tensor lies; 0 (null) for no tensor.

    Raises:
        TypeError: not contiguous memory on the CPU, or of another type than the library reads.
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


def distinct(ids: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
    """Sort out repeated ids: what `torch.unique(ids, return_inverse=True)` does, by counting.

    Shape:
        ids (N,) -> distinct ids, ascending (U,), and where each id stands among them (N,).

    Raises:
        TypeError, ValueError: not int64 on the CPU; an id outside the vocabulary.
    """
    library, ids = load_library(), ids.contiguous()
    scratch = new(vocab_size, dtype=torch.int32)
    unique, inverse = (
        new(size, dtype=torch.int64) for size in (min(len(ids), vocab_size), len(ids))
    )
    count = library.distinct(
        address(ids, dtype=torch.int64),
        len(ids),
        vocab_size,
        address(scratch, dtype=torch.int32),
        address(unique, dtype=torch.int64),
        address(inverse, dtype=torch.int64),
    )
    if count < 0:
        found = f"{int(ids.min())} to {int(ids.max())}"
        raise ValueError(f"ids: {found}, must be 0 to {vocab_size - 1}")
    return unique[:count], inverse
