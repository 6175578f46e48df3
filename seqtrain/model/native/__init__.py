"""The native engine: a GRU in C++, compiled when seqtrain is installed, called through ctypes."""

from seqtrain.model.native.engine import native_gru, serves
from seqtrain.model.native.library import vector_path, why_not
from seqtrain.model.native.rows import adam_idle, adam_rows, distinct

__all__ = ["adam_idle", "adam_rows", "distinct", "native_gru", "serves", "vector_path", "why_not"]
