"""The data of a run, read once per host, and refused where it is too long to train on."""

from __future__ import annotations

import time

from seqtrain.data.cache import default_folder
from seqtrain.data.preparation import PreparedData, prepare
from seqtrain.data.summary import padding_shares, summarize, warnings
from seqtrain.errors import DataError
from seqtrain.processes.group import Group
from seqtrain.workflows.events import DataEvent, Listener
from seqtrain.workflows.memory import check_longest, check_model
from seqtrain.workflows.start import Start


def read_data(start: Start, listener: Listener, group: Group, *, cache: bool) -> PreparedData:
    """Read the data, check that its longest sequence can be trained on, and tell the listener.

    Of a host's processes the first reads it, and the others take it from the cache.
    """
    began, config, known = time.perf_counter(), start.config, start.known
    folder = default_folder() if cache else None
    data: PreparedData | None = None
    with group.together(patiently=True):
        if group.place.local_rank == 0:
            data = prepare(config, cache_folder=folder, known=known)
    with group.together(patiently=True):
        data = data or prepare(config, cache_folder=folder, known=known)
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


def _check_same_data(data: PreparedData, group: Group) -> None:
    """Refuse data that differs from what the first process reads on its host."""
    first = group.tell(data.digests)[0]
    for file in data.digests | first:
        found = data.digests.get(file)
        if found is None:
            raise DataError(f"{file}: rank 0 reads it, and nothing names it here")
        if found != first.get(file):
            raise DataError(f"{file}: SHA-256 {found}, but rank 0 reads another file there")
