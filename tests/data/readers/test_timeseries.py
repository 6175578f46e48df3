"""Format ts of the time-series archives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Read = Callable[..., list[Any]]
Refuse = Callable[..., tuple[str, ...]]

OPTIONS: dict[str, Any] = {"format": "ts", "kind": "features"}
HEADER = """# A comment

@problemName Demo
@timeStamps false
@univariate false
@dimensions 2
@equalLength false
@classLabel true a b
@data
"""


def test_channels_and_missing_values(read: Read) -> None:
    first, second, empty = read(
        HEADER + "1,2.5e-1,?:NaN,-4,+.5:a\n# x\n1:2:b\n::a\n", "a", **OPTIONS
    )
    np.testing.assert_array_equal(
        first.sequence, np.array([[1, np.nan], [0.25, -4], [np.nan, 0.5]], dtype=np.float32)
    )
    assert first.sequence.dtype == np.float32
    assert (first.label, first.line) == ("a", 10)
    assert (second.label, second.line) == ("b", 12)
    assert empty.sequence.shape == (0, 2)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("1,2:3:a", "channel 2 has 1 values, but channel 1 has 2"),
        ("1,2:a", "expected 2 channels parted by ':', found 1"),
        ("1:2:c", "label 'c' is not among those listed by @classLabel"),
        ("1:2:", "the label is blank"),
        ("1:٣:a", "expected a number, found '٣'"),
        ("1_0:2:a", "expected a number, found '1_0'"),
        ("1,:2,3:a", "expected a number, found ''"),
        ("1,1?:2,3:a", "expected a number, found '1?'"),
        ("1,inf:2,3:a", "step 2: inf is infinite or too large for float32"),
        ("1:-1e39:a", "step 1: -1e+39 is infinite or too large for float32"),
    ],
)
def test_bad_rows(refuse: Refuse, row: str, problem: str) -> None:
    assert refuse(f"{HEADER}1:2:a\n{row}\n", "a", **OPTIONS) == (f"a:11: {problem}",)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (
            "@TIMESTAMPS True\n",
            "1: @timestamps true is not supported; expected plain values and classes",
        ),
        (
            "@targetLabel true\n",
            "1: @targetlabel true is not supported; expected plain values and classes",
        ),
        ("@dimensions x\n", "1: @dimensions: expected a number from 1, found 'x'"),
        ("@dimensions ٣\n", "1: @dimensions: expected a number from 1, found '٣'"),
        ("@problemName x\n@data\n", "2: no labels: expected '@classLabel true' before @data"),
        ("@classLabel false\n@data\n", "2: no labels: expected '@classLabel true' before @data"),
        ("@problemName x\n", "1: the file ends before a line @data"),
        ("1:2:a\n", "1: expected a header line @…, or @data; found '1:2:a'"),
    ],
)
def test_headers_that_are_refused(refuse: Refuse, header: str, problem: str) -> None:
    assert refuse(header, "a", **OPTIONS) == (f"a:{problem}",)


def test_rows_are_as_wide_as_the_header_says(refuse: Refuse) -> None:
    header = "@classLabel true\n@data\n"
    assert refuse(f"@univariate true\n{header}1:2:a\n", "a", **OPTIONS) == (
        "a:4: expected 1 channels parted by ':', found 2",
    )


def test_prediction_reads_files_without_labels(read: Read) -> None:
    (row,) = read("@classLabel false\n@data\n1,2:3,4\n", "a", **OPTIONS, labelled=False)
    assert row.label is None
    assert row.sequence.tolist() == [[1, 3], [2, 4]]
    assert read("", "a", **OPTIONS, labelled=False) == []


def test_other_kinds_are_refused(refuse: Refuse) -> None:
    assert refuse(HEADER, "a", format="ts", kind="text") == (
        "a: found format ts; the model reads text without named columns; expected fasttext or txt",
    )
