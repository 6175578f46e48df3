from collections.abc import Iterator

import pytest

from seqtrain.engines.native.library import VARIABLE, find_library, why_unavailable
from tests.helpers.networks import num_threads


@pytest.fixture(params=["avx512", "avx2", "portable"])
def path(request, monkeypatch) -> Iterator[str]:
    """Force each vector path that this processor has."""
    monkeypatch.setenv(VARIABLE, request.param)
    find_library.cache_clear()
    try:
        if reason := why_unavailable():
            pytest.skip(reason)
        yield request.param
    finally:
        find_library.cache_clear()  # also after a skip: later tests have another variable


@pytest.fixture(params=[1, 3])
def threads(request) -> Iterator[int]:
    """Run with a number of threads."""
    with num_threads(request.param):
        yield request.param
