"""Stores return what was put in."""

import subprocess
import sys

import numpy as np
import pytest

from seqtrain.sequences.batch import collate
from tests.helpers.stores import store_of


def test_rows_are_indexed_as_those_of_a_list():
    rows = store_of([[2, 3], [4], [5, 6, 7]], labels=[0, 1, 2])
    for index in (-3, -1, np.int64(-2), 0, 2, np.int32(1)):
        values, label = rows[index]
        assert values.tolist() == [[2, 3], [4], [5, 6, 7]][index]
        assert label == [0, 1, 2][index]
    for index in (3, -4, 10**9):
        with pytest.raises(IndexError):
            rows[index]
    with pytest.raises(TypeError):
        rows["1"]  # type: ignore[index]
    assert [label for _, label in rows] == [0, 1, 2]


def test_items_of_several_stores_are_one_store():
    some = [store_of([[2, 3], [4]], labels=[0, 1]), store_of([[5, 6, 7]], labels=[2])]
    batch = collate([some[1][0], some[0][-1]])
    assert batch.input_ids.tolist() == [[5, 6, 7], [4, 0, 0]]
    assert batch.labels.tolist() == [2, 1]


def test_a_store_is_a_dataset_of_torch():
    code = "import torch; from seqtrain.sequences.store import SequenceStore as S;"
    code += "assert issubclass(S, torch.utils.data.Dataset)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
