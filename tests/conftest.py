"""What all tests share: one thread, a cache of their own, and how generated examples are drawn."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "same",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fresh", parent=settings.get_profile("same"), derandomize=False)


def pytest_configure(config: pytest.Config) -> None:
    """The default suite draws the same examples every time; the slow one searches anew."""
    slow = config.getoption("markexpr") == "slow"
    settings.load_profile("fresh" if slow else "same")


@pytest.fixture(scope="session", autouse=True)
def own_signals() -> None:
    """Signals act as in a foreground program, also where nohup or a shell's & had them ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One thread, so that equal seeds give equal bits and a busy machine doesn't slow us down."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQTRAIN_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("OMP_NUM_THREADS", "1")
        yield
