"""The environment of a run: a record of versions, device and data, and comparisons with it."""

import hashlib
import os
import platform
import time
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

import seqtrain
from seqtrain.config.schema import Config
from seqtrain.engines.native.library import vector_path
from seqtrain.errors import CheckpointError
from seqtrain.runs.run_directory import CONFIG, RunDirectory, changed_data
from seqtrain.sequences.dataset import PreparedData, held_out_fractions
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.sources import data_sources
from seqtrain.training.trainer import Trainer

HELD_OUT_DIGEST = "held_out"
"""Entry of environment.json with the result of `held_out`."""
EXACT_ON = ("torch", "processes", "threads", "cpu_capability", "native", "device", "device_name")
"""Entries of environment.json that the last bits of a result depend on."""
CUBLAS_SETTING = "CUBLAS_WORKSPACE_CONFIG"
"""Environment variable that torch requires for deterministic algorithms on CUDA."""


def environment(session: Trainer) -> dict[str, Any]:
    """Return the content of environment.json for a run that starts now.

    The content describes software, machine and processes, and has digests of the data files and of
    the held-out rows.
    """
    data, device, processes = session.data, session.device, session.processes
    found = {
        "seqtrain": seqtrain.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "native": vector_path(),
        "cpu_count": os.cpu_count(),
        "processes": processes.size,
        "threads": torch.get_num_threads(),
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "data": data.digests,
        HELD_OUT_DIGEST: held_out(session.config, data),
    }
    if processes.launch is not None:
        found["launch"] = processes.launch
    if data.vectors is not None:
        found["vectors"] = asdict(data.vectors.coverage)
    return found


def held_out(config: Config, data: PreparedData) -> dict[str, str]:
    """Return digests of the rows that are held out of train, by which later runs can compare them.

    Args:
        config: Config that says which splits are held out.
        data: The encoded splits.

    Returns:
        Maps the name of each held-out split to the SHA-256 of its line numbers.
    """
    return {
        name: hashlib.sha256(data.splits[name].lines.astype("<i8").tobytes()).hexdigest()
        for name in held_out_fractions(config.data)
    }


def inexact_resume_warnings(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return a warning if a resumed run may not be exact, or an empty list.

    There is a warning if an entry in EXACT_ON changed.

    Args:
        recorded: Content of the run's environment.json.
        here: Result of `environment` now.

    Returns:
        At most one line, which names all changes.
    """
    before = {"processes": 1, **recorded}
    changed = [
        f"{name} is {here[name]} here and was {before.get(name)} when the run started"
        for name in EXACT_ON
        if before.get(name) != here[name]
    ]
    if not changed:
        return []
    return [f"resuming may not be exact to the bit: {'; '.join(changed)}"]


def check_same_data(
    run: RunDirectory,
    config: Config,
    data: PreparedData,
    preprocessing: Preprocessing,
    scored: Container[str] = (),
) -> None:
    """Check that the data are the same as when a run read them.

    Args:
        run: Run directory. Its environment.json has the digests of the files.
        config: Config that names the data files.
        data: Splits as they were read just now, with the digests of their files.
        preprocessing: Preprocessing of the run's model.
        scored: Keys of the config, such as "data.test", whose files are only scored. These files
            may have changed.

    Raises:
        CheckpointError: If a file changed, was added or was removed, if the preprocessing differs,
            or if other rows are held out of train.
    """
    recorded = run.environment()
    keys = {source.path: key for key, source in data_sources(config)}
    before = recorded["data"]
    learned = {
        path: digest for path, digest in data.digests.items() if keys.get(path) not in scored
    }
    problems = changed_data(before, learned)
    problems += [f"{path}: the run didn't read it" for path in learned if path not in before]
    unnamed = [path for path in before if path not in learned and path not in keys]
    problems += [f"{path}: the run read it, and nothing names it now" for path in unnamed]
    if problems:
        advice = "restore the file, start a new run (fit --force), or score another file (--data)"
        raise CheckpointError(*(f"{problem}; {advice}" for problem in problems))
    if data.preprocessing != preprocessing:
        raise CheckpointError(
            f"{run.path}: vocabulary, labels or preprocessing differ from those of the run's "
            "train; restore it from a copy"
        )
    if HELD_OUT_DIGEST in recorded and recorded[HELD_OUT_DIGEST] != held_out(config, data):
        raise CheckpointError(
            f"{run.path / CONFIG}: holds out other rows than the run did; restore it from a copy"
        )


@contextmanager
def deterministic_algorithms(is_on: bool) -> Iterator[None]:
    """Make torch use deterministic algorithms in the block, and restore its settings after it.

    On CUDA, the block must be entered before cuBLAS computes anything.

    Args:
        is_on: If False, nothing is changed.
    """
    if not is_on:
        yield
        return
    mode = torch.get_deterministic_debug_mode()
    workspace = os.environ.get(CUBLAS_SETTING)
    os.environ.setdefault(CUBLAS_SETTING, ":4096:8")
    # Unlike torch.use_deterministic_algorithms, this doesn't import the compiler.
    torch.set_deterministic_debug_mode("error")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        if workspace is None:
            os.environ.pop(CUBLAS_SETTING, None)
