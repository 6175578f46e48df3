"""The compiled library: found, checked and loaded once; the C interface as ctypes sees it."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seqtrain.model.cells import GRU, LSTM, RNN, Cell
from seqtrain.model.engines.native.build import LIBRARY, sources_digest

VARIABLE = "SEQTRAIN_NATIVE"
"""Environment variable that forces a vector path: avx512, avx2 or portable, or neon; or off.

Products in bfloat16 belong to avx512 and neon.
"""

CHOICES = ("auto", "avx512", "avx2", "portable", "neon", "off")

_POINTER = ctypes.c_void_p
_NUMBER = ctypes.c_int64
_REAL = ctypes.c_double


KINDS: dict[Cell, int] = {GRU: 0, LSTM: 1, RNN: 2}
"""The cells that the library has, by `enum CellKind` of interface.h."""


class LayerCall(ctypes.Structure):
    """`struct LayerCall` of interface.h, field by field; pointers are addresses, None is null."""

    _fields_ = (
        *(
            (name, _NUMBER)
            for name in ("cell", "threads", "bfloat16", "reverse", "tokens", "steps", "batch")
        ),
        *((name, _NUMBER) for name in ("vectors", "input_size", "hidden_size", "states_stride")),
        *((name, _POINTER) for name in ("batch_sizes", "index", "vectors_in")),
        *((name, _POINTER) for name in ("w_ih", "w_hh", "b_ih", "b_hh", "h0", "c0")),
        *((name, _POINTER) for name in ("projected", "states", "gates", "last", "last_c")),
        *((name, _POINTER) for name in ("scratch", "d_states", "d_last", "d_last_c", "d_vectors")),
        ("add_d_vectors", _NUMBER),
        *((name, _POINTER) for name in ("d_w_ih", "d_w_hh", "d_b_ih", "d_b_hh", "d_h0", "d_c0")),
    )


class Weight(ctypes.Structure):
    """`struct Weight` of interface.h, field by field."""

    _fields_ = (
        *((name, _NUMBER) for name in ("rows", "row_size", "touched")),
        *((name, _POINTER) for name in ("which", "gradient", "weight", "mean", "square")),
        *((name, _POINTER) for name in ("step", "up_to_date")),
        *((name, _REAL) for name in ("decay", "l2")),
    )


class Update(ctypes.Structure):
    """`struct Update` of interface.h, field by field."""

    _fields_ = (
        *((name, _NUMBER) for name in ("threads", "count")),
        ("weights", ctypes.POINTER(Weight)),
        *((name, _REAL) for name in ("lr", "beta1", "beta2", "eps", "scale")),
    )


class Threads(ctypes.Structure):
    """`struct Threads` of interface.h, field by field."""

    _fields_ = tuple((name, _POINTER) for name in ("parallel", "barrier", "number", "of"))


OPENMP = ("GOMP_parallel", "GOMP_barrier", "omp_get_thread_num", "omp_get_num_threads")
"""Functions of `Threads`, as the OpenMP libraries of GCC, LLVM and Intel name them."""


class Library:
    """The library's functions; they release Python's lock while they run.

    Args:
        path: the shared library.
        wanted: vector path, or auto.

    Raises:
        OSError: the library doesn't load, isn't made from these sources, or lacks the path.
    """

    def __init__(self, path: Path, wanted: str) -> None:
        library = ctypes.CDLL(str(path))
        sources = _declare(library.seqtrain_sources, ctypes.c_char_p)
        if sources().decode() != sources_digest():
            raise OSError("it was built from other sources: reinstall seqtrain")
        chosen = _declare(library.seqtrain_choose, ctypes.c_char_p, ctypes.c_char_p)(
            wanted.encode()
        )
        if chosen is None:
            raise OSError(f"{VARIABLE}={wanted}: this processor has no {wanted}")
        self.vector_path: str = chosen.decode()
        self.has_bfloat16 = bool(_declare(library.seqtrain_has_bfloat16, _NUMBER)())
        """Whether products take bfloat16 where a call allows it."""
        call = ctypes.POINTER(LayerCall)
        self.gate_row = functools.cache(
            _declare(library.seqtrain_gate_row, _NUMBER, _NUMBER, _NUMBER)
        )
        """How many numbers forward saves for a token, given the kind of cell and hidden size."""
        self.projected_row = _declare(library.seqtrain_projected_row, _NUMBER, _NUMBER, _NUMBER)
        """How many numbers a projected vector has, given the kind of cell and hidden size."""
        self.scratch = _declare(library.seqtrain_scratch, _NUMBER, call, ctypes.c_int)
        """How many bytes of scratch a call needs, forward (0) or backward (1)."""
        self.project = _declare(library.seqtrain_project, None, call)
        self.forward = _declare(library.seqtrain_forward, None, call)
        self.backward = _declare(library.seqtrain_backward, None, call)
        pointers = (_POINTER,) * 3
        self.distinct = _declare(
            library.seqtrain_distinct, _NUMBER, _POINTER, _NUMBER, _NUMBER, *pointers
        )
        update = ctypes.POINTER(Update)
        self.gradient_norm = _declare(library.seqtrain_gradient_norm, _REAL, update)
        self.adam = _declare(library.seqtrain_adam, _NUMBER, update)
        self.adam_idle = _declare(library.seqtrain_adam_idle, _NUMBER, update)
        threads = torchs_threads()
        if threads is not None:
            _declare(library.seqtrain_use_threads, None, ctypes.POINTER(Threads))(threads)


def torchs_threads() -> Threads | None:
    """Return the functions of the OpenMP library that torch has loaded; None where it has none."""
    process = ctypes.CDLL(None)
    try:
        functions = [getattr(process, name) for name in OPENMP]
    except AttributeError:
        return None
    return Threads(*(ctypes.cast(function, _POINTER).value for function in functions))


def _declare(function: Any, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Tell ctypes the types of a function; return it."""
    function.restype, function.argtypes = result, arguments
    declared: Callable[..., Any] = function
    return declared


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
    """Return the library.

    Raises:
        RuntimeError: there is none; says why.
    """
    library = find_library()
    if isinstance(library, str):
        raise RuntimeError(library)
    return library
