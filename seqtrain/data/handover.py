"""Prepared data that one process hands to others of its host: a file without a name, which all map.

Nobody can reach it but by a process that has it open, and it is gone with the last of them.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from math import prod
from typing import IO, Any

import numpy as np

from seqtrain.config.schema import Config
from seqtrain.data.growing import blocks, temporary_file
from seqtrain.data.prepared import Arrays, PreparedData, entry_of, from_entry
from seqtrain.data.store import SequenceStore
from seqtrain.files.reading import open_regular

ALIGNMENT = 64
"""Bytes at a multiple of which each array begins."""


@contextmanager
def offered(data: PreparedData) -> Iterator[Any]:
    """Write data into a file that others can take it from while the block lasts.

    Yields:
        What `take` needs, a JSON value; None where the system has no room for the file.
    """
    with ExitStack() as held:
        offer = None
        with suppress(OSError), ExitStack() as made:  # a file that can't be filled is closed here
            offer = _written(data, made.enter_context(temporary_file()))
            held.enter_context(made.pop_all())
        yield offer


def take(offer: Any, config: Config) -> PreparedData | None:
    """Return the data that a process of this host offers; None where it can't be had.

    Args:
        offer: what `offered` yields; its block lasts still.
        config: that the data was prepared for.
    """
    if offer is None:
        return None
    with suppress(OSError), open(offer["place"], "rb", opener=open_regular) as file:
        if _identity(file) != offer["identity"]:  # processes are numbered otherwise there
            return None
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        stores = {
            name: SequenceStore.from_arrays(_arrays(whole, forms))
            for name, forms in offer["stores"].items()
        }
        arrays = _arrays(whole, offer["more"])
        values = json.loads(arrays.pop("").tobytes())
        digests, from_cache = values["digests"], values["from_cache"]
        return from_entry(config, stores, values, arrays, digests, from_cache=from_cache)
    return None


def _written(data: PreparedData, file: IO[bytes]) -> dict[str, Any]:
    """Write all of it; return what and where it is."""
    stores, values, arrays = entry_of(data)
    forms = {name: _write(file, store.arrays()) for name, store in stores.items()}
    values |= {"digests": data.digests, "from_cache": data.from_cache}
    more = _write(file, arrays | {"": np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)})
    file.flush()
    place = f"/proc/{os.getpid()}/fd/{file.fileno()}"
    return {"stores": forms, "more": more, "place": place, "identity": _identity(file)}


def _write(file: IO[bytes], arrays: Arrays) -> dict[str, Any]:
    """Append arrays; return type, shape and place of each."""
    forms = {}
    for name, array in arrays.items():
        file.write(bytes(-file.tell() % ALIGNMENT))
        forms[name] = [str(array.dtype), list(array.shape), file.tell()]
        for block in blocks(array):
            file.write(np.ascontiguousarray(block).data)
    return forms


def _arrays(whole: mmap.mmap, forms: dict[str, Any]) -> Arrays:
    return {
        name: np.frombuffer(whole, kind, prod(shape), place).reshape(shape)
        for name, (kind, shape, place) in forms.items()
    }


def _identity(file: IO[bytes]) -> list[int]:
    status = os.fstat(file.fileno())
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]
