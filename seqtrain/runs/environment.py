"""The environment of a run: a record of versions, device and data, and checks of it.

The checks compare the data with the record of an earlier run, and the needs of a new run with the
memory.
"""

import hashlib
import os
import platform
import sys
import time
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import seqtrain
from seqtrain.config.schema import Config, ModelConfig
from seqtrain.engines.native.library import vector_path
from seqtrain.errors import CheckpointError, ConfigError, DataError
from seqtrain.model.branches.ngrams import MOST_PENALIZED_ROWS
from seqtrain.model.network import new_network
from seqtrain.runs.run_directory import CONFIG, RunDirectory, changed_data
from seqtrain.sequences.dataset import PreparedData, held_out_fractions
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.sources import data_sources
from seqtrain.sequences.store import SequenceStore
from seqtrain.training.trainer import Trainer

HELD_OUT_DIGEST = "held_out"
"""Entry of environment.json with the result of `held_out`."""
EXACT_ON = ("torch", "processes", "threads", "cpu_capability", "native", "device", "device_name")
"""Entries of environment.json that the last bits of a result depend on."""
COPIES = 4
"""Copies of the weights in memory: weights, gradients, and the optimizer's two moments."""
SOLVER_COPIES = 10
"""Copies of the weights of n-grams that Newton's method keeps at once."""
BOOSTING_BYTES = 64
"""Bytes for each row and class that boosting of trees needs: targets, logits and derivatives."""
STATES_SAVED = 6
"""Approximate number of hidden vectors that backward needs per step, layer and direction."""
FLOAT_BYTES = 4
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
        problem = "vocabulary, labels or preprocessing differ from those of the run's train"
        raise CheckpointError(f"{run.path}: {problem}; restore it from a copy")
    if HELD_OUT_DIGEST in recorded and recorded[HELD_OUT_DIGEST] != held_out(config, data):
        problem = "holds out other rows than the run did; restore it from a copy"
        raise CheckpointError(f"{run.path / CONFIG}: {problem}")


def check_model(
    model: ModelConfig, preprocessing: Preprocessing, device: torch.device, num_rows: int
) -> None:
    """Check that weights, gradients and the optimizer's moments fit into the device's memory.

    The weights of n-grams need memory for the solver.

    Args:
        model: Section `model` of the config.
        preprocessing: Preprocessing of the data, which decides how many weights there are.
        device: Device that trains. If its memory is unknown, nothing is checked.
        num_rows: Number of rows of train, which decides the solver.

    Raises:
        ConfigError: If the needed memory exceeds `available_memory`.
    """
    available = available_memory(device)
    network = new_network(model, preprocessing)  # without kernels, which aren't parameters
    parameters = sum(weight.numel() for weight in network.parameters())
    needed = parameters * COPIES * FLOAT_BYTES
    key, lower = "model.hidden_size", "model.hidden_size or model.embedding_dim"
    ngram_weights = len(preprocessing.ngrams or ()) * len(preprocessing.labels)
    copies = SOLVER_COPIES if num_rows <= MOST_PENALIZED_ROWS else COPIES
    for_solver = ngram_weights * copies * FLOAT_BYTES
    if for_solver > needed:
        parameters, needed = ngram_weights, for_solver
        key, lower = "model.max_ngrams", "it"
    if available is None or needed <= available:
        return
    raise ConfigError(
        f"{key}: {parameters:,} parameters need about {needed:,} bytes ({_gib(needed)}) to train; "
        f"{_owner(device)} has {_gib(available)}; lower {lower}"
    )


def check_trees(config: Config, train: SequenceStore, classes: int) -> None:
    """Check that boosting of trees fits into memory. It keeps numbers for each row and class.

    Args:
        config: The config.
        train: Encoded training split.
        classes: Number of classes.

    Raises:
        ConfigError: If the needed memory exceeds `physical_memory`.
    """
    available = physical_memory()
    needed = len(train) * classes * BOOSTING_BYTES
    if config.model.trees and available is not None and needed > available:
        raise ConfigError(
            f"model.trees: {len(train):,} rows of {classes:,} classes need about {_gib(needed)}; "
            f"this machine has {_gib(available)}; set model.trees: false"
        )


def check_longest(config: Config, train: SequenceStore, device: torch.device) -> None:
    """Check that the states of the longest training sequence fit into the device's memory.

    With training.bptt, only the states of that many time steps are counted.

    Args:
        config: The config.
        train: Encoded training split.
        device: Device that trains. If its memory is unknown, nothing is checked.

    Raises:
        DataError: If the needed memory exceeds `available_memory`.
    """
    available, model = available_memory(device), config.model
    longest = int(train.lengths.argmax())
    steps = int(train.lengths[longest])
    directions = 2 if model.bidirectional else 1
    states = model.num_layers * directions * model.hidden_size
    kept_steps = min(steps, config.training.bptt or steps)
    needed = kept_steps * FLOAT_BYTES * (model.width + STATES_SAVED * states)
    if available is not None and needed > available:
        raise DataError(
            f"{train.place(longest)}: a sequence of {steps:,} steps needs about {_gib(needed)} to "
            f"train on; {_owner(device)} has {_gib(available)}; set training.bptt or "
            "data.max_length"
        )


def available_memory(device: torch.device) -> int | None:
    """Return the memory that a device offers, in bytes, or None if it is unknown.

    For CUDA it is the memory that is free now. For other devices it is all of the machine's memory.
    """
    if device.type == "cuda":
        free: int = torch.cuda.mem_get_info(device)[0]
        return free
    return physical_memory()


def physical_memory() -> int | None:
    """Return the machine's memory in bytes, or None if the system doesn't report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def peak_memory(device: torch.device) -> int | None:
    """Return the most memory in use since the process started, in bytes, or None if unknown.

    On CUDA it is what torch allocated on the GPU. On other devices it is the memory of the process.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return None
    with suppress(OSError, StopIteration):  # ru_maxrss may include a parent process on Linux
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":
        return peak
    return peak * 1024


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
    mode, workspace = torch.get_deterministic_debug_mode(), os.environ.get(CUBLAS_SETTING)
    os.environ.setdefault(CUBLAS_SETTING, ":4096:8")
    # Unlike torch.use_deterministic_algorithms, this doesn't import the compiler.
    torch.set_deterministic_debug_mode("error")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        if workspace is None:
            os.environ.pop(CUBLAS_SETTING, None)


def _owner(device: torch.device) -> str:
    if device.type == "cuda":
        return "the GPU"
    return "this machine"


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
