"""Columns: what one fits, saves and loads encodes the same; what no fit returns isn't loaded."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from seqtrain.config import config_from_mapping
from seqtrain.sequences.dataset import PreparedData, prepare
from seqtrain.sequences.encoder import encode_for_prediction
from seqtrain.sequences.examples import Sequences, Steps
from seqtrain.sequences.preprocessing import IN_OTHER_FILES, Preprocessing
from seqtrain.tables.blocks import Coded

SAVED = TypeAdapter(Preprocessing)
STEPS = {
    "place": "token",
    "mood": {"token": True, "min_count": 2},
    "heat": "number",
    "gap": "order",
}
SECTIONS: dict[str, dict[str, Any]] = {
    "text": {"sequence": "text"},
    "subwords": {"sequence": "text"},
    "tokens": {"sequence": "text", "kind": "tokens"},
    "features": {"sequence": "series", "kind": "features", "missing": "mask"},
    "steps": {
        "id": "id",
        "order": "n",
        "steps": STEPS,
        "static": {"who": "token", "age": "number"},
    },
    "steps carried": {
        "id": "id",
        "order": "n",
        "steps": {"place": "token", "heat": "number", "gap": "order"},
        "missing": "last",
    },
    "steps by token": {
        "id": "id",
        "steps": {"place": "token", "heat": {"number": True, "by": "place"}},
        "number_bins": 4,
    },
}


def rows() -> list[dict[str, Any]]:
    draw = np.random.default_rng(0)
    return [
        {
            "text": " ".join(draw.choice(["a", "b", "c", "d"], 4)),
            "series": draw.normal(size=(3, 2)).round(3).tolist(),
            "id": f"i{row // 3}",
            "n": row,
            "place": str(draw.choice(["home", "work"])),
            "mood": str(draw.choice(["x", "y", "z"])),
            "heat": float(draw.normal()),
            "who": f"w{row // 3 % 2}",
            "age": row // 3,
            "label": f"l{row // 3 % 2}",
        }
        for row in range(60)
    ]


def ready(folder: Path, case: str) -> PreparedData:
    path = folder / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    config: dict[str, Any] = {"data": {"train": str(path), "label": "label", **SECTIONS[case]}}
    if case == "subwords":
        config["model"] = {"subwords": [2, 3]}
    return prepare(config_from_mapping(config))


@pytest.mark.parametrize("case", SECTIONS)
def test_a_saved_column_is_the_same(tmp_path: Path, case: str) -> None:
    fitted = ready(tmp_path, case).preprocessing
    values = saved_values(fitted)
    assert SAVED.validate_json(json.dumps(values)).completed(fitted.vocabularies()) == fitted


def saved_values(fitted: Preprocessing) -> Any:
    return SAVED.dump_python(fitted, mode="json", exclude=IN_OTHER_FILES)


def mutations(value: Any) -> list[Any]:
    """Return values that may take the place of a saved one, of other types and out of range."""
    others: list[Any] = [None, -1, 0, 1.5, "", "x", [], {}, True, [None], float("nan"), 2**70]
    return [other for other in others if type(other) is not type(value) or other != value]


def places(value: Any) -> list[list[Any]]:
    """Return the path of every value inside JSON."""
    found: list[list[Any]] = [[]]
    inner = value.items() if isinstance(value, dict) else []
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, own in inner:
        found += [[key, *path] for path in places(own)]
    return found


@pytest.mark.parametrize("case", SECTIONS)
def test_a_forged_column_is_refused_or_works(tmp_path: Path, case: str) -> None:
    """Each value in turn is replaced: the column raises, or encodes rows without an error."""
    fitted = ready(tmp_path, case).preprocessing
    values, tokens = saved_values(fitted), fitted.vocabularies()
    refused = 0
    for path in places(values["sequence"]):
        for other in mutations(values["sequence"]):
            forged = json.loads(json.dumps(values))
            inner, own = forged, ["sequence", *path]
            for key in own[:-1]:
                inner = inner[key]
            inner[own[-1]] = other
            try:
                loaded = SAVED.validate_json(json.dumps(forged)).completed(tokens)
            except ValueError:
                refused += 1
                continue
            rules = loaded.for_prediction(empty="unk")
            ((_, store),) = encode_for_prediction(rules, [example(rules)], "one", bad_rows="blank")
            assert store.values.ndim == 1 or store.values.shape[1] == loaded.input_size
            saved_values(loaded)
    assert refused > 20


def example(rules: Preprocessing) -> Sequences:
    """Return one sequence of a step, or an empty text."""
    content: Any = [""]
    offsets = static = None
    if rules.kind == "tokens":
        content = [[]]
    if rules.kind == "features":
        content = [np.zeros((1, rules.sequence.channels), np.float32)]
    if rules.steps is not None:
        content, offsets = step_of(rules.steps), np.array([0, 1])
    if rules.row_features is not None:
        static = step_of(rules.row_features)
    labels = Coded(np.array([-1], np.int32), [])
    return Sequences(content, np.array([1]), labels, offsets, static=static)


def step_of(table: Any) -> Steps:
    one = Coded(np.zeros(1, np.int32), ["home"])
    return Steps((one,) * len(table.tokens), np.zeros((1, table.channels), np.float32))
