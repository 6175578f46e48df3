"""What happens to rows on their way into a store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.data.encoding import Encoder, EncodingReport, LengthPolicy, unknown_shares
from seqtrain.data.examples import Example
from seqtrain.data.store import SequenceStore
from seqtrain.data.tokenizers import SYMBOLS
from seqtrain.data.vocabulary import UNK, FixedIndex
from seqtrain.errors import DataError

DIGITS = FixedIndex({str(digit): digit + 2 for digit in range(10)}, UNK)
LABELS = FixedIndex({"x": 0, "y": 1}, -1)


def encode(
    *sequences: Any,
    kind: str = "text",
    labels: str = "",
    stop_at_first: bool = False,
    max_length: int | None = None,
    overlong: str = "head",
    empty: str = "error",
    **options: Any,
) -> tuple[SequenceStore, EncodingReport]:
    encoder = Encoder(
        policy=LengthPolicy(max_length, overlong, empty),
        tokenizer=SYMBOLS if kind == "text" else None,
        index=DIGITS,
        label_index=LABELS,
        **options,
    )
    examples = [
        Example(sequence, label, line)
        for line, (sequence, label) in enumerate(
            zip(sequences, labels or "x" * len(sequences), strict=True), start=2
        )
    ]
    return encoder.encode(examples, "f.csv", stop_at_first=stop_at_first)


def complaints(*args: Any, **options: Any) -> tuple[str, ...]:
    with pytest.raises(DataError) as caught:
        encode(*args, **options)
    return caught.value.problems


def ids(store: SequenceStore) -> list[str]:
    return ["".join(str(i - 2) for i in store[row][0]) for row in range(len(store))]


@pytest.mark.parametrize(
    ("overlong", "kept"), [("head", "012"), ("tail", "456"), ("middle", "234")]
)
def test_the_part_of_an_overlong_sequence_that_is_kept(overlong: str, kept: str) -> None:
    store, report = encode("0123456", "789", "01", max_length=3, overlong=overlong)
    assert ids(store) == [kept, "789", "01"]
    assert (report.rows, report.truncated) == (3, 1)


def test_overlong_and_empty_rows_are_errors_where_asked_with_their_lines() -> None:
    assert complaints("0123", "01", "", max_length=3, overlong="error") == (
        "f.csv:2: 4 steps; data.max_length allows 3 (data.overlong: head, tail or middle cuts)",
        "f.csv:4: the sequence is empty; data.empty: drop or unk, set before training, "
        "accepts such rows",
    )


def test_many_bad_rows_are_counted_and_the_first_five_shown() -> None:
    problems = complaints(*[""] * 8)
    assert [problem.split(":")[1] for problem in problems[:5]] == ["2", "3", "4", "5", "6"]
    assert problems[5:] == ("f.csv: 8 rows can't be used (3 not shown)",)


def test_prediction_stops_at_the_first_bad_row() -> None:
    problems = complaints("1", "", "", stop_at_first=True)
    assert len(problems) == 1
    assert problems[0].startswith("f.csv:3:")


def test_empty_rows_are_dropped_or_read_as_unknown_and_counted() -> None:
    dropped, report = encode("1", "", "2", empty="drop")
    assert ids(dropped) == ["1", "2"]
    assert dropped.lines.tolist() == [2, 4]
    assert (report.rows, report.dropped) == (2, 1)
    filled, report = encode("1", "", "2", empty="unk")
    assert [filled[row][0].tolist() for row in range(3)] == [[3], [UNK], [4]]
    assert (report.rows, report.filled) == (3, 1)


def test_labels_that_train_lacks_are_reported_with_their_lines() -> None:
    store, report = encode(*"1234567", labels="xyzzzzz"[:7])
    assert store.labels.tolist() == [0, 1, -1, -1, -1, -1, -1]
    assert report.unknown_labels == 5
    assert report.unknown_label_rows[0] == (
        "f.csv:4: label 'z' doesn't occur in train; it counts as wrong"
    )
    _, report = encode(*"12345678", labels="z" * 8)
    assert (report.unknown_labels, len(report.unknown_label_rows)) == (8, 5)


def test_rows_of_a_folder_are_named_by_their_own_file() -> None:
    encoder = Encoder(
        policy=LengthPolicy(None, "head", "error"),
        tokenizer=SYMBOLS,
        index=DIGITS,
        label_index=LABELS,
    )
    rows = [Example("1", "z", 1, "d/z.txt"), Example("2", "x", 1, "d/x.txt")]
    _, report = encoder.encode(rows, "d")
    assert report.unknown_label_rows[0].startswith("d/z.txt:1: label 'z'")
    with pytest.raises(DataError, match=r"^d/x\.txt:7: the sequence is empty"):
        encoder.encode([Example("1", "x", 1, "d/z.txt"), Example("", "x", 7, "d/x.txt")], "d")


def test_unknown_shares_count_each_sequences_own_steps() -> None:
    store, _ = encode("1a", "bcd", "12")
    assert unknown_shares(store) == [0.5, 1.0, 0.0]
    assert unknown_shares(encode()[0]) == []


def vectors(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32).reshape(len(rows), len(rows[0]) if rows else 0)


NAN, INF = float("nan"), float("inf")


def test_leading_empty_series_are_as_wide_as_the_first_that_has_steps() -> None:
    empty = np.zeros((0, 0), dtype=np.float32)
    full = vectors([1, 2, 3], [4, 5, 6])
    store, report = encode(empty, full, empty, kind="features", empty="unk")
    assert store.values.shape == (4, 3)
    assert np.isnan(store.values[[0, 3]]).all()
    assert (store[1][0] == full).all()
    assert report.filled == 2
    store, report = encode(empty, full, kind="features", empty="drop")
    assert (store.values == full).all()
    assert report.dropped == 1


def test_series_without_any_step_are_refused() -> None:
    empty = np.zeros((0, 0), dtype=np.float32)
    assert complaints(empty, empty, kind="features", empty="unk") == (
        "f.csv: every sequence is empty; expected feature vectors",
    )


def test_bad_feature_values_are_named_by_line_and_step() -> None:
    rows = (
        vectors([1, 2]),
        vectors([1, 2], [NAN, 3]),
        vectors([1, 2], [3, 4], [INF, 3]),
        vectors([1, 2, 3]),
    )
    assert complaints(*rows, kind="features") == (
        "f.csv:3: step 2: missing value; data.missing: mask accepts them",
        "f.csv:4: step 3: infinite value; expected finite numbers",
        "f.csv:5: 3 channels; expected 2",
    )
    assert len(encode(*rows[:2], kind="features", missing="mask")[0]) == 2


def test_a_series_of_another_width_is_named_by_its_own_file() -> None:
    encoder = Encoder(
        policy=LengthPolicy(None, "head", "error"),
        tokenizer=None,
        index=DIGITS,
        label_index=LABELS,
    )
    rows = [Example(vectors([1, 2]), "x", 1, "d/x.txt"), Example(vectors([1]), "y", 1, "d/y.txt")]
    with pytest.raises(DataError, match=r"^d/y\.txt:1: 1 channels; expected 2$"):
        encoder.encode(rows, "d")


@given(
    st.lists(st.tuples(st.text("0123", max_size=4), st.sampled_from("xyz")), max_size=12),
    st.sampled_from(["drop", "unk", "blank"]),
)
def test_rows_encoded_at_once_are_those_encoded_alone(
    rows: list[tuple[str, str]], empty: str
) -> None:
    sequences, labels = [row[0] for row in rows], "".join(row[1] for row in rows)
    found = []
    for size in (1, 8, 2**14):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("seqtrain.data.encoding.CHUNK_SIZE", size)
            store, report = encode(*sequences, labels=labels, max_length=3, empty=empty)
        found.append(({name: x.tolist() for name, x in store.arrays().items()}, report))
    assert found[0] == found[1] == found[2]
    assert found[0][1].rows == len(found[0][0]["labels"])
