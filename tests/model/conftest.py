from collections.abc import Iterator

import pytest

from seqtrain.model.engines.native.library import VARIABLE, find_library, why_unavailable
from tests.helpers.networks import num_threads


@pytest.fixture(params=["avx512", "avx2", "portable"])
def path(request, monkeypatch) -> Iterator[str]:
    """Force each vector path that this processor has."""
    monkeypatch.setenv(VARIABLE, request.param)
    find_library.cache_clear()
    if why_unavailable():
        find_library.cache_clear()
        pytest.skip(why_unavailable())
    yield request.param
    find_library.cache_clear()


@pytest.fixture(params=[1, 3])
def threads(request) -> Iterator[int]:
    """Run with a number of threads."""
    with num_threads(request.param):
        yield request.param
