"""The native engine: a GRU in C++, compiled when seqtrain is installed, called through ctypes."""

from seqtrain.model.native.engine import native_gru, serves
from seqtrain.model.native.library import why_not

__all__ = ["native_gru", "serves", "why_not"]
