"""Devices of this machine: listing them, and choosing one by name."""

import torch

from seqtrain.errors import ConfigError


def available_devices() -> list[str]:
    """Return the names of the available devices: "cpu", then "cuda:0" and so on, then "mps"."""
    cuda = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    return ["cpu", *cuda, *["mps"] * torch.backends.mps.is_available()]


def select_device(name: str) -> torch.device:
    """Return the device with a name.

    Args:
        name: A name from `available_devices`, or "cuda" for the first CUDA device. "auto" is the
            first GPU, or the CPU if there is no GPU.

    Raises:
        ConfigError: If there is no such device here.
    """
    present = available_devices()
    if name == "auto":
        return torch.device("cuda" if "cuda:0" in present else present[-1])
    wanted = "cuda:0" if name == "cuda" else name
    if wanted not in present:
        raise ConfigError(f"device {name}: not found; this machine has {', '.join(present)}")
    return torch.device(name)


def wait_for(device: torch.device) -> None:
    """Wait until a device has computed all that it was given. For the CPU, return at once."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
