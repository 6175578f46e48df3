"""Values of a model's files replaced: a clear refusal, or finite predictions."""

import json
import math
import random
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import seqtrain
from seqtrain.api.predict import predict
from seqtrain.errors import CheckpointError, SeqtrainError
from seqtrain.files.writing import write_folder
from tests.helpers.examples import seeds
from tests.helpers.tables import CONFIG as TABLE_CONFIG
from tests.helpers.tables import table, write_rows, write_table_project
from tests.helpers.tiny import CONFIG, fit, rows, series, write_jsonl, write_npz, write_text_project

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 2**31, 2**70, 1e308, -1e308, 1e-320, 0.5, float("nan")),
    *(float("inf"), "", "a", "token", "number", "\ud800", "\n", "../../x", "os.system", "x" * 5000),
    *([], [[]], [1], [None], ["a", "a"], [1e300] * 3, {}, {"a": 1}, {"kind": "token"}, {"": None}),
]


def text_model(folder: Path) -> str:
    write_text_project(folder)
    fit(folder, CONFIG, "model.ngrams=[1,2]", "model.subwords=[2,3]", "training.max_epochs=1")
    return "test.tsv"


def multi_label_model(folder: Path) -> str:
    examples = [
        {"text": text, "label": [label, "odd"][: 1 + i % 2], "land": "xyz"[i % 3], "age": i % 7}
        for i, (text, label) in enumerate(rows(40, seed=1))
    ]
    write_jsonl(folder / "train.jsonl", examples)
    data = "data: {train: train.jsonl, validation: 0.3, sequence: text, label: label, "
    data += "label_separator: '|', static: {land: token, age: number}}"
    config = "\n".join([data, *CONFIG.splitlines()[1:]])
    fit(folder, config, "model.ngrams=[1,1]", "training.max_epochs=1")
    return "train.jsonl"


def table_model(folder: Path) -> str:
    write_table_project(folder)
    sets = "model.trees=true", "model.ngrams={place: [1, 2]}", "training.max_epochs=1"
    fit(folder, TABLE_CONFIG, *sets)
    return "test.csv"


def numbers_model(folder: Path) -> str:
    examples = [
        row | {"heat": row["heat"] if i % 9 else None} for i, row in enumerate(table(40, 3))
    ]
    write_rows(folder / "train.csv", examples)
    write_rows(folder / "test.csv", examples[:40])
    keys = "data.steps={heat: number, age: number}", "data.static=null", "data.missing=mask"
    fit(folder, TABLE_CONFIG, *keys, "model.kernels=true", "training.max_epochs=1")
    return "test.csv"


def series_model(folder: Path) -> str:
    write_npz(folder / "train.npz", series(40, seed=3), [f"c{i % 2}" for i in range(40)])
    data = "data: {train: train.npz, kind: features, validation: 0.3, standardize: both}"
    config = "\n".join([data, *CONFIG.splitlines()[1:]])
    sets = "model.convolutions=[[4,3,1]]", "model.kernels=true", "model.trees=true"
    fit(folder, config, *sets, "training.max_epochs=1")
    return "train.npz"


def quantiles_model(folder: Path) -> str:
    write_table_project(folder)
    steps = "{place: token, heat: {number: true, by: place}, since: order}"
    sets = "data.number_bins=3", "data.missing=mask", "model.trees=true", f"data.steps={steps}"
    fit(folder, TABLE_CONFIG, *sets, "training.max_epochs=1")
    return "test.csv"


def carried_model(folder: Path) -> str:
    write_table_project(folder)
    sets = "data.missing=last", "model.trees=true", "data.number_bins=4"
    fit(folder, TABLE_CONFIG, *sets, "training.max_epochs=1")
    return "test.csv"


def rare_model(folder: Path) -> str:
    examples = [{"l": "no" if i % 6 else "rare", "s": f"a b{i % 6} c{i % 5}"} for i in range(180)]
    write_jsonl(folder / "train.jsonl", examples)
    data = "data: {train: train.jsonl, validation: 0.5, kind: tokens, sequence: s, label: l}"
    config = "\n".join([data, *CONFIG.splitlines()[1:]])
    sets = "model.trees=true", "model.ngrams=[1,2]", "training.logit_adjustment=0.3"
    fit(folder, config, *sets, "training.max_epochs=1")
    return "train.jsonl"


MAKERS = {
    "quantiles": quantiles_model,
    "carried numbers": carried_model,
    "rare class": rare_model,
    "text": text_model,
    "multi-label": multi_label_model,
    "table": table_model,
    "numbers": numbers_model,
    "series": series_model,
}


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a JSON document. Long lists count with three items."""
    if path:
        yield path
    inner: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inner = [*enumerate(value)][:3]
    for key, each in inner:
        yield from paths_in(each, (*path, key))


def changed(document: Any, path: tuple[Any, ...], draw: random.Random) -> Any:
    """Return a copy of a document with another value, key or item at a path."""
    copy = deepcopy(document)
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    kind, last = draw.random(), path[-1]
    if kind < 0.1:
        del inner[last]
    elif kind < 0.2 and isinstance(inner, dict):
        inner[draw.choice(["more", "kind", "name", ""])] = draw.choice(VALUES)
    elif kind < 0.2:
        inner.append(deepcopy(inner[last]))
    elif kind < 0.3 and isinstance(inner, dict):
        inner[last] = deepcopy(inner[draw.choice([*inner])])
    elif kind < 0.4 and isinstance(inner[last], int | float) and not isinstance(inner[last], bool):
        inner[last] = draw.choice([-inner[last], inner[last] + 1, str(inner[last]), [inner[last]]])
    else:
        inner[last] = draw.choice(VALUES)
    return copy


@pytest.fixture(scope="module", params=MAKERS)
def model(request, tmp_path_factory) -> tuple[Path, str, dict[str, bytes]]:
    """A folder with data and a run, the name of a file to predict, and the model's files."""
    folder = tmp_path_factory.mktemp(request.param)
    name = MAKERS[request.param](folder)
    best = folder / "run" / "best"
    files = {x.name: x.read_bytes() for x in best.iterdir() if x.name != "manifest.json"}
    return folder, name, files


def fault_of(folder: Path, data: Path) -> str | None:
    """Return what is wrong with the answer to a crafted model folder, or None; "" if it loads."""
    try:
        classifier = seqtrain.load(folder)
    except CheckpointError as error:
        lines = error.problems
        if len(lines) != 1 or str(folder) not in lines[0] or len(lines[0]) > 600:
            return f"refused in {lines}"
        return f"refused in words of Python: {lines}" if "Error" in lines[0] else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [*predict(data, classifier)]
    except SeqtrainError:
        return ""
    if not all(math.isfinite(each.probability) for each in found):
        return "a probability isn't finite"
    return "" if all({*x.probabilities} == {*classifier.labels} for x in found) else "other labels"


def test_changed_descriptions_are_refused_or_predict_finite_probabilities(model, tmp_path):
    folder, name, files = model
    documents = {x: json.loads(files[x]) for x in files if x.endswith(".json")}
    places = [(file, path) for file, x in documents.items() for path in paths_in(x)]
    loaded, faults = 0, list[Any]()
    for seed in seeds(40):
        draw = random.Random(seed)
        file, path = places[draw.randrange(len(places))]
        document = changed(documents[file], path, draw)
        write_folder(tmp_path / "m", files | {file: json.dumps(document).encode()})
        try:
            fault = fault_of(tmp_path / "m", folder / name)
        except Exception as error:
            fault = f"ended as a bug: {type(error).__name__}: {error}"
        loaded += fault == ""
        if fault:
            faults.append((seed, fault[:300], file, path))
    assert not faults
    assert loaded


NUMBERS = (0, 1, -1, 2, 7, 2**31, -(2**31), 2**62, -(2**63), 1e30, -1e38, math.nan, math.inf)


def forged(arrays: dict[str, np.ndarray], draw: random.Random) -> dict[str, np.ndarray]:
    """Return tensors of which one has other numbers, another shape or type, or is missing."""
    name = draw.choice(sorted(arrays))
    array, kind = arrays[name].copy(), draw.random()
    if kind < 0.6 and array.size:
        value = draw.choice([x for x in NUMBERS if array.dtype.kind == "f" or type(x) is int])
        number = draw.choice([1, 3, array.size])
        array.flat[[draw.randrange(array.size) for _ in range(number)]] = value
    elif kind < 0.7:
        array = np.sort(array, axis=-1)[..., ::-1].copy() if array.ndim else array[None]
    elif kind < 0.8:
        array = draw.choice(
            [np.atleast_1d(array)[:-1], array[None], array.reshape(-1), np.repeat(array, 2)]
        )
    elif kind < 0.9:
        array = array.astype(draw.choice([np.float64, np.float32, np.int64, np.int32, np.uint8]))
    else:
        return {key: own for key, own in arrays.items() if key != name} | draw.choice(
            [{}, {"more": array}, {name + ".x": array}, {"head.weight": array}]
        )
    return arrays | {name: array}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_changed_tensors_are_refused_or_predict_finite_probabilities(model, tmp_path):
    folder, name, files = model
    tensors = {x: safetensors.numpy.load(files[x]) for x in files if x.endswith(".safetensors")}
    faults = list[Any]()
    for seed in seeds(10):
        draw = random.Random(seed)
        file = draw.choice(sorted(tensors))
        content = safetensors.numpy.save(forged(tensors[file], draw))
        write_folder(tmp_path / "m", files | {file: content})
        try:
            fault = fault_of(tmp_path / "m", folder / name)
        except Exception as error:
            fault = f"ended as a bug: {type(error).__name__}: {error}"
        if fault:
            faults.append((seed, fault[:300], file))
    assert not faults
