"""Files of other programs: their rows as objects, read by packages that are installed for it."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from seqtrain.errors import ConfigError, SeqtrainError
from seqtrain.files.reading import compression_of, ending_of, uncompressed
from seqtrain.tables.arrays import arrays_of_splits
from seqtrain.tables.blocks import UnreadableError
from seqtrain.tables.opening import open_input
from seqtrain.text import reason_of

ObjectReader: TypeAlias = Callable[[str], Iterator[dict[str, Any]]]
ROWS_AT_ONCE = 10_000
"""Number of rows of a table of pandas that are written at once."""


def read_pickle(path: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table in a pickle. Reading it can run code."""
    pandas = import_module("pandas")
    return _rows_of_frame(pandas.DataFrame(pandas.read_pickle(path)))


def read_objects(path: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file npz below the name of their split. Reading it can run code."""
    with np.load(path, allow_pickle=True) as arrays:
        splits = arrays_of_splits(arrays.files)
        if not splits:
            raise UnreadableError(None, f"no array X; found {', '.join(arrays.files)}")
        for split, names in splits.items():
            columns = [arrays[name] for name in names.values()]
            for row in zip(*columns, strict=True):
                yield {split: dict(zip(names, row, strict=True))}


def _by_pandas(path: str, function: str, **options: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table that a function of pandas reads."""
    return _rows_of_frame(getattr(import_module("pandas"), function)(path, **options))


def _read_matlab(path: str) -> Iterator[dict[str, Any]]:
    return _rows_of_arrays(import_module("scipy.io").loadmat(path, squeeze_me=True))


def _read_hdf5(path: str) -> Iterator[dict[str, Any]]:
    with import_module("h5py").File(path) as file:
        arrays = {name: each[()] for name, each in file.items() if hasattr(each, "dtype")}
    return _rows_of_arrays(arrays)


def _read_signals(path: str) -> Iterator[dict[str, Any]]:
    return _rows_of_frame(import_module("mne").io.read_raw(path).to_data_frame())


def _rows_of_arrays(arrays: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the arrays that have equally many rows."""
    own = {name: each for name, each in arrays.items() if getattr(each, "ndim", 0)}
    if not own:
        raise UnreadableError(None, "has no arrays")
    size = statistics.mode(map(len, own.values()))
    for row in range(size):
        yield {name: each[row] for name, each in own.items() if len(each) == size}


def _rows_of_frame(frame: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table of pandas. Times are texts as in ISO 8601."""
    for start in range(0, len(frame), ROWS_AT_ONCE):
        part = frame.iloc[start : start + ROWS_AT_ONCE]
        yield from json.loads(part.to_json(orient="records", date_format="iso"))


READERS: dict[str, tuple[str, ObjectReader]] = {
    ".mat": ("scipy", _read_matlab),
    **dict.fromkeys((".h5", ".hdf5"), ("h5py", _read_hdf5)),
    **dict.fromkeys((".edf", ".bdf"), ("mne pandas", _read_signals)),
    ".sav": ("pandas pyreadstat", partial(_by_pandas, function="read_spss")),
    ".dta": ("pandas", partial(_by_pandas, function="read_stata")),
    ".sas7bdat": ("pandas", partial(_by_pandas, function="read_sas", encoding="utf-8")),
    ".ods": ("pandas odfpy", partial(_by_pandas, function="read_excel")),
    ".xls": ("pandas xlrd", partial(_by_pandas, function="read_excel")),
    ".xml": ("pandas", partial(_by_pandas, function="read_xml", parser="etree")),
}
"""Maps endings of files to the packages that read them, and to the function."""


def reader_for(path: str) -> tuple[str, ObjectReader] | None:
    """Return the packages and the function that read a file by its ending, or None."""
    return READERS.get(ending_of(path))


def rows_of_program(path: str, packages: str, read: ObjectReader) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of another program.

    Args:
        path: The file, which may be compressed.
        packages: The packages that read it.
        read: Returns its rows.

    Raises:
        ConfigError: If a package isn't installed.
        UnreadableError: If the file isn't sound.
    """
    try:
        with plain_file(path) as plain:
            yield from read(plain)
    except ImportError:
        raise ConfigError(
            f"{path}: is read by {packages}; install them with: pip install {packages}"
        ) from None
    except (SeqtrainError, UnreadableError):
        raise
    except Exception as error:  # the packages raise errors of many classes for a damaged file
        raise UnreadableError(None, f"can't be read ({reason_of(error)})") from None


@contextmanager
def plain_file(path: str) -> Iterator[str]:
    """Yield the path of a file, or that of a temporary copy that isn't compressed."""
    if not compression_of(path):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, os.path.basename(uncompressed(path)))
        with open_input(path) as stream, open(plain, "wb") as file:
            shutil.copyfileobj(stream, file)
        yield plain
