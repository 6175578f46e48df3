from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.data import growing, row_numbers, splits
from seqtrain.data.row_numbers import first_alike
from seqtrain.data.splits import (
    Part,
    count_repeats,
    fingerprints,
    hold_out,
    stratified_split,
)
from seqtrain.data.store import SequenceStore
from tests.helpers.stores import StoreBuilder


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=200),
    st.floats(0.01, 0.99),
    st.integers(0, 2**63 - 1),
)
def test_a_split_parts_the_rows_class_by_class(
    classes: list[int], fraction: float, seed: int
) -> None:
    labels = np.array(classes)
    train, held_out = stratified_split(labels, fraction, seed)
    assert sorted([*train, *held_out]) == list(range(len(labels)))
    assert train.tolist() == sorted(train)
    assert held_out.tolist() == sorted(held_out)
    for label in set(classes):
        count = classes.count(label)
        taken = int((labels[held_out] == label).sum())
        assert taken <= min(count - 1, count * fraction + 1)
        assert taken >= min(count - 1, int(count * fraction - 1))
    again = stratified_split(labels, fraction, seed)
    assert (again[0] == train).all()


def test_small_classes_add_up_to_the_fraction() -> None:
    labels = np.repeat(np.arange(100), 3)
    assert len(stratified_split(labels, 0.1, 0)[1]) == 30


def test_classes_of_one_row_take_nothing_from_the_others() -> None:
    labels = np.array([*range(1000), *[1000] * 50])
    held_out = stratified_split(labels, 0.1, 0)[1]
    assert len(held_out) <= 6
    assert (labels[held_out] == 1000).all()


def test_the_seed_decides_which_rows() -> None:
    labels = np.zeros(100, dtype=np.int64)
    assert (stratified_split(labels, 0.5, 0)[1] != stratified_split(labels, 0.5, 1)[1]).any()


def build(*sequences: list[int]) -> SequenceStore:
    builder = StoreBuilder()
    for ids in sequences:
        builder.add_ids(ids, 0, 1)
    return builder.build()


def test_repeats_are_whole_equal_sequences() -> None:
    known = fingerprints(build([1, 2], [3], [4, 5, 6]))
    assert count_repeats(build([1, 2], [2, 1], [1], [3], [3], [4, 5]), known) == 3


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1), st.integers(1, 5))
def test_a_fingerprint_is_the_same_however_few_numbers_are_hashed_at_once(
    sequences: list[list[int]], hashed: int
) -> None:
    store = build(*sequences)
    whole = fingerprints(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "HASHED", hashed)
        assert fingerprints(store).tolist() == whole.tolist()


@pytest.mark.parametrize("compared", [1, 3, 2**20])
def test_equal_rows_are_known_by_the_first_of_them(
    monkeypatch: pytest.MonkeyPatch, compared: int
) -> None:
    monkeypatch.setattr(row_numbers, "COMPARED", compared)
    store = build([1, 2], [3], [1, 2], [2, 1], [3], [1], [1, 2])
    assert first_alike(fingerprints(store)).tolist() == [0, 1, 0, 3, 1, 5, 0]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40)), min_size=1, max_size=200),
    st.floats(0.01, 0.99),
)
def test_rows_that_are_alike_stay_on_one_side(rows: list[tuple[int, int]], fraction: float) -> None:
    labels, alike = (np.array(column) for column in zip(*rows, strict=True))
    train, held_out = stratified_split(labels, fraction, 0, alike)
    assert sorted([*train, *held_out]) == list(range(len(labels)))
    assert not set(alike[train]) & set(alike[held_out])
    classes = [int(labels[np.flatnonzero(alike == i)[0]]) for i in alike]
    assert {classes[row] for row in train} == set(classes)


def test_a_split_in_small_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    labels, alike = draw.integers(0, 4, 900), draw.integers(0, 500, 900)
    fractions: dict[str, Part] = {"test": 0.2, "validation": {"fold": 2, "of": 3}}
    whole = hold_out(labels, fractions, 0, alike)
    monkeypatch.setattr(row_numbers, "COMPARED", 50)
    monkeypatch.setattr(growing, "BLOCK", 64)
    for name, rows in hold_out(labels, fractions, 0, alike).items():
        assert rows.tolist() == whole[name].tolist()


def test_repeats_count_as_many_rows() -> None:
    alike = np.concatenate((np.arange(500), np.repeat(np.arange(500, 600), 5)))
    held_out = stratified_split(np.zeros(1000, dtype=np.int64), 0.1, 0, alike)[1]
    assert len(held_out) == 100


def test_without_repeats_the_split_is_what_it_was() -> None:
    labels = np.random.default_rng(0).integers(0, 5, 300)
    expected = [4, 5, 7, 8, 14, 29, 47, 55, 71, 101]
    assert stratified_split(labels, 0.1, 3, np.arange(300))[1].tolist()[:10] == expected


def test_a_second_part_leaves_the_first_as_it_was() -> None:
    labels = np.random.default_rng(0).integers(0, 3, 600)
    alike = np.arange(600) // 2
    parts = hold_out(labels, {"validation": 0.1, "test": 0.2}, 3, alike)
    assert parts["validation"].tolist() == stratified_split(labels, 0.1, 3, alike)[1].tolist()
    assert abs(len(parts["test"]) - 120) <= 2
    assert not set(alike[parts["validation"]]) & set(alike[parts["test"]])
    assert hold_out(labels, {}, 3) == {}
