"""Formats csv and tsv."""

import csv
import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.errors import DataError
from seqtrain.tables.blocks import REST, Dialect
from seqtrain.tables.sources import open_source
from tests.helpers.examples import examples, seeds
from tests.helpers.printed import commands_in
from tests.tables.conftest import rows_of, select

FIELD = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
    st.text('",\t\r\n\x0b\x0c\x85\u2028 a', max_size=12),
)


def cells(rows):
    return [(row.line, *row.cells.values()) for row in rows if row.problem is None]


@examples(200)
@given(
    rows=st.lists(st.tuples(FIELD, FIELD, FIELD), min_size=1, max_size=6),
    delimiter=st.sampled_from(",\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    forms=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_what_the_csv_module_writes_is_read_back(rows, delimiter, end, forms, tmp_path):
    last_end, mark, every = forms
    text = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if every or end == "\n" else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(["text", "label", "more"])
    expected = []
    for row in rows:
        expected.append((text.getvalue().count("\n") + 1, *row))
        writer.writerow(row)
    written = text.getvalue() if last_end else text.getvalue().removesuffix(end)
    path = tmp_path / "a"
    path.write_bytes((b"\xef\xbb\xbf" if mark else b"") + written.encode())
    source = open_source(str(path), Dialect("csv" if delimiter == "," else "tsv", quotes=True))
    found = list(rows_of(source, select("text", "label", "more")))
    assert [(x.line, *x.cells.values()) for x in found] == expected


@pytest.mark.parametrize(
    ("content", "form", "columns", "expected"),
    [
        ("label\ttext\na\tone\n", {"format": "tsv", "header": False}, (1, 0),
         [(1, "text", "label"), (2, "one", "a")]),
        ("label\ttext\na\tone\n", {"format": "tsv"}, (1, "label"), [(2, "one", "a")]),
        ("label\ttext\n\"'a\rb\x85\t\"one\r\n", {"format": "tsv"}, ("text", "label"),
         [(2, '"one', "\"'a\rb\x85")]),
        ('text,label\n5" pipe,x\n', {}, ("text", "label"), [(2, '5" pipe', "x")]),
        ('text,label\n"a",x\n', {"quotes": False}, ("text", "label"), [(2, '"a"', "x")]),
        ("label,text\n a ,one\n", {}, ("text", "label"), [(2, "one", " a ")]),
        ("text,label\na,b\n\n\r\n", {}, ("text", "label"), [(2, "a", "b")]),
        ("\n\ntext,label\n\na,b\n", {}, ("text", "label"), [(5, "a", "b")]),
        ("text;label\na, b;x\n\"c; d\";y\n", {}, ("text", "label"),
         [(2, "a, b", "x"), (3, "c; d", "y")]),
        ('text|label\nhe said "hi|x\nfoo|y\n', {}, ("text", "label"),
         [(2, 'he said "hi', "x"), (3, "foo", "y")]),
        ("text,label\na;b,x\nc;d,y\n", {}, ("text", "label"), [(2, "a;b", "x"), (3, "c;d", "y")]),
        ("\ufeffsep=;\r\ntext;label\r\na,b;x\r\n", {}, ("text", "label"), [(3, "a,b", "x")]),
        ("text,b;l\na,x;y\n", {"delimiter": ","}, ("text", "b;l"), [(2, "a", "x;y")]),
        ("text|label\na\tb|x\n", {"format": "tsv", "delimiter": "|"}, ("text", "label"),
         [(2, "a\tb", "x")]),
        ('"text"\t"label"\n"a\tb"\t"x"\n', {"format": "tsv"}, ("text", "label"),
         [(2, "a\tb", "x")]),
        ('"Hi" he said\tx\nfoo\ty\n', {"format": "tsv", "header": False}, (0, 1),
         [(1, '"Hi" he said', "x"), (2, "foo", "y")]),
        ("text\na; b\n\nb\n\n", {}, ("text",), [(2, "a; b"), (3, ""), (4, "b"), (5, "")]),
    ],
)  # fmt: skip
def test_rows(read, content, form, columns, expected):
    assert cells(read(content, "a.csv", *columns, **{"format": "csv", **form})) == expected


@pytest.mark.parametrize("blanks", [1, 2, 5])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", ", ", "; "])
def test_names_that_are_blank_at_the_end_of_the_header_name_no_column(read, blanks, delimiter):
    end, delimiter = delimiter * blanks, delimiter[0]
    lines = [f"v1{delimiter}v2{end}", f"ham{delimiter}hi{end}", f"spam{delimiter}win{end}"]
    found = read("\n".join(lines) + "\n", "a.csv", format="csv")
    assert cells(found) == [(2, "ham", "hi"), (3, "spam", "win")]
    assert list(found[0].cells) == ["v1", "v2"]
    without = "\n".join([lines[0], f"ham{delimiter}hi", f"spam{delimiter}win"]) + "\n"
    assert cells(read(without, "a.csv", "v2")) == [(2, "hi"), (3, "win")]


@pytest.mark.parametrize("names", [["1", "2"], ["140", "141"], ["7"], ["Mazda RX4", "Fiat, old"]])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_names_of_rows_need_no_name_in_the_header(read, names, delimiter):
    """R writes a table so: its header is one name shorter than its rows."""
    rows = [["text", "label"], *([name, f"a {name}", "x"] for name in names)]
    lines = [delimiter.join(f'"{cell}"' for cell in row) for row in rows]
    found = read("\n".join(lines) + "\n", "a.csv", "text", "label")
    assert [row[1:] for row in cells(found)] == [(f"a {name}", "x") for name in names]


def test_a_field_too_many_is_no_name_of_a_row(read):
    for rows in ("ham,hello, you\nspam,win, now\n", "1,a,b\n3,a,b\n", "a,1,2\n"):
        found = read(f"label,text\n{rows}", "a.csv", "text")
        assert all("found 3" in str(row.problem) for row in found)


def test_names_lack_the_blanks_around_them_unless_two_become_equal(read):
    found = read('a b ,"c ", d\t\n1,2,3\n', "a.csv", format="csv")
    assert list(found[0].cells) == ["a b", "c", "d"]
    found = read("a, a ,d\n1,2,3\n", "a.csv", format="csv")
    assert list(found[0].cells) == ["a", " a ", "d"]


def test_text_below_blank_names_is_counted(tmp_path):
    (tmp_path / "a.csv").write_text('a,b, ,\n1,2,,\n1,"2",x,\n1,2\n1,2, ,\n1,2,, y\n')
    source = open_source(str(tmp_path / "a.csv"), Dialect("csv"))
    for _ in range(2):
        assert [len(block) for block in source.blocks()] == [5]
        (line,) = source.notices()
        assert "2 rows" in line
        assert "3, 6" in line


@pytest.mark.parametrize("end", [";", ""])
@pytest.mark.parametrize("header", ["who;step;x;y", ""])
def test_decimal_commas_do_not_hide_the_delimiter(read, header, end):
    rows = [["p", str(i), f"{i},25", f"-0,{i}7"] for i in range(1, 6)]
    lines = [";".join(row) + end for row in rows]
    found = read(
        "\n".join([header + end, *lines] if header else lines), "a.csv", header=bool(header)
    )
    assert [[*row.cells.values()][:4] for row in found] == rows


def test_a_mark_at_the_end_of_most_lines_belongs_to_no_cell(read):
    lines = [f"{user},Walk,{time},0.{user};" for user, time in ((33, 1), (34, 2), (35, 3))]
    found = read("\n".join([*lines, "36,Jog,4,0.5", ""]), "a.csv", 0, 1, 3, header=False)
    assert [row[3] for row in cells(found)] == ["0.33", "0.34", "0.35", "0.5"]
    found = read("a,b\n1,2,\n3,4,\n5,6\n", "a.csv", "a", "b")
    assert cells(found) == [(2, "1", "2"), (3, "3", "4"), (4, "5", "6")]
    # A text that ends with a separator keeps it, and so does a field too many.
    found = read("a,b\n1,x;\n3,y\n4,z\n", "a.csv", "a", "b")
    assert found[0].cells["b"] == "x;"
    found = read("text,label\nI came, saw,\na,b\nc,d\n", "a.csv", "text", "label")
    assert "found 3" in str(found[0].problem)


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_every_end_of_a_line_is_read(read, end):
    content = end.join(["text,label", "one,x", '"two, too",y', ""])
    assert cells(read(content, "a.csv", "text", "label")) == [
        (2, "one", "x"),
        (3, "two, too", "y"),
    ]


def test_comments_before_the_table_are_skipped(read):
    content = "# device 7, 50 Hz\n#\nt,x\n1,2\n# pause\n3,4\n"
    assert cells(read(content, "a.csv", "t", "x")) == [(4, "1", "2"), (6, "3", "4")]
    assert cells(read("# t,x\n1,2\n", "a.csv", "t", "x")) == [(2, "1", "2")]
    assert cells(read("# by hand\n1,2\n3,4\n", "a.csv", 0, 1, header=False)) == [
        (2, "1", "2"),
        (3, "3", "4"),
    ]
    recorder = "%Sample Rate = 250 Hz\n%\nt,x\n1,2\n"
    assert cells(read(recorder, "a.csv", "t", "x")) == [(4, "1", "2")]
    assert cells(read("%time,x\n1,2\n", "a.csv", "%time", "x")) == [(2, "1", "2")]
    tags = "text,label\n#good day,pos\n#bad,neg\n"
    assert cells(read(tags, "a.csv", "text")) == [(2, "#good day"), (3, "#bad")]


@pytest.mark.parametrize("form", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("first", ["#id", "#1_id", "# id"])
@pytest.mark.parametrize("above", [[], ["# made by hand", "#"]])
def test_names_may_begin_with_a_mark_of_comments(read, form, first, above):
    mark = "\t" if form == "a.tsv" else ","
    rows = [["u1", "good day", "b"], ["u2", "see you", "c"], ["u3", "so long", "b"]]
    lines = [*above, *map(mark.join, [[first, "text", "label"], *rows])]
    found = read("\n".join(lines) + "\n", form, first.removeprefix("# "), "label")
    expected = [(len(above) + 2 + i, row[0], row[2]) for i, row in enumerate(rows)]
    assert cells(found) == expected


def test_a_comment_above_names_and_a_text_that_begins_as_one(read):
    rows = "good day,b\nsee you,c\nso long,b\n"
    found = read(f"# by Ann, Bob\ntext,label\n{rows}", "a.csv", "text")
    assert cells(found) == [(3, "good day"), (4, "see you"), (5, "so long")]
    found = read(f"# text,label\ntext,label\n{rows}", "a.csv", "text")
    assert cells(found) == [(3, "good day"), (4, "see you"), (5, "so long")]
    found = read(f"#blessed day,b\n#hate this,c\n{rows}", "a.csv", 0, header=False)
    assert [row[0] for row in cells(found)] == [1, 2, 3, 4, 5]


def test_the_tail_of_a_ragged_row_is_one_column(read):
    content = "walk,1,2,3\nrun,4\nsit,5,6,7,8,9\nstand\n"
    found = read(content, "a.csv", 0, rest=True, header=False)
    assert [(row.cells[0], row.cells[REST]) for row in found] == [
        ("walk", ["1", "2", "3"]),
        ("run", ["4"]),
        ("sit", ["5", "6", "7", "8", "9"]),
        ("stand", []),
    ]
    (first,) = read("u7,walk,1,2,,\n", "a.csv", 1, rest=True, header=False)
    assert (first.cells[1], first.cells[REST]) == ("walk", ["1", "2"])
    (named,) = read("id,label,steps\nu7,walk,1,2,3\n", "a.csv", "id", "label", rest=True)
    assert named.cells == {"id": "u7", "label": "walk", REST: ["1", "2", "3"]}
    (own,) = read("label,rest,more\nwalk,1,2\n", "a.csv", "label", rest=True)
    assert own.cells[REST] == "1"
    assert [row.problem for row in read(content, "a.csv", 0, header=False)] == [
        None,
        "expected 4 fields as in the first row, found 2",
        "expected 4 fields as in the first row, found 6",
        "expected 4 fields as in the first row, found 1",
    ]


@pytest.mark.parametrize("ragged", ["one;two;three", "one", "x,y;two;3,5;6"])
def test_a_ragged_row_does_not_hide_the_delimiter(ragged, read):
    found = read(f"text;label\na;x\n{ragged}\nb;y\nc;x\n", "a.csv", "text", "label")
    assert [row.cells["text"] for row in found if row.problem is None] == ["a", "b", "c"]
    assert [row.line for row in found if row.problem is not None] == [3]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('a,b\n1,2\n"3,4\n', "a.csv:3: the quote that opens on this line is never closed"),
        ('a,b\n1,2\n"3"4,5\n', "a.csv:3: a field goes on after its closing quote"),
        ("a,b\n1,2\n3\r4,5\n", "a.csv:3: a field without quotes holds a carriage return"),
        ("a,a\n1,2\n", "a.csv:1: column 'a' occurs twice in the header"),
        ('{"a": 1, "b": 2}\n', "a.csv:1: expected names of columns, found JSON"),
        ('[{"a": "b c", "d": ["e"]}]\n', "a.csv:1: expected names of columns, found JSON"),
        ("aa,b\n1,2\n", "a.csv:1: no column 'a'; found 'aa', 'b'"),
        ("x:y;z\n1\n", "if ';' separates columns, set data.delimiter"),
        (b"a\xff,b\n1,2\n", "a.csv:1: byte 2 is not UTF-8 (0xff)"),
    ],
)
def test_what_ends_the_reading(refuse, content, said):
    form = {"delimiter": ","} if b"x:y" in bytes(str(content), "utf-8") else {}
    assert said in " ".join(refuse(content, "a.csv", "a", "b", **form))


def test_rows_before_damage_are_read(tmp_path):
    (tmp_path / "a.csv").write_text('a,b\n1,2\n3,4\n"5,6\n')
    found = []
    with pytest.raises(Exception, match=r"a\.csv:4"):
        found.extend(rows_of(open_source(str(tmp_path / "a.csv"), Dialect("csv"))))
    blocks = open_source(str(tmp_path / "a.csv"), Dialect("csv")).blocks(rows=1)
    assert [len(next(blocks)), len(next(blocks))] == [1, 1]


def test_a_line_that_cannot_be_decoded_is_a_bad_row(read):
    found = read(b'a,b\n1,2\n\xff,3\n"x\n\xe9",4\n\0,5\n6,7\n', "a.csv", "a", "b")
    assert [(row.line, row.problem is None) for row in found] == [
        (2, True), (3, False), (4, False), (6, False), (7, True),
    ]  # fmt: skip
    assert "byte 1 is not UTF-8 (0xff)" in str(found[1].problem)
    assert "line 5, byte 1" in str(found[2].problem)
    assert "byte 1 is NUL" in str(found[3].problem)
    assert found[4].cells == {"a": "6", "b": "7"}


def test_bytes_are_counted_in_the_line_of_the_file(read):
    (found,) = read(b'a,b\n"x","y\xff"\n', "a.csv", "a", "b")
    assert "byte 7 " in str(found.problem)


def test_quoted_fields_may_be_long_and_hide_delimiters(read):
    long = "one;\n" * 20
    found = read(f'text;label\na;x\n"{long}";y\n', "a.csv", "text", "label")
    assert cells(found) == [(2, "a", "x"), (3, long, "y")]


def test_random_tables_are_read_as_the_csv_module_reads_them(tmp_path):
    path = tmp_path / "a.csv"
    for seed in seeds(60):
        draw = random.Random(seed)
        width, mark = draw.randint(1, 5), draw.choice(",;\t|")
        pool = ["", "a", "b c", "é", "#x", "0.5", f"x{mark}y", 'q"q', "l\nm", " "]
        rows = [[draw.choice(pool) for _ in range(width)] for _ in range(draw.randint(1, 30))]
        names = [f"n{index}" for index in range(width)]
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=mark, lineterminator=draw.choice(["\n", "\r\n"]))
        writer.writerows([names, *rows])
        path.write_text(text.getvalue(), newline="", encoding="utf-8")
        source = open_source(str(path), Dialect("csv", delimiter=mark))
        size = draw.choice([1, 7, 256])
        found = [list(row.cells.values()) for row in rows_of(source, rows=size)]
        assert found == [row for row in rows if width == 1 or row != [""]], seed


def test_columns_without_names_have_indices_as_texts_too(read):
    found = read("7,a,0.5;\n7,b,1.5;\n8,a,2;\n", "a.csv", 0, "2", header=False)
    assert cells(found) == [(1, "7", "0.5"), (2, "7", "1.5"), (3, "8", "2")]
    assert list(read("7,a\n8,b\n", "a.csv", header=False)[0].cells) == [0, 1]


@pytest.mark.parametrize("title", ["Survey of spring", "Survey,", "2024", "Survey of spring,,"])
@pytest.mark.parametrize("mark", ",;\t")
@pytest.mark.parametrize("between", [[], [""], ["", ",,"]])
def test_a_title_above_the_names_is_no_row(read, title, mark, between):
    names = ["text", "label"] if title.count(",") < 2 or between else ["text", "label", "note"]
    rows = [["on", "a", "x"], ["off", "b", "y"], ["up", "a", "x"]]
    above = [line.replace(",", mark) for line in (title, *between)]
    lines = [*above, *(mark.join(row[: len(names)]) for row in [names, *rows])]
    found = read("\n".join(lines) + "\n", "a.csv", "text", "label")
    assert [(row.line, *row.cells.values()) for row in found] == [
        (line, *row[:2]) for line, row in enumerate(rows, len(above) + 2)
    ]


@pytest.mark.parametrize(
    ("form", "above"),
    [
        ("a.csv", ["Device: A7", "Subject: 12", ""]),
        ("a.csv", ["Device: A7, left", 'Note: "calm"']),
        ("a.csv", ["Device:,A7,", "Subject:,12,", ",,"]),
        ("a.tsv", ["Start: 12:30", "Rate:\t50"]),
    ],
)
def test_keys_with_values_above_the_names_are_no_rows(read, form, above):
    rows = [["time", "place", "force"], ["0.1", "north", "3"], ["0.2", "south", "4"]]
    mark = "\t" if form == "a.tsv" else ","
    lines = [*above, *map(mark.join, rows)]
    found = read("\n".join(lines) + "\n", form, "time", "force")
    assert cells(found) == [(len(above) + 2, "0.1", "3"), (len(above) + 3, "0.2", "4")]


@pytest.mark.parametrize(
    "content",
    [
        "text\nfirst,one\nsecond,two\nthird,one\n",
        "text\nhello, you\nyes, sir\nno, thanks\n",
        "on,\noff,a\nup,b\ndown,a\n",
        "id;x;y\na;1,5;2\nb;1,5;2\nc;1,5;2\n",
        "text\n1,2\n3,4\n5,6\n",
        "Anna: yes,of course\na question,a word\nan answer,two\nand,three\n",
        "spam: one,win\ndear all,ham\nfree gold,spam\nsee you,ham\n",
        "time: s,force: N\n1,2\n3,4\n5,6\n",
    ],
)
def test_what_resembles_a_title_is_read(read, content):
    line = content.splitlines()[0]
    names = line.split(";") if ";" in line else line.split(",")
    assert set(read(content, "a.csv")[0].cells) == set(filter(None, names))


def test_the_command_for_an_open_quote_leaves_its_line_out(read, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        read('a,b\n1,2\n"3,4\n', "a b.csv", "a")
    cli(*commands_in(caught.value.problems[1])[0])
    (new,) = set(tmp_path.iterdir()) - {tmp_path / "a b.csv"}
    assert [row.cells["a"] for row in read(new.read_bytes(), "c.csv", "a")] == ["1"]
