"""The device of these tests: a GPU, or what SEQTRAIN_TEST_DEVICE names (cpu: to try the tests).

Without a GPU, `-p fakecuda` puts a device named "cuda" into the CPU's memory.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from seqtrain.engines.devices import available_devices

DEVICE = os.environ.get("SEQTRAIN_TEST_DEVICE", "cuda")
MISSING = (
    f"no {DEVICE} device here; SEQTRAIN_TEST_DEVICE=cpu runs these tests on the CPU"
    if DEVICE not in {name.split(":")[0] for name in available_devices()}
    else ""
)
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark this folder's tests. Where their device is missing, one of each form runs on the CPU."""
    tried: set[str] = set()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cuda)
            form = item.nodeid.partition("[")[0]
            if MISSING and (form in tried or form == item.nodeid):
                item.add_marker(pytest.mark.skip(reason=MISSING))
            tried.add(form)


@pytest.fixture
def device() -> torch.device:
    return torch.device("cpu" if MISSING else DEVICE)


@pytest.fixture
def on_cuda(device: torch.device) -> None:
    """Skip a test that has no meaning on another device."""
    if device.type != "cuda":
        pytest.skip("needs cuda")


@pytest.fixture
def fake(on_cuda: None) -> Iterator[ModuleType]:
    """The device in the CPU's memory, for what only it can tell; its memory is unlimited again."""
    if "fakecuda" not in sys.modules:
        pytest.skip("needs the device in the CPU's memory (-p fakecuda)")
    module = sys.modules["fakecuda"]
    yield module
    module.limit_memory()
    torch.cuda.set_sync_debug_mode("default")
