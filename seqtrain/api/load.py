"""Which run is meant, and loading its classifier, or an ensemble of the runs in one directory."""

import os
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import torch

from seqtrain.api.predictors import Classifier, check_alike, one_model
from seqtrain.api.run_events import Run
from seqtrain.evaluation.devices import select_device
from seqtrain.runs.model_folder import load_model
from seqtrain.runs.run_directory import RunDirectory, find, members, model_folder

RunLike: TypeAlias = Run | str | PathLike[str] | None
"""A run directory, a model folder, or what `fit` returned; None: the newest run."""


def directory_of(run: RunLike) -> RunDirectory:
    """Return the directory of a run; raises a CheckpointError where there is none."""
    return find(run.path if isinstance(run, Run) else None if run is None else Path(run))


def load(run: RunLike | Classifier = None, *, device: str = "auto") -> Classifier:
    """Load the classifier of a run.

    A process forked later computes with one thread; spawned ones with as many as torch chooses.

    Args:
        run: a run directory, a model folder, or what `fit` returned; None: the newest run. What is
            loaded already is returned as it is.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError: there is no whole model there.
        ConfigError: there is no such device.
    """
    if isinstance(run, Classifier):
        return run
    chosen = select_device(device)
    path = directory_of(run).path
    _one_thread_after_fork()
    models = {at.name: load_model(model_folder(at)) for at in members(path) or [path]}
    check_alike({name: model.preprocessing for name, model in models.items()}, path)
    return Classifier([*models.values()], chosen, path)


def load_one(run: RunLike = None, *, device: str = "auto") -> Classifier:
    """Load the classifier of one run; refuse several in one directory."""
    return one_model(load(run, device=device))


@cache
def _one_thread_after_fork() -> None:
    """Let a forked process predict: OpenMP's threads stay behind, and waiting for them hangs."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))
