"""The native engine: GRU, LSTM and RNN in C++, compiled on install, called through ctypes."""

from seqtrain.model.engines.native.call import Projected
from seqtrain.model.engines.native.library import vector_path, why_not
from seqtrain.model.engines.native.projected import project
from seqtrain.model.engines.native.rows import distinct
from seqtrain.model.engines.native.stack import run_stack
from seqtrain.model.engines.native.update import (
    Gradients,
    adam,
    adam_idle,
    describe_weight,
    gradient_norm,
)

__all__ = [
    "Gradients",
    "Projected",
    "adam",
    "adam_idle",
    "describe_weight",
    "distinct",
    "gradient_norm",
    "project",
    "run_stack",
    "vector_path",
    "why_not",
]
