"""The native engine: GRU, LSTM and RNN in C++, compiled on install, called through ctypes."""

from seqtrain.model.engines.native.call import Projected
from seqtrain.model.engines.native.library import vector_path, why_not
from seqtrain.model.engines.native.projected import project
from seqtrain.model.engines.native.rows import adam_idle, adam_rows, distinct
from seqtrain.model.engines.native.stack import run_stack

__all__ = [
    "Projected",
    "adam_idle",
    "adam_rows",
    "distinct",
    "project",
    "run_stack",
    "vector_path",
    "why_not",
]
