"""A model as the files of its model folder, for pickles."""

from pathlib import Path
from tempfile import TemporaryDirectory

from seqtrain.errors import CheckpointError
from seqtrain.files.writing import blocks_of, write_folder
from seqtrain.runs.model_folder import FILES, Model, load_model, model_files


def pack_model(model: Model) -> dict[str, bytes]:
    """Return the content of each file of the model folder."""
    return {name: b"".join(blocks_of(blocks)) for name, blocks in model_files(model).items()}


def unpack_model(files: object) -> Model:
    """Load a model from what `pack_model` returned.

    Raises:
        CheckpointError: If these aren't the files of a model folder; a pickle may hold anything.
    """
    is_whole = isinstance(files, dict) and all(isinstance(each, bytes) for each in files.values())
    if not isinstance(files, dict) or not is_whole or not files.keys() <= FILES:
        raise CheckpointError("pickle: expected the files of a model folder")
    with TemporaryDirectory() as folder:
        write_folder(Path(folder, "best"), files)
        return load_model(Path(folder, "best"))
