"""The data of a run, read once per host, and refused where it is too long to train on."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from seqtrain.api.events import DataEvent, Listener
from seqtrain.api.memory import check_longest, check_model
from seqtrain.api.start import Start
from seqtrain.data.cache import default_folder
from seqtrain.data.dataset import PreparedData, load_prepared, prepare
from seqtrain.data.summary import padding_shares, summarize, warnings
from seqtrain.errors import DataError
from seqtrain.processes.group import Group


def read_data(start: Start, listener: Listener, group: Group, *, cache: bool) -> PreparedData:
    """Read the data, check that its longest sequence can be trained on, and tell the listener."""
    began, config = time.perf_counter(), start.config
    data = _read_once(start, default_folder() if cache else None, group)
    with group.together():
        _check_same_data(data, group)
        preprocessing = data.preprocessing
        check_model(
            config.model,
            preprocessing.input_size,
            len(preprocessing.labels),
            preprocessing.num_ngrams,
        )
        check_longest(config, data.splits["train"])
    with group.together(patiently=True):
        if group.is_first:
            summaries = summarize(data)
            listener(
                DataEvent(
                    data=data,
                    summaries=summaries,
                    padding=padding_shares(data, config.batching, config.seed),
                    warnings=warnings(data, summaries, config.data),
                    seconds=time.perf_counter() - began,
                )
            )
    return data


def _read_once(start: Start, cache_folder: Path | None, group: Group) -> PreparedData:
    """Let the first process of each host read the data; all of the host share its memory."""
    place, own = group.place, None
    with ExitStack() as held:
        with group.together(patiently=True):
            if place.local_rank == 0:
                if place.local_size > 1 and cache_folder is None:
                    cache_folder = Path(held.enter_context(TemporaryDirectory()))
                own = prepare(start.config, cache_folder=cache_folder, known=start.known)
        told = group.tell(None if own is None or own.entry is None else str(own.entry))
        with group.together(patiently=True):
            entry = told[place.rank - place.local_rank]
            if own is None and entry is not None:
                own = load_prepared(start.config, Path(entry))
            return own or prepare(start.config, cache_folder=None, known=start.known)


def _check_same_data(data: PreparedData, group: Group) -> None:
    """Refuse data that differs from what the first process reads on its host."""
    first = group.tell(data.digests)[0]
    for file in data.digests | first:
        found = data.digests.get(file)
        if found is None:
            raise DataError(f"{file}: rank 0 reads it, and nothing names it here")
        if found != first.get(file):
            raise DataError(f"{file}: SHA-256 {found}, but rank 0 reads another file there")
