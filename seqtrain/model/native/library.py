"""The compiled library: found, checked and loaded once; the C interface as ctypes sees it."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

from seqtrain.model.native.build import LIBRARY, sources_digest

VARIABLE = "SEQTRAIN_NATIVE"
"""Environment variable that forces a vector path: avx512, avx2 or portable; or off."""

CHOICES = ("auto", "avx512", "avx2", "portable", "off")

_POINTER = ctypes.c_void_p
_NUMBER = ctypes.c_int64


class GruCall(ctypes.Structure):
    """`struct GruCall` of interface.h, field by field; pointers are addresses, None is null."""

    _fields_ = (
        *((name, _NUMBER) for name in ("threads", "reverse", "tokens", "steps", "batch")),
        *((name, _NUMBER) for name in ("vectors", "input_size", "hidden_size", "states_stride")),
        *((name, _POINTER) for name in ("batch_sizes", "index", "vectors_in")),
        *((name, _POINTER) for name in ("w_ih", "w_hh", "b_ih", "b_hh", "h0")),
        *((name, _POINTER) for name in ("states", "gates", "last", "scratch")),
        *((name, _POINTER) for name in ("d_states", "d_last", "d_vectors")),
        ("add_d_vectors", _NUMBER),
        *((name, _POINTER) for name in ("d_w_ih", "d_w_hh", "d_b_ih", "d_b_hh", "d_h0")),
    )


class Library:
    """The library's functions.

    Args:
        path: the shared library.
        wanted: vector path, or auto.

    Raises:
        OSError: the library doesn't load, isn't made from these sources, or lacks the path.
    """

    def __init__(self, path: Path, wanted: str) -> None:
        library = ctypes.CDLL(str(path))
        library.seqtrain_sources.restype = ctypes.c_char_p
        if library.seqtrain_sources().decode() != sources_digest():
            raise OSError("it was built from other sources: reinstall seqtrain")
        library.seqtrain_choose.restype = ctypes.c_char_p
        chosen = library.seqtrain_choose(wanted.encode())
        if chosen is None:
            raise OSError(f"{VARIABLE}={wanted}: this processor has no {wanted}")
        self.vector_path: str = chosen.decode()
        self._gate_row = library.seqtrain_gru_gate_row
        self._gate_row.argtypes, self._gate_row.restype = [_NUMBER], _NUMBER
        self._scratch = library.seqtrain_gru_scratch
        self._scratch.argtypes = [ctypes.POINTER(GruCall), ctypes.c_int]
        self._scratch.restype = _NUMBER
        self._forward, self._backward = library.seqtrain_gru_forward, library.seqtrain_gru_backward
        for function in self._forward, self._backward:
            function.argtypes, function.restype = [ctypes.POINTER(GruCall)], None

    def gate_row(self, hidden_size: int) -> int:
        """Return how many numbers forward saves for a token."""
        return int(self._gate_row(hidden_size))

    def scratch_bytes(self, call: GruCall, *, backward: bool) -> int:
        """Return how many bytes of scratch a call needs."""
        return int(self._scratch(call, backward))

    def forward(self, call: GruCall) -> None:
        """Run a layer in one direction."""
        self._forward(call)

    def backward(self, call: GruCall) -> None:
        """Go back through a layer in one direction."""
        self._backward(call)


@functools.cache
def find_library() -> Library | str:
    """Return the library, or in one line why there is none."""
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in CHOICES:
        return f"{VARIABLE}={wanted}: must be one of {', '.join(CHOICES)}"
    if wanted == "off":
        return f"the native engine is switched off ({VARIABLE}=off)"
    path = Path(__file__).with_name(LIBRARY)
    if not path.exists():
        return (
            "the native engine isn't built, training is several times slower: "
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
