"""Conversions of files npz and npy. Each function gets the arrays by name, and returns others.

The array of a file npy is `X`, and that of the labels beside it is `y`.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np

from seqtrain.errors import ConfigError
from seqtrain.tables.arrays import DAMAGE, arrays_of_splits, labels_file
from seqtrain.tables.blocks import Array, UnreadableError, missing_name
from seqtrain.text import reason_of

ARRAY_FILES = (".npy", ".npz")
"""Endings of files of arrays."""


def array(arrays: dict[str, Array], *, name: str) -> dict[str, Array]:
    """Return one of the arrays.

    Raises:
        ConfigError: If there is no such array.
    """
    if name not in arrays:
        raise ConfigError(f"--name: {missing_name('array', name, arrays)}")
    return {"X": arrays[name]}


def steps(arrays: dict[str, Array]) -> dict[str, Array]:
    """Return arrays whose sequences have their time steps first and their channels last."""
    names = [own["X"] for own in arrays_of_splits(list(arrays)).values()]
    found = {name: each.swapaxes(-1, -2) for name, each in arrays.items() if name in names}
    return arrays | found


def arrays_in(stream: BinaryIO, path: str) -> dict[str, Array]:
    """Return the arrays of a file, and the labels of a file npy.

    Args:
        stream: Content of the file.
        path: The file.

    Raises:
        UnreadableError: If they aren't sound.
    """
    try:
        loaded: Any = np.load(io.BytesIO(stream.read()), allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            return {name: np.asarray(loaded[name]) for name in loaded.files}
        arrays = {"X": loaded}
        labels = labels_file(path)
        if labels:
            arrays["y"] = np.load(labels, allow_pickle=False)
        return arrays
    except (*DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        raise UnreadableError(None, f"has no sound arrays ({reason_of(error)})") from None


def saved_arrays(arrays: Any, ending: str) -> list[memoryview]:
    """Return the content of a file npz with arrays, or that of a file npy with the array `X`."""
    content = io.BytesIO()
    if ending == ".npy":
        np.save(content, arrays["X"])
    else:
        np.savez(content, **arrays)
    return [content.getbuffer()]
