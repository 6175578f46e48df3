"""Loading of classifiers: one run, or an ensemble of the runs in a directory."""

from collections.abc import Mapping
from pathlib import Path

from seqtrain.api.named_runs import RunLike, directory_of
from seqtrain.api.predictors import Classifier, one_model
from seqtrain.errors import CheckpointError
from seqtrain.evaluation.devices import select_device
from seqtrain.runs.model_folder import load_model
from seqtrain.runs.run_directory import members, model_folder
from seqtrain.sequences.preprocessing import Preprocessing


def load(run: RunLike = None, *, device: str = "auto") -> Classifier:
    """Load the classifier of a run, or of an ensemble.

    Processes that are forked after this call compute with one thread of torch.

    Args:
        run: A run directory, a model folder, what `fit` returned, or None for the newest run. A
            classifier is returned unchanged, on its device.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError: If there is no run, or no complete model. Also if the models of an ensemble
            differ in their labels or kind of sequences.
        ConfigError: If there is no such device.
    """
    if isinstance(run, Classifier):
        return run
    chosen = select_device(device)
    path = directory_of(run).path
    models = {at.name: load_model(model_folder(at)) for at in members(path) or [path]}
    check_alike({name: model.preprocessing for name, model in models.items()}, path)
    return Classifier([*models.values()], chosen, path)


def load_one(run: RunLike = None, *, device: str = "auto") -> Classifier:
    """Load the classifier of one run, which isn't an ensemble.

    Args:
        run: As for `load`.
        device: As for `load`.

    Raises:
        CheckpointError: If there is no complete model.
        ConfigError: If the directory holds several runs, or there is no such device.
    """
    return one_model(load(run, device=device))


def check_alike(fitted: Mapping[str, Preprocessing], path: Path) -> None:
    """Check that models can predict together: they need the same labels and kind of sequences.

    Args:
        fitted: Maps the name of each model to its preprocessing. There is at least one.
        path: Directory of the models, for messages.

    Raises:
        CheckpointError: If models differ in the labels or their order, in the kind of sequences, or
            in whether an example may have several labels.
    """
    tasks = {name: (x.labels, x.kind, x.multi_label) for name, x in fitted.items()}
    first, task = next(iter(tasks.items()))
    for name, other in tasks.items():
        if other != task:
            raise CheckpointError(
                f"{path}: {name} has other labels than {first}, so they can't predict together; "
                "name one of them"
            )
