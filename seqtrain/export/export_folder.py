"""Exporting a run's best model: a folder that is checked against the run before it is written."""

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from seqtrain.data.store import SequenceStore
from seqtrain.errors import ConfigError, RunError
from seqtrain.export.bundle import PACKAGE, bundled
from seqtrain.export.golden import golden_rows
from seqtrain.export.graph import import_onnx
from seqtrain.export.to_onnx import NGRAM_ROWS, check_exportable, to_onnx
from seqtrain.files.folder import write_folder
from seqtrain.files.reading import path_problem
from seqtrain.files.strict_json import to_json
from seqtrain.runs.destination import check_destination
from seqtrain.runs.finding import find, model_folder
from seqtrain.runs.model_folder import Model, load_model
from seqtrain.text import json_line

MODEL, PREPROCESSING, VOCABULARY = "model.onnx", "preprocessing.json", "vocabulary.json"
NGRAMS, SCRIPT, READING, GOLDEN = "ngrams.npz", "predict.py", "reading.zip", "golden.jsonl"
FORMAT_VERSION = 2
SOURCE = PACKAGE / "export" / "script.py"
TOLERANCE = 1e-5
"""How far a probability of the exported model may be from the run's."""


@dataclass(frozen=True)
class Exported:
    """What was written, with the bytes of each file.

    `rows` is how many golden rows were compared, `difference` their largest, of the probabilities.
    """

    folder: Path
    sizes: dict[str, int]
    rows: int
    difference: float


def export(run: str | Path, folder: str | Path, *, force: bool = False) -> Exported:
    """Write a run's best model as ONNX, with all that another program needs to use it.

    Args:
        run: a run directory or a model folder.
        folder: a new one.
        force: replace an earlier export.

    Raises:
        ConfigError: the folder isn't new, the model can't be exported, or a package is missing.
        CheckpointError: there is no whole model there.
        RunError: the exported model predicts otherwise than the run, or the disk is full.
    """
    target = Path(folder)
    check_destination(target, "export", "DIR", force=force)
    return export_model(load_model(model_folder(find(Path(run)).path)), target, force=force)


def export_model(model: Model, folder: Path, *, force: bool = False) -> Exported:
    """Write a model on the CPU as `export` does, all or nothing; raises what `export` does."""
    check_exportable(model.network.config)
    import_onnx()
    from seqtrain.export.script import ExportedModel  # imports onnxruntime, which may be missing

    fitted, onnx = model.preprocessing, to_onnx(model.network)
    sequences, store, wanted = golden_rows(model)
    ported = ExportedModel(onnx, fitted)
    difference = float(np.abs(ported.probabilities(store) - wanted.numpy()).max())
    if not difference <= TOLERANCE:
        raise RunError(
            f"export: probabilities differ by {difference:.1e} from the run's; at most "
            f"{TOLERANCE:.0e} is allowed, so nothing was written"
        )
    contents = {
        MODEL: onnx,
        PREPROCESSING: to_json({"format_version": FORMAT_VERSION, **fitted.to_json()}),
        VOCABULARY: to_json(
            {"tokens": list(fitted.vocabulary.tokens) if fitted.vocabulary else []}
        ),
        SCRIPT: SOURCE.read_bytes(),
        READING: bundled(SOURCE),
        GOLDEN: _golden(ported, sequences, store, wanted),
    }
    if fitted.ngrams is not None:
        tables = io.BytesIO()
        np.savez(tables, keys=fitted.ngrams.keys, idf=fitted.ngrams.idf)
        contents[NGRAMS] = tables.getvalue()
    check_destination(folder, "export", "DIR", force=force)  # the user may have filled it
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise path_problem(folder.parent, error, ConfigError, "choose another DIR") from None
    write_folder(Path(os.path.realpath(folder)), contents)
    sizes = {name: len(content) for name, content in contents.items()}
    return Exported(folder, sizes, len(sequences), difference)


def _golden(ported: Any, sequences: list[Any], store: SequenceStore, wanted: Tensor) -> bytes:
    lines = []
    for row, (sequence, probabilities) in enumerate(zip(sequences, wanted.tolist(), strict=True)):
        given = ported.inputs(store.__getitems__(np.array([row])))
        name = "input_ids" if store.values.ndim == 1 else "features"
        own = {name: given.pop(name)[0], **given}
        lines.append(
            {
                "sequence": sequence,
                **{k: x.tolist() for k, x in own.items() if k not in ("lengths", NGRAM_ROWS)},
                "label": ported.fitted.labels[int(np.argmax(probabilities))],
                "probabilities": probabilities,
            }
        )
    return "".join(json_line(line) + "\n" for line in lines).encode()
