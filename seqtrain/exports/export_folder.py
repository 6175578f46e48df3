"""Export of a run's best model: a folder that is checked against the run before it is written."""

import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

import seqtrain
from seqtrain.errors import ConfigError, RunError
from seqtrain.evaluation.logits import check_finite, predict_logits
from seqtrain.exports.golden_rows import golden_rows
from seqtrain.exports.onnx import FEATURES, IDS, LENGTHS, NGRAM_COUNTS, STATIC, to_onnx
from seqtrain.files.reading import path_problem
from seqtrain.files.saved import SavedObject
from seqtrain.files.writing import to_json, write_folder
from seqtrain.runs.model_folder import VOCABULARY, Model
from seqtrain.sequences.preprocessing import IN_OTHER_FILES, Preprocessing
from seqtrain.text import json_line

MODEL, PREPROCESSING = "model.onnx", "preprocessing.json"
NGRAMS_FILE, SCRIPT, MODULES_FILE, GOLDEN_FILE = (
    "ngrams.npz",
    "predict.py",
    "reading.zip",
    "golden.jsonl",
)
PACKAGE = Path(seqtrain.__file__).parent
SOURCE = PACKAGE / "exports" / "script.py"
ROOMS = ("sequences", "tables", "files")
"""Folders of the package whose modules go into reading.zip."""
EMPTIED = ("seqtrain/__init__.py",)
"""Files that are empty in reading.zip, because they import modules that it doesn't have."""
ARCHIVE_TIME = (1980, 1, 1, 0, 0, 0)
"""Time of every file in the archive, so that equal modules give equal bytes."""
TOLERANCE = 1e-5
"""Largest allowed difference between probabilities of the exported model and of the run."""


class ExportedRules(SavedObject):
    """Content of preprocessing.json.

    Attributes:
        format_version: Version of exported folders.
        thresholds: Threshold of each class, as `Model.thresholds` has them.
        has_ngrams: True if n-grams are features. They are in ngrams.npz.
        preprocessing: Rules of the preprocessing, without the parts that have separate files.
    """

    format_version: Literal[4] = 4
    thresholds: list[float]
    has_ngrams: bool
    preprocessing: Preprocessing


@dataclass(frozen=True)
class Exported:
    """Result of an export.

    Attributes:
        folder: Folder that was written.
        size: Total size of its files in bytes.
        rows: Number of golden rows whose probabilities were compared.
        difference: Largest difference between probabilities of the exported model and of the run.
    """

    folder: Path
    size: int
    rows: int
    difference: float


def export_model(model: Model, folder: Path) -> Exported:
    """Export a model to a folder, which is written completely or not at all.

    Before it is written, the exported model must predict golden rows as the model does.

    Args:
        model: The model, on the CPU.
        folder: Folder to write. If it exists, it is replaced with all of its files. Missing parents
            are created.

    Raises:
        ConfigError: If the model can't be exported, a package is missing, or the parent of the
            folder can't be created.
        RunError: If the exported model predicts golden rows with probabilities that differ by more
            than `TOLERANCE` from the model's. Also if a probability isn't finite, or the folder
            can't be written.
    """
    if model.preprocessing.pretrained is not None:
        raise ConfigError(
            "export: model.pretrained can't be exported, because its tokenizer and encoder aren't "
            "part of the graph; train without model.pretrained to export the model"
        )
    onnx = to_onnx(model.network)
    from seqtrain.exports.script import ExportedModel  # needs onnxruntime, which may be missing

    fitted = model.preprocessing
    exported = ExportedModel(onnx, fitted, model.thresholds)
    rows, store = golden_rows(fitted)
    logits = check_finite(predict_logits(model.network, store, torch.device("cpu")), store)
    expected = model.network.probabilities(logits).numpy()
    difference = float(np.abs(exported.probabilities(store) - expected).max())
    if not difference <= TOLERANCE:
        raise RunError(
            f"export: probabilities differ by {difference:.1e} from the run's; at most "
            f"{TOLERANCE:.0e} is allowed, so nothing was written"
        )
    lines = []
    for number, row in enumerate(rows):
        inputs = exported.inputs(store.__getitems__(np.array([number])))
        label, _ = exported.decide(expected[number])
        lines.append(_golden_line(row, inputs, label, expected[number]))
    rules = ExportedRules(
        thresholds=model.thresholds,
        has_ngrams=fitted.ngrams is not None,
        preprocessing=fitted,
    )
    contents = {
        MODEL: onnx,
        PREPROCESSING: rules.to_json(exclude={"preprocessing": IN_OTHER_FILES}),
        VOCABULARY: to_json(fitted.vocabularies()),
        SCRIPT: SOURCE.read_bytes(),
        MODULES_FILE: archive_of_modules(),
        GOLDEN_FILE: "".join(lines).encode(),
    }
    if fitted.ngrams is not None:
        arrays = io.BytesIO()
        columns = np.array(fitted.ngrams.columns)
        np.savez(arrays, columns=columns, keys=fitted.ngrams.keys, idf=fitted.ngrams.idf)
        contents[NGRAMS_FILE] = arrays.getvalue()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise path_problem(folder.parent, error, ConfigError, "choose another DIR") from None
    write_folder(Path(os.path.realpath(folder)), contents)
    size = sum(len(content) for content in contents.values())
    return Exported(folder, size, len(rows), difference)


def _golden_line(
    row: dict[str, Any], inputs: dict[str, Any], label: str, probabilities: Any
) -> str:
    """Return a line of golden.jsonl.

    The object has a sequence, its row features, the inputs of the graph, the predicted label, and
    the probability of each class. The inputs lack the length and the row of each n-gram, because
    these follow from the other inputs.

    Args:
        row: The sequence and its row features.
        inputs: Arrays of the graph's inputs, by name.
        label: The predicted label.
        probabilities: Probability of each class, (C,).
    """
    values = dict(row)
    for name, array in inputs.items():
        if name not in (LENGTHS, NGRAM_COUNTS):
            is_padded = name in (IDS, FEATURES, STATIC)
            values[name] = (array[0] if is_padded else array).tolist()
    return json_line({**values, "label": label, "probabilities": probabilities.tolist()}) + "\n"


def archive_of_modules() -> bytes:
    """Return the content of reading.zip, an archive of the modules that read and encode rows.

    It has the modules at the top of the package and those in `ROOMS`. With these modules predict.py
    reads every row as `seqtrain predict` does.
    """
    inner = [path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted([*PACKAGE.glob("*.py"), *inner]):
            name = path.relative_to(PACKAGE.parent).as_posix()
            text = b"" if name in EMPTIED else path.read_bytes()
            archive.writestr(zipfile.ZipInfo(name, ARCHIVE_TIME), text, zipfile.ZIP_DEFLATED)
    return content.getvalue()
