"""The packages of the extra `export`, imported where they are used."""

from __future__ import annotations

from typing import Any

from seqtrain.errors import ConfigError


def import_onnx() -> Any:
    """Return the package onnx.

    Raises:
        ConfigError: it or onnxruntime isn't installed.
    """
    try:
        import onnx
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"export needs the package {error.name}; "
            "install it with: pip install 'seqtrain[export]'"
        ) from None
    return onnx
