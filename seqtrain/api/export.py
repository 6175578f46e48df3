"""Exporting a run's best model."""

from __future__ import annotations

from pathlib import Path

from seqtrain.api.events import RunLike, path_of
from seqtrain.export.folder import Exported, export_model
from seqtrain.runs.destination import check_destination
from seqtrain.runs.finding import find, model_folder
from seqtrain.runs.model_folder import load_model


def export(run: RunLike, folder: str | Path, *, force: bool = False) -> Exported:
    """Write a run's best model as ONNX, with all that another program needs to use it.

    Args:
        run: a run directory, a model folder, or what `fit` returned; None: the newest run.
        folder: a new one.
        force: replace an earlier export.

    Raises:
        ConfigError: the folder isn't new, the model can't be exported, or a package is missing.
        CheckpointError: there is no whole model there.
        RunError: the exported model answers differently from the run, or the disk is full.
    """
    target = Path(folder)
    check_destination(target, "export", "DIR", force=force)
    return export_model(load_model(model_folder(find(path_of(run)).path)), target, force=force)
