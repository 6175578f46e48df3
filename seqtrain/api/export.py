"""`seqtrain.export`: a run's best model as ONNX."""

from os import PathLike
from pathlib import Path

from seqtrain.api.classifier import Classifier, one_model
from seqtrain.api.named_runs import RunLike, directory_of
from seqtrain.errors import either
from seqtrain.exports.export_folder import Exported, export_model
from seqtrain.runs.destination import check_destination
from seqtrain.runs.model_folder import load_model
from seqtrain.runs.run_directory import model_folder


def export(run: RunLike, folder: str | PathLike[str], *, force: bool = False) -> Exported:
    """Write a run's best model as ONNX, with a script that needs no torch.

    Args:
        run: A run directory, a model folder, what `fit` or `load` returned, or None for the newest
            run.
        folder: New or empty folder to write.
        force: Replace an earlier export in `folder`.

    Returns:
        The folder, its size, and the difference of its predictions from the run's predictions.

    Raises:
        ConfigError: If the folder isn't empty, the model can't be exported, or a package is
            missing. With `force`, the folder may hold an export.
        CheckpointError: If there is no complete model, or the directory is an ensemble's.
        RunError: If predictions of the exported model and of the run differ, or the disk is full.
    """
    target = Path(folder)
    check_destination(target, "export", either("DIR", "folder="), force=force)
    if isinstance(run, Classifier):
        return export_model(one_model(run).models[0], target)
    return export_model(load_model(model_folder(directory_of(run).path)), target)
