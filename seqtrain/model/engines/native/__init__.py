"""The native engine: GRU, LSTM and RNN in C++, compiled on install, called through ctypes."""

from seqtrain.model.engines.native.library import distinct, vector_path, why_not
from seqtrain.model.engines.native.recurrence import NativeEngine
from seqtrain.model.engines.native.update import (
    Gradients,
    adam,
    describe_weight,
    gradient_norm,
)

__all__ = [
    "Gradients",
    "NativeEngine",
    "adam",
    "describe_weight",
    "distinct",
    "gradient_norm",
    "vector_path",
    "why_not",
]
