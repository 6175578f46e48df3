"""Formats fasttext, txt, fasta, and lines."""

import pytest

FASTTEXT = (
    "__label__a one two\r\n__label__b\tthree x__label__y\n__label__c\u00a0d e\n__label__f\n"
    "__label__a __label__b two\n\nno label\n"
)
FASTA = (
    "; a comment\n>seq1 some gene coding\nACGTACG\r\nTAC\n\n\n>sp|P1|noncoding\n"
    ">seq3 label=coding|\nMKV*\n>bare\nA\n"
)


@pytest.mark.parametrize(
    ("format", "content", "blank_lines", "expected"),
    [
        ("fasttext", FASTTEXT, False, [
            (1, "one two", ["a"]), (2, "three x__label__y", ["b"]), (3, "e", ["c\u00a0d"]),
            (4, "", ["f"]), (5, "two", ["a", "b"]), (7, "no label", []),
        ]),
        ("txt", "a\tone\ttwo\nb\t\n\n", False, [(1, "one\ttwo", "a"), (2, "", "b")]),
        ("txt", "one\n\nb\ttwo", True, [(1, "one", None), (2, "", None), (3, "two", "b")]),
        ("fasta", FASTA, False, [
            (2, "ACGTACGTAC", "coding"), (7, "", "noncoding"), (8, "MKV*", "coding"),
            (10, "A", None),
        ]),
        ("lines", " a\tb \r\n\nc\u2028d\x0b\x85\re", True, [
            (1, " a\tb ", None), (2, "", None), (3, "c\u2028d\x0b\x85\re", None),
        ]),
    ],
)  # fmt: skip
def test_rows(read, format, content, blank_lines, expected):
    found = read(content, "a", "text", format=format, optional=("label",), blank_lines=blank_lines)
    assert [(row.line, row.cells["text"], row.cells.get("label")) for row in found] == expected
    assert {row.problem for row in found} == {None}


def test_a_line_without_its_label_is_bad_where_labels_are_needed(read):
    first, second = read("a\tone\ntwo\n", "a.txt", "text", "label")
    assert first.problem is None
    assert "no tab" in str(second.problem)
    (only,) = read("good;pos\n", "a.txt", "text", "label")
    assert "data.format: csv" in str(only.problem)
    (only,) = read("one __label__a two\n", "a.ft", "text", "label", format="fasttext")
    assert "at the start of the line" in str(only.problem)
    found = read("ACGT\n>x a\nA\n", "a.fasta", "text", "label")
    assert "expected a line such as >id label" in str(found[0].problem)


@pytest.mark.parametrize("between", [", ", ",", " , ", " ", "\t"])
def test_commas_between_labels_belong_to_no_label(read, between):
    names = ["slow-cooker", "b.2", "x,y"]
    line = between.join(f"__label__{name}" for name in names) + " how, to\n"
    (row,) = read(line, "a.ft", "text", "label", format="fasttext")
    assert row.cells == {"text": "how, to", "label": names}
