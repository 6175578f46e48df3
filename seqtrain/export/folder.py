"""The folder that an export writes, checked against the run before anything is written."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.errors import ConfigError, RunError
from seqtrain.export.classifier import check_exportable, to_onnx
from seqtrain.export.golden import GoldenRow, golden_rows
from seqtrain.export.packages import import_onnx
from seqtrain.export.preprocessing import exported_preprocessing
from seqtrain.files.folder import write_folder
from seqtrain.files.reading import path_problem
from seqtrain.files.strict_json import to_json
from seqtrain.runs.destination import check_destination
from seqtrain.runs.model_folder import Model
from seqtrain.text import json_line, quote

MODEL, PREPROCESSING, VOCABULARY = "model.onnx", "preprocessing.json", "vocabulary.json"
NGRAMS, SCRIPT, GOLDEN = "ngrams.npz", "predict.py", "golden.jsonl"
TOLERANCE = 1e-5
"""How far a probability of the exported model may be from the run's."""


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        folder: where.
        sizes: bytes of each file.
        rows: golden rows that were compared.
        difference: of the probabilities, the largest.
    """

    folder: Path
    sizes: dict[str, int]
    rows: int
    difference: float


def export_model(model: Model, folder: Path, *, force: bool = False) -> Exported:
    """Write a model as ONNX, with all that another program needs to use it; all or nothing.

    Args:
        model: on the CPU.
        folder: a new one.
        force: replace an earlier export.

    Raises:
        ConfigError: the folder isn't new, the model can't be exported, or a package is missing.
        RunError: the exported model answers differently from the run, or the disk is full.
    """
    check_exportable(model.network.config)
    import_onnx()
    rules = exported_preprocessing(model.preprocessing)
    vocabulary, ngrams = model.preprocessing.vocabulary, model.preprocessing.ngrams
    tokens = list(vocabulary.tokens) if vocabulary else []
    tables: dict[str, npt.NDArray[Any]] = {}
    if ngrams is not None:
        tables = {"keys": ngrams.keys, "idf": ngrams.idf}
    onnx, rows = to_onnx(model.network), golden_rows(model)
    ported = _import_script().Model(onnx, json.loads(to_json(rules)), tokens, tables)
    difference = _compared(ported, rows)
    contents = {
        MODEL: onnx,
        PREPROCESSING: to_json(rules),
        VOCABULARY: to_json({"tokens": tokens}),
        SCRIPT: files("seqtrain.export").joinpath(SCRIPT).read_bytes(),
        GOLDEN: "".join(json_line(row.to_json()) + "\n" for row in rows).encode(),
    }
    if tables:
        contents[NGRAMS] = _npz(tables)
    check_destination(folder, "export", "DIR", force=force)  # the user may have filled it
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise path_problem(folder.parent, error, ConfigError, "choose another DIR") from None
    write_folder(Path(os.path.realpath(folder)), contents)
    sizes = {name: len(content) for name, content in contents.items()}
    return Exported(folder, sizes, len(rows), difference)


def _npz(arrays: dict[str, npt.NDArray[Any]]) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type] # numpy's stubs mix arrays and options
    return content.getvalue()


def _compared(ported: Any, rows: list[GoldenRow]) -> float:
    """Return the largest difference between the run's probabilities and those of `predict.py`.

    Args:
        ported: the exported model.
        rows: that both answer, here all in one batch.

    Raises:
        RunError: it is larger than TOLERANCE, or a sequence is read differently.
    """
    reader = _import_script().Rows(GOLDEN, ported.rules)
    for row in rows:
        ported.unknown.clear()
        given = ported.inputs([ported.encode(reader.of_json(row.sequence))])
        if not all(_alike(given[name], values) for name, values in row.inputs.items()):
            raise RunError(f"export: predict.py reads {quote(str(row.sequence), 40)} otherwise")
    encoded = [ported.encode(reader.of_json(row.sequence)) for row in rows]
    wanted = np.array([row.probabilities for row in rows])
    difference = float(np.abs(ported.probabilities(encoded) - wanted).max())
    if not difference <= TOLERANCE:
        raise RunError(
            f"export: probabilities differ by {difference:.1e} from the run's; at most "
            f"{TOLERANCE:.0e} is allowed, so nothing was written"
        )
    return difference


def _import_script() -> Any:
    """Return predict.py as a module: it imports onnxruntime, which may be missing."""
    from seqtrain.export import predict

    return predict


def _alike(found: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> bool:
    """Whether an input for one row is the run's; of padded ones, without the axis of rows."""
    found = found.reshape(wanted.shape) if found.size == wanted.size else found
    if wanted.dtype == np.float32:
        return found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-5, atol=1e-6)
    return np.array_equal(found, wanted)
