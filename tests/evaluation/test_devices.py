from __future__ import annotations

import pytest
import torch

from seqtrain.errors import ConfigError
from seqtrain.evaluation.devices import available_devices, select_device


def test_auto_and_cpu_are_always_there() -> None:
    assert select_device("cpu") == torch.device("cpu")
    assert str(select_device("auto")).split(":")[0] in {
        name.split(":")[0] for name in available_devices()
    }


@pytest.mark.parametrize("name", ["cuda:99", "foo", "xpu", ""])
def test_an_absent_device_is_refused_with_those_present(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        select_device(name)
    assert str(caught.value) == (
        f"device {name}: not here; this machine has {', '.join(available_devices())}"
    )


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_a_gpu_is_taken_or_refused_and_never_replaced_by_the_cpu(name: str) -> None:
    if any(present.startswith(name) for present in available_devices()):
        assert select_device(name).type == name
    else:
        with pytest.raises(ConfigError, match=f"device {name}: not here; this machine has cpu"):
            select_device(name)
