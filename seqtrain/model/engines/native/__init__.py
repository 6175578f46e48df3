"""The native engine: a GRU in C++, compiled when seqtrain is installed, called through ctypes."""

from seqtrain.model.engines.native.call import Projected
from seqtrain.model.engines.native.engine import native_gru
from seqtrain.model.engines.native.library import vector_path, why_not
from seqtrain.model.engines.native.projected import project
from seqtrain.model.engines.native.rows import adam_idle, adam_rows, distinct

__all__ = [
    "Projected",
    "adam_idle",
    "adam_rows",
    "distinct",
    "native_gru",
    "project",
    "vector_path",
    "why_not",
]
