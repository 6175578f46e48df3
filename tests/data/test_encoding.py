"""What happens to rows on their way into a store."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.data.encoding import EncodingReport, LengthPolicy
from seqtrain.data.examples import Example, ReadOptions
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.store import SequenceStore
from seqtrain.data.vocabulary import SPECIAL, UNK, Vocabulary
from seqtrain.errors import DataError

NAN, INF = float("nan"), float("inf")


def rules(
    kind: str = "text",
    max_length: int | None = None,
    overlong: str = "head",
    empty: str = "error",
    bad_rows: str = "error",
    missing: str = "error",
) -> Preprocessing:
    """Return what knows digits, or one feature of mean 0; and the labels x and y."""
    return Preprocessing(
        reading=ReadOptions("csv", kind=kind, bad_rows=bad_rows),
        tokenizer="char",
        lowercase=False,
        bpe_model=None,
        lengths=LengthPolicy(max_length, overlong, empty),
        missing=missing,
        labels=("x", "y"),
        vocabulary=None if kind == "features" else Vocabulary((*SPECIAL, *"0123456789")),
        mean=(0.0, 0.0) if kind == "features" else (),
        std=(1.0, 1.0) if kind == "features" else (),
    )


def examples(*sequences: Any, labels: str = "") -> list[Example]:
    pairs = zip(sequences, labels or "x" * len(sequences), strict=True)
    return [Example(*pair, line) for line, pair in enumerate(pairs, start=2)]


def encode(
    *sequences: Any, labels: str = "", **options: Any
) -> tuple[SequenceStore, EncodingReport]:
    return rules(**options).encode(examples(*sequences, labels=labels), "f.csv")


def ids(store: SequenceStore) -> list[str]:
    return ["".join(str(i - 2) for i in store[row][0]) for row in range(len(store))]


@pytest.mark.parametrize(
    ("overlong", "kept"), [("head", "012"), ("tail", "456"), ("middle", "234")]
)
def test_the_part_of_an_overlong_sequence_that_is_kept(overlong, kept):
    store, report = encode("0123456", "789", "01", max_length=3, overlong=overlong)
    assert ids(store) == [kept, "789", "01"]
    assert (report.rows, report.truncated) == (3, 1)


def test_empty_rows_are_dropped_or_read_as_unknown_and_counted():
    dropped, report = encode("1", "", "2", empty="drop")
    assert (ids(dropped), dropped.lines.tolist()) == (["1", "2"], [2, 4])
    assert (report.rows, report.dropped) == (2, 1)
    filled, report = encode("1", "", "2", empty="unk")
    assert [filled[row][0].tolist() for row in range(3)] == [[3], [UNK], [4]]
    assert (report.rows, report.filled) == (3, 1)


ROWS = st.lists(st.sampled_from(["1", "", "0123", "bad"]), max_size=12)


@given(ROWS, st.sampled_from(["error", "blank"]), st.sampled_from(["unk", "blank", "error"]))
def test_prediction_keeps_every_row_or_stops_at_the_first_bad_one(rows, bad_rows, empty):
    given = [x._replace(problem="no row") if x.sequence == "bad" else x for x in examples(*rows)]
    used = rules(max_length=3, overlong="error", empty=empty, bad_rows=bad_rows)
    kept = {"1": True, "": empty != "error" or bad_rows == "blank"}
    stop = next((i for i, row in enumerate(rows) if not kept.get(row, bad_rows == "blank")), None)
    found: list[Example] = []
    report = EncodingReport()

    def run() -> Iterator[Example]:
        for chunk, store in used.encode_chunks([given], "f.csv", report, rows=3):
            assert len(chunk) == len(store)
            yield from chunk

    if stop is None:
        found += run()
    else:
        with pytest.raises(DataError, match=f"^f.csv:{stop + 2}: "):
            found.extend(run())
    assert [x.line for x in found] == [x.line for x in given[:stop]]
    blank = [row in ("0123", "bad") or (not row and empty != "unk") for row in rows[:stop]]
    assert [x.problem is not None for x in found] == blank
    assert report.unanswered == sum(blank)
