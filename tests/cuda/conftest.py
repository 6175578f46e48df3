"""The device of these tests: a GPU, or what SEQTRAIN_TEST_DEVICE names (cpu: to try the tests)."""

import os
from pathlib import Path

import pytest
import torch

from seqtrain.evaluation.devices import available_devices

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
