import pytest
import torch

from seqtrain.errors import ConfigError
from seqtrain.evaluation.devices import available_devices, select_device


@pytest.mark.parametrize("name", ["cpu", "auto", "cuda", "mps", "cuda:99", "foo", ""])
def test_a_device_is_taken_or_refused_and_never_replaced(name):
    present = available_devices()
    if name == "auto":
        assert select_device(name).type in {each.split(":")[0] for each in present}
    elif name and any(each.startswith(name) for each in present):
        assert select_device(name) == torch.device(name)
    else:
        with pytest.raises(ConfigError) as caught:
            select_device(name)
        problem = f"device {name}: not found; this machine has {', '.join(present)}"
        assert str(caught.value) == problem
