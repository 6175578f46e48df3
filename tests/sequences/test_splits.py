"""Rows that are held out: by class, in sets, every class learned."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from seqtrain.sequences.splits import PartSize, hold_out


def held(
    labels: list[int], part: PartSize, seed: int = 0, keys: list[int] | None = None
) -> list[int]:
    """Return the rows of one part. Keys are numbers of sets, from 0."""
    sets = None if keys is None else np.array(keys) + 1
    return hold_out(np.array(labels), {"part": part}, seed, sets)["part"].tolist()


CLASSES = st.lists(st.integers(0, 8), min_size=1, max_size=200)
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=1, max_size=60)
SHARES = st.floats(0.01, 0.99)


@given(CLASSES, SHARES, st.integers(0, 2**63 - 1))
def test_a_share_of_every_class_is_held_out(classes, share, seed):
    rows = held(classes, share, seed)
    assert rows == sorted(set(rows)) == held(classes, share, seed)
    for label in set(classes):
        count, taken = classes.count(label), sum(classes[row] == label for row in rows)
        assert min(int(count * share), count - 1) <= taken
        assert min(1, count - 1) <= taken <= min(count - 1, count * share + 1)


def test_a_class_with_two_rows_has_one_on_each_side_and_single_rows_take_nothing():
    assert len(held(np.repeat(np.arange(100), 3).tolist(), 0.1)) == 100
    labels = [*range(1000), *[1000] * 50]
    rows = held(labels, 0.1)
    assert 4 <= len(rows) <= 6
    assert {labels[row] for row in rows} == {1000}


@given(CLASSES, st.integers(1, 4), SHARES, SHARES, st.integers(0, 2**63 - 1))
def test_every_class_of_two_sets_is_on_both_sides(classes, size, share, other, seed):
    """Sets are groups of one class: texts that are equal, or the windows of an id."""
    sets = {label: [] for label in classes}
    for row, label in enumerate(classes):
        sets[label].append(row)
    keys = np.zeros(len(classes), int)
    for own in sets.values():
        for place, row in enumerate(own):
            keys[row] = 1 + own[place - place % size]
    found = hold_out(np.array(classes), {"validation": share, "test": other / 2}, seed, keys)
    out = {name: {classes[row] for row in rows} for name, rows in found.items()}
    learned = {classes[row] for row in set(range(len(classes))).difference(*found.values())}
    assert learned == set(classes)
    for label, own in sets.items():
        count = -(-len(own) // size)
        assert label in out["validation"] or count < 2


@given(PAIRS, SHARES, st.integers(0, 9))
def test_a_class_is_missing_from_a_share_only_if_another_would_lose_train(rows, share, seed):
    labels, keys = [row[0] for row in rows], [row[1] for row in rows]
    out = {keys[row] for row in held(labels, share, seed, keys)}
    sets = {label: {key for own, key in rows if own == label} for label in labels}
    for own in sets.values():
        if len(own) > 1 and not own & out:
            for key in own:
                assert any(others - out <= {key} for others in sets.values() if key in others)


@given(PAIRS, SHARES | st.integers(2, 4), st.integers(0, 9))
@example([(2, 5), (0, 2), (0, 5), (2, 6), (2, 0), (2, 1), (2, 2)], 4, 0)  # both sets of 0 in a part
@example([(0, 0), (0, 1), (0, 2), (1, 3), (1, 3)], 4, 0)  # all rows of 1 alike
@example([(0, i) for i in range(9)] + [(1, i) for i in range(9)] + [(2, 20)], 0.9, 0)  # all shared
def test_sets_stay_on_one_side_and_every_class_is_learned(rows, part, seed):
    labels, keys = [row[0] for row in rows], [row[1] for row in rows]
    parts: list[PartSize] = [part] if isinstance(part, float) else []
    parts += [] if isinstance(part, float) else [{"fold": i + 1, "of": part} for i in range(part)]
    found = [held(labels, each, seed, keys) for each in parts]
    assert sum(map(len, found)) == len({row for own in found for row in own})
    for own in found:
        learned = [row for row in range(len(rows)) if row not in own]
        assert {labels[row] for row in learned} == set(labels)
        assert not {keys[row] for row in own} & {keys[row] for row in learned}


def test_a_class_that_only_shares_its_sets_has_its_part_of_both_sides():
    """If sets counted as the class of their first row, a side could lack class 1."""
    labels, keys = [0, 1] * 200, [i // 2 for i in range(400)]
    for seed in range(20):
        rows = held(labels, 0.1, seed, keys)
        assert [sum(labels[row] == label for row in rows) for label in (0, 1)] == [20, 20]
    labels = [*[0] * 400, *[1] * 20]
    keys = [*range(400), *range(20)]
    for seed in range(20):
        rows = held(labels, 0.2, seed, keys)
        assert sum(labels[row] == 1 for row in rows) == 4
        assert 78 <= sum(labels[row] == 0 for row in rows) <= 82


@given(CLASSES, st.integers(2, 5))
def test_folds_share_out_every_class_evenly(labels, folds):
    found = [held(labels, {"fold": i + 1, "of": folds}) for i in range(folds)]
    several = [row for row, label in enumerate(labels) if labels.count(label) > 1]
    assert sorted(row for own in found for row in own) == (several if len(labels) >= folds else [])
    for label in set(labels):
        counts = [sum(labels[row] == label for row in own) for own in found]
        assert max(counts) - min(counts) <= 1


@given(CLASSES, st.floats(0.01, 0.3), st.integers(0, 2**63 - 1))
@example([0] * 30 + [1] * 400, 0.02, 0)
def test_validation_holds_ten_rows_of_each_class_that_has_thirty(classes, share, seed):
    labels = np.array(classes)
    rows = hold_out(labels, {"validation": share}, seed)["validation"]
    plain = hold_out(labels, {"test": share}, seed)["test"]
    for label in set(classes):
        count, taken = classes.count(label), int((labels[rows] == label).sum())
        assert taken >= 10 or count < 30
        assert taken <= max(10, int((labels[plain] == label).sum()) + 1)
        assert taken or count < 2
