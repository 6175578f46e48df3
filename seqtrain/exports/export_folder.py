"""Exporting a run's best model: a folder that is checked against the run before it is written.

Golden rows go with it: sequences with the predictions of the run, so that every port can test
itself. They are made up from the vocabulary, or around the mean of each channel: no row of the data
leaves with an exported model.
"""

import io
import os
import random
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import seqtrain
from seqtrain.data.columns.column_table import ColumnTable
from seqtrain.data.examples import Example, Steps
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.store import SequenceStore
from seqtrain.errors import ConfigError, DataError, RunError
from seqtrain.evaluation.logits import check_finite, predict_logits
from seqtrain.exports.to_onnx import to_onnx
from seqtrain.files.reading import path_problem
from seqtrain.files.writing import to_json, write_folder
from seqtrain.model.branches.ngrams import NGRAM_ROWS
from seqtrain.runs.destination import check_destination
from seqtrain.runs.model_folder import Model, load_model
from seqtrain.runs.run_directory import find, model_folder
from seqtrain.text import json_line

MODEL, PREPROCESSING, VOCABULARY = "model.onnx", "preprocessing.json", "vocabulary.json"
NGRAMS, SCRIPT, READING, GOLDEN = "ngrams.npz", "predict.py", "reading.zip", "golden.jsonl"
FORMAT_VERSION = 3
PACKAGE = Path(seqtrain.__file__).parent
SOURCE = PACKAGE / "exports" / "script.py"
ROOMS, EMPTY = ("config", "data", "files"), ("seqtrain/__init__.py", "seqtrain/config/__init__.py")
"""Folders whose modules go into the archive, and files of it that import what isn't there."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of every file in the archive, so that equal modules give equal bytes."""
TOLERANCE = 1e-5
"""How far a probability of the exported model may be from the run's."""
SEED = 0
LENGTHS = (1, 2, 3, 1, 5, 8, 13, 21, 34, 4, 55, 89, 6, 144)
"""Steps of the golden rows; those of one step stand among longer ones."""
TEXTS = (
    "It's 20% OFF, isn't it? naïve  café — ½ price; don't\tmiss (item_7)!",
    "東京 ΟΔΥΣΣΕΥΣ 😀 e\u0301 x̄ \u00a0 Ⅻ we'll've",
)
"""Texts on which tokenizers tend to differ."""


@dataclass(frozen=True)
class Exported:
    """What was written, and how many bytes.

    `rows` is how many golden rows were compared, `difference` their largest, of the probabilities.
    """

    folder: Path
    size: int
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
    return export_model(load_model(model_folder(find(Path(run)).path)), target)


def export_model(model: Model, folder: Path) -> Exported:
    """Write a model on the CPU as `export` does, all or nothing; raises what `export` does."""
    fitted, onnx = model.preprocessing, to_onnx(model.network)
    from seqtrain.exports.script import ExportedModel  # imports onnxruntime, which may be missing

    sequences, store, wanted = golden_rows(model)
    thresholds = model.thresholds if fitted.multi_label else []
    ported = ExportedModel(onnx, fitted, thresholds)
    difference = float(np.abs(ported.probabilities(store) - wanted.numpy()).max())
    if not difference <= TOLERANCE:
        allowed = f"at most {TOLERANCE:.0e} is allowed, so nothing was written"
        raise RunError(
            f"export: probabilities differ by {difference:.1e} from the run's; {allowed}"
        )
    contents = {
        MODEL: onnx,
        PREPROCESSING: to_json(
            {"format_version": FORMAT_VERSION, "thresholds": thresholds, **fitted.to_dict()}
        ),
        VOCABULARY: to_json(fitted.token_lists()),
        SCRIPT: SOURCE.read_bytes(),
        READING: bundled(),
        GOLDEN: _golden_lines(ported, sequences, store, wanted),
    }
    if fitted.ngrams is not None:
        tables = io.BytesIO()
        np.savez(tables, keys=fitted.ngrams.keys, idf=fitted.ngrams.idf)
        contents[NGRAMS] = tables.getvalue()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise path_problem(folder.parent, error, ConfigError, "choose another DIR") from None
    write_folder(Path(os.path.realpath(folder)), contents)
    size = sum(map(len, contents.values()))
    return Exported(folder, size, len(sequences), difference)


def golden_rows(model: Model) -> tuple[list[Any], SequenceStore, torch.Tensor]:
    """Return made-up sequences, as JSON and encoded, and each class's probability, (B, C).

    In JSON they stand under `sequence`, with data.static the facts beside them under `facts`.

    The same model gives the same ones.
    """
    rules = model.preprocessing.for_prediction()
    kept: list[Any] = []
    examples: list[Example] = []
    numbers = np.random.default_rng(SEED)
    for sequence in _sequences(rules):
        static: Any = None if rules.static is None else _drawn(rules.static, numbers, 1)
        example = Example(sequence, None, len(kept) + 1, static=static)
        try:
            [*rules.encode_chunks([[example]], "golden rows")]
        except DataError:  # empty or overlong, and the model takes none such
            continue
        examples.append(example)
        if isinstance(sequence, np.ndarray):
            vectors = sequence.tolist()
            sequence = [[None if np.isnan(x) else x for x in vector] for vector in vectors]
        if isinstance(sequence, Steps) and rules.steps is not None:
            sequence = rules.steps.rows(sequence)
        facts = None if rules.static is None else rules.static.rows(static)[0]
        kept.append({"sequence": sequence} | ({} if facts is None else {"facts": facts}))
    ((_, store),) = rules.encode_chunks([examples], "golden rows")
    logits = predict_logits(model.network, store, torch.device("cpu"))
    return kept, store, model.network.probabilities(check_finite(logits, store))


def _sequences(rules: Preprocessing) -> Iterator[Any]:
    """Yield sequences as a reader would, also empty and overlong ones."""
    lengths = [*LENGTHS, 0]
    if rules.lengths.max_length is not None:
        lengths.append(min(rules.lengths.max_length, 1000) + 7)
    numbers, draw = np.random.default_rng(SEED), random.Random(SEED)
    series = rules.series
    if series is not None:
        for length in lengths:
            shape = (length, series.channels)
            vectors = numbers.normal(series.scale.mean, series.scale.std, shape)
            if series.has_indicators:
                vectors[numbers.random(vectors.shape) < 0.1] = np.nan
            yield vectors.astype(np.float32)
        return
    if rules.steps is not None:
        for length in lengths:
            yield _drawn(rules.steps, numbers, length)
        return
    assert rules.vocabulary is not None, "text and tokens have a vocabulary"
    known = rules.vocabulary.tokens
    for length in lengths:
        tokens = [draw.choice(known) for _ in range(length)]
        if rules.kind == "tokens":
            yield [*tokens[:-1], "no such symbol"] if length > 2 else tokens
        else:
            yield " ".join(x.title() if i % 3 == 2 else x for i, x in enumerate(tokens))
    if rules.kind == "text":
        yield from TEXTS


def _drawn(coding: ColumnTable, numbers: np.random.Generator, length: int) -> Steps:
    """Return made-up steps: cells that the vocabularies have, numbers around each mean."""
    tokens = tuple(
        tuple(numbers.choice([*vocabulary.tokens, "no such symbol"], length).tolist())
        for vocabulary in coding.vocabularies
    )
    means, deviations = zip(*coding.scales().values(), strict=True) if coding.numbers else ((), ())
    drawn = numbers.normal(means, deviations, (length, len(means)))
    return Steps(tokens, drawn.astype(np.float32))


def _golden_lines(
    ported: Any, sequences: list[Any], store: SequenceStore, wanted: torch.Tensor
) -> bytes:
    lines = []
    for row, (sequence, probabilities) in enumerate(zip(sequences, wanted.tolist(), strict=True)):
        given = ported.inputs(store.__getitems__(np.array([row])))
        name = "input_ids" if store.values.ndim == 1 else "features"
        own = {name: given.pop(name)[0], **given}
        if "static" in own:
            own["static"] = own["static"][0]
        inputs = {k: x.tolist() for k, x in own.items() if k not in ("lengths", NGRAM_ROWS)}
        label = ported.decided(np.array(probabilities))[0]
        predicted = {"label": label, "probabilities": probabilities}
        lines.append(json_line({**sequence, **inputs, **predicted}) + "\n")
    return "".join(lines).encode()


def bundled() -> bytes:
    """Return a zip archive of the modules that read and encode rows.

    With them the script can't read a row otherwise than `seqtrain predict`. What they import at
    the top of the package is left out.
    """
    inner = [path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted([*PACKAGE.glob("*.py"), *inner]):
            name = path.relative_to(PACKAGE.parent).as_posix()
            text = b"" if name in EMPTY else path.read_bytes()
            archive.writestr(zipfile.ZipInfo(name, EPOCH), text, zipfile.ZIP_DEFLATED)
    return content.getvalue()
