"""One example for each row of a file, in order, whatever the rows are, in every format."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.examples import examples
from tests.helpers.reading import Given, file_source, read_examples, read_rows, with_format


class Form(NamedTuple):
    """Templates of a good row, with its number, and of a row that can't be used."""

    source: Given
    head: bytes
    good: str
    odd: str | None
    blank_is_row: bool = False


COLUMNS: dict[str, Any] = {"sequence": "text", "label": "label"}
FORMS = {
    "csv": Form(file_source("a", "csv", **COLUMNS), b"text,label\n", '"t {}",x', "a,b,c"),
    "tsv": Form(file_source("a", "tsv", **COLUMNS), b"text\tlabel\n", "t {}\tx", "a\tb\tc"),
    "bare csv": Form(file_source("a", "csv", sequence=0, label=1), b"", '"t {}",x', "a,b,c"),
    "one column": Form(file_source("a", "tsv", sequence="text"), b"text\n", "t {}", "a\tb", True),
    "jsonl": Form(file_source("a", "jsonl", **COLUMNS), b"", '{{"text": "t {}"}}', '{"text": {}}'),
    "lines": Form(file_source("a", "lines"), b"", "t {}", None, True),
    "txt": Form(file_source("a", "txt"), b"", "x\tt {}", None, True),
    "fasttext": Form(file_source("a", "fasttext"), b"", "__label__x t {}", "a __label__b", True),
    "ts": Form(
        file_source("a", "ts", "features"), b"# head\n@classLabel true\n@data\n", "1,{}:x", "1,b:x"
    ),
}
KINDS = st.sampled_from(["good", "blank", "odd", "undecodable", "nul", "comment"])


@pytest.mark.parametrize("name", FORMS)
@given(kinds=st.lists(KINDS, max_size=12), last_end=st.booleans())
@examples(40)
def test_every_row_has_its_example(name, kinds, last_end):
    form = FORMS[name]
    kinds = [kind for kind in kinds if not (kind == "comment" and name != "ts")]
    kinds = [kind for kind in kinds if not (kind == "odd" and form.odd is None)]
    if name == "bare csv" and [x for x in kinds if x in ("good", "odd")][:1] != ["good"]:
        kinds.insert(0, "good")  # the first row that can be read tells how many columns there are
    other = {"blank": b"", "odd": (form.odd or "").encode(), "nul": b"a\0b", "comment": b"#"}
    written = [
        other.get(kind, b"a\xffb") if kind != "good" else form.good.format(i).encode()
        for i, kind in enumerate(kinds)
    ]
    ends = b"\n" if last_end or (kinds and not written[-1]) else b""
    content = form.head + b"\n".join(written) + (ends if kinds else b"")
    first = form.head.count(b"\n") + 1
    rows = [(first + i, kind) for i, kind in enumerate(kinds) if kind != "comment"]
    if not form.blank_is_row:
        rows = [(line, kind) for line, kind in rows if kind != "blank"]
    fine = {"good", "blank"} if form.blank_is_row else {"good"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        path.write_bytes(content)
        schema = replace(form.source.schema, bad_rows="blank")
        blank = with_format(str(path), schema.format, schema)
        found = list(read_rows(blank, labelled=False))
        assert [(row.line, row.problem is None) for row in found] == [
            (line, kind in fine) for line, kind in rows
        ]
        usable = [line for line, kind in rows if kind in fine]
        if usable and not {"undecodable", "nul"} & set(kinds):
            drop = blank.with_schema(replace(schema, bad_rows="drop"))
            assert [x.line for x in read_examples(drop, labelled=False)] == usable
