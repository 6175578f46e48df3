"""Devices: choosing one by name."""

import threading

import torch

from seqtrain.errors import ConfigError, RunError


def available_devices() -> list[str]:
    """Return the names of the available devices, cpu first."""
    cuda = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    return ["cpu", *cuda, *["mps"] * torch.backends.mps.is_available()]


def select_device(name: str) -> torch.device:
    """Return the device of a name; auto is the first GPU, else the CPU.

    Raises:
        ConfigError: there is no such device here; never a silent CPU.
        RunError: the machine has no room for the threads that will compute.
    """
    _check_threads(torch.get_num_threads() - 1)
    present = available_devices()
    if name == "auto":
        return torch.device("cuda" if "cuda:0" in present else present[-1])
    wanted = "cuda:0" if name == "cuda" else name
    if wanted not in present:
        raise ConfigError(f"device {name}: not found; this machine has {', '.join(present)}")
    return torch.device(name)


def _check_threads(number: int) -> None:
    """Start threads and end them: where OpenMP can't, it ends the process without a message."""
    over = threading.Event()
    threads = [threading.Thread(target=over.wait) for _ in range(number)]
    try:
        for thread in threads:
            thread.start()
    except RuntimeError as error:
        raise RunError(
            f"threads: {error} (of {number}); give more memory or threads (ulimit -v, ulimit -u), "
            "or set OMP_NUM_THREADS=1"
        ) from None
    finally:
        over.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
