"""The environment of a run: versions, device, and digests of the data; checks against a new one."""

import hashlib
import os
import platform
import shutil
import time
from collections.abc import Container, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import seqtrain
from seqtrain.config.schema import Config
from seqtrain.data.dataset import PreparedData, held_out_fractions
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.sources import data_sources
from seqtrain.errors import CheckpointError, RunError
from seqtrain.evaluation.logits import carried_groups
from seqtrain.files.writing import blocks_of
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.engines.native.library import vector_path
from seqtrain.runs.checkpoint import COUNTERS, MOMENTS
from seqtrain.runs.destination import nearest_existing
from seqtrain.runs.model_folder import Model, model_files
from seqtrain.runs.run_directory import CONFIG, RunDirectory, changed_data
from seqtrain.training.phases import TrainingContext, TrainingSession

HELD_OUT = "held_out"
"""Entry of environment.json: a digest of the rows of each split that is held out of train."""
EXACT_ON = ("torch", "processes", "threads", "cpu_capability", "native", "device", "device_name")
"""Entries of environment.json that the last bits of a result depend on."""
CHECKPOINTS = 5
"""Model folders at most at one time: best, last, previous, and two of them being written."""


def environment(context: TrainingContext) -> dict[str, Any]:
    """Return versions, device, processes, threads, and digests of data files and held-out rows."""
    data, device, processes = context.data, context.device, context.processes
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
        HELD_OUT: held_out(context.config, data),
    }
    if processes.launch is not None:
        found["launch"] = processes.launch
    if data.vectors is not None:
        found["vectors"] = asdict(data.vectors.coverage)
    return found


def held_out(config: Config, data: PreparedData) -> dict[str, str]:
    """Return the SHA-256 of the rows' lines of each split that is held out of train's file."""
    return {
        name: hashlib.sha256(data.splits[name].lines.astype("<i8").tobytes()).hexdigest()
        for name in held_out_fractions(config.data)
    }


def inexact_resume_warnings(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return a warning if the environment changed in a way that may change the last bits."""
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
    """Check that the data didn't change since a run.

    Args:
        run: Run directory.
        config: Config that names the data files.
        data: Data as they are now.
        preprocessing: Preprocessing of the run's model.
        scored: Keys of the config whose files are only scored, so that they may differ.

    Raises:
        CheckpointError: If a file, the preprocessing or the held-out rows differ.
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
    if HELD_OUT in recorded and recorded[HELD_OUT] != held_out(config, data):
        problem = "holds out other rows than the run did; restore it from a copy"
        raise CheckpointError(f"{run.path / CONFIG}: {problem}")


def check_space(folder: Path, session: TrainingSession) -> None:
    """Raise RunError if the disk of a new run directory has too little room for its checkpoints."""
    model = Model(session.network, session.data.preprocessing, session.calibration)
    size = sum(len(block) for x in model_files(model).values() for block in blocks_of(x))
    learning = session.learner.objective.model.parameters()
    size += COUNTERS + (MOMENTS + 1) * sum(weight.nbytes for weight in learning)
    groups = carried_groups(session.network, session.data.splits["train"])
    if groups is not None:
        bytes_of_state = recurrent_branch(session.network).zero_state(1).nbytes
        size += (int(groups.max(initial=-1)) + 1) * (groups.itemsize + bytes_of_state)
    needed, free = CHECKPOINTS * size, shutil.disk_usage(nearest_existing(folder)).free
    if free < needed:
        raise RunError(
            f"{folder}: {free:,} bytes are free on its disk; expected {needed:,} for the run's "
            "checkpoints; free some space, or choose another --run-dir"
        )
