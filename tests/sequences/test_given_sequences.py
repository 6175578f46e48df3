"""Sequences given from Python are taken whole, or refused in words."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch

from seqtrain.api.prediction_input import given_cell
from seqtrain.sequences.content import read_content
from seqtrain.sequences.labels import LABEL_TYPES, LabelReader
from seqtrain.tables.blocks import TEXT, BadCellError
from seqtrain.tables.python_values import python_value


def sequence_from_python(value: Any, kind: str) -> Any:
    """Return the sequence in a Python value, as `predict` reads it."""
    cell = given_cell(value, kind)
    problems: dict[int, str] = {}
    (found,) = read_content({TEXT: [cell]}, problems, kind=kind)
    if problems:
        raise BadCellError(problems[0])
    return found


ROWS = [[1.0, 2.0], [3.0, 4.5]]


@pytest.mark.parametrize(
    "sequence",
    [
        ROWS,
        tuple(map(tuple, ROWS)),
        np.array(ROWS),
        np.array(ROWS, dtype=">f4"),
        np.array(ROWS, dtype=np.float16),
        np.array(ROWS, dtype=object),
        [[Decimal("1"), Decimal("2")], [Decimal("3"), Decimal("4.5")]],
        torch.tensor(ROWS),
        torch.tensor(ROWS, dtype=torch.bfloat16),
        torch.tensor(ROWS, dtype=torch.float64).T.contiguous().T,
        torch.tensor(ROWS).to_sparse(),
        torch.tensor(ROWS, requires_grad=True),
    ],
    ids=lambda sequence: f"{type(sequence).__name__}-{getattr(sequence, 'dtype', '')}",
)
def test_numbers_of_any_type_are_the_same_features(sequence):
    found = sequence_from_python(sequence, "features")
    assert found.dtype == np.float32
    assert found.tolist() == ROWS


def test_missing_values_and_one_channel():
    found = sequence_from_python([1, None, np.nan], "features")
    assert np.array_equal(found, np.array([[1], [np.nan], [np.nan]]), equal_nan=True)
    masked = np.ma.masked_array([5, 6], mask=[0, 1])
    assert np.array_equal(sequence_from_python(masked, "features"), [[5], [np.nan]], equal_nan=True)


@pytest.mark.parametrize(
    ("sequence", "words"),
    [
        ([[10**400, 1]], "infinite or too large for float32"),
        ([[1e300, 1]], "step 1: 1e\\+300 is infinite or too large"),
        (np.array([[1.0, np.inf]]), "infinite or too large"),
        (torch.tensor(ROWS) * 1j, "type complex64"),
        ([[1j, 2]], "expected a number"),
        (np.array([[1j, 2]], dtype=object), "expected a number, found '1j'"),
        (np.zeros((2, 2), dtype="datetime64[s]"), "type datetime64"),
        (np.zeros((2, 2), dtype="timedelta64[s]"), "type timedelta64"),
        ([["1", "two"]], "expected a number, found 'two'"),
        ([[object(), 1]], "expected a number, found '<object"),
        ([[1, 2], [3]], "step 2: 1 value, but step 1 has 2"),
        ([1, [2]], "found a list"),
        (np.zeros((1, 2, 3)), "found a list"),
        (3, "expected a list of vectors or numbers, found a number"),
        ({3}, "found a set"),
    ],
)
def test_what_is_no_float32_is_refused(sequence, words):
    with pytest.raises(BadCellError, match=words):
        sequence_from_python(sequence, "features")


def test_texts_and_symbols():
    assert sequence_from_python("a b", "text") == "a b"
    assert (
        sequence_from_python(("a", 1), "tokens")
        == sequence_from_python("a 1", "tokens")
        == ["a", "1"]
    )
    with pytest.raises(BadCellError, match="thousands of digits"):
        sequence_from_python([10**5000], "tokens")
    for sequence, kind in ((b"\xff", "text"), ([None], "tokens"), ({"a"}, "tokens")):
        with pytest.raises(BadCellError, match=r"found (a bytes|null|a set)"):
            sequence_from_python(sequence, kind)


def test_sentences_and_chats_are_joined_as_a_file_s_are():
    assert sequence_from_python(["rise", "fall"], "text") == "rise ¶ fall"
    chat = [{"role": "user", "content": "rise"}, {"role": "bot", "content": "fall"}]
    assert sequence_from_python(tuple(chat), "text") == "user : rise ¶ bot : fall"
    with pytest.raises(BadCellError, match="found a number"):
        sequence_from_python(["rise", 1.5], "text")


@pytest.mark.parametrize("other", [datetime(2024, 1, 2), np.zeros(2), None, 1])
def test_labels_of_a_table_may_be_lists_and_other_values(other):
    labels = LabelReader(None)
    labels.read([["x", "y"], python_value(other)])
    assert labels.type in LABEL_TYPES
