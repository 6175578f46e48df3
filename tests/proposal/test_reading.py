"""Reading of tables as programs and people write them: quotes, headers, and lists in cells."""

import csv
import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import parse_config
from seqtrain.sequences.dataset import prepare
from tests.helpers.printed import run_conversion
from tests.proposal.test_forms import LOG, log, name, proposed, sentence, write
from tests.proposal.test_printed_commands import convert_printed

SEPARATORS = {".csv": ",", ".tsv": "\t"}


def write_quoted(path: Path, rows: list[list[Any]]) -> str:
    """Write rows as pandas does: cells are in quotes if they must be."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=SEPARATORS[path.suffix], lineterminator="\n").writerows(rows)
    return str(path)


def content(path: str) -> tuple[list[str], list[int], list[int]]:
    """Return the classes, lengths, and labels of what `init` proposes for a file."""
    data = prepare(proposed(path)[0])
    train = data.splits["train"]
    return list(data.preprocessing.labels), train.lengths.tolist(), train.labels.tolist()


CELLS = {
    "labels": lambda text, names: [text, json.dumps(names[:2])],
    "Python's labels": lambda text, names: [text, str([f"{x}'s" for x in names[:2]])],
    "symbols": lambda text, names: [json.dumps(names), names[0] < names[1]],
    "events": lambda text, names: [json.dumps([{"p": x, "n": len(text)} for x in names]), text[0]],
    "lines": lambda text, names: [text.replace(" ", "\n", 1), names[0]],
    "tabs": lambda text, names: [text.replace(" ", "\t", 1), names[0]],
}


@pytest.mark.parametrize(("kind", "plain"), [*((x, 0) for x in CELLS), ("labels", 4500)])
def test_cells_of_tsv_in_quotes_are_those_of_csv(tmp_path, kind, plain):
    draw = random.Random(kind)
    names, rows = [name(draw) for _ in range(3)], list[list[Any]]()
    for at in range(plain + 160):
        if at < plain:  # no quotes in the first lines
            rows.append([sentence(draw), draw.choice(names)])
        else:
            rows.append(CELLS[kind](sentence(draw), draw.sample(names, 3)))
    found = [content(write_quoted(tmp_path / f"a{x}", [["a", "b"], *rows])) for x in SEPARATORS]
    assert found[0] == found[1]


@pytest.mark.parametrize("ending", SEPARATORS)
@pytest.mark.parametrize("kind", ["texts", "short files", "steps"])
def test_headers_of_joined_files_are_named_and_left_out(tmp_path, monkeypatch, cli, ending, kind):
    monkeypatch.chdir(tmp_path)
    draw, length = random.Random(kind), 7 if kind == "short files" else 60
    if kind == "steps":
        names, rows = LOG, log(draw, 40)
    else:
        names = ["text", "label"]
        rows = [[sentence(draw, x), x] for x in draw.choices(["kup", "wem"], k=120)]
    parts = [rows[at : at + length] for at in range(0, len(rows), length)]
    lines, end = [], 0
    for part in parts[:-1]:
        end += 1 + len(part)
        lines.append(end + 1)
    path = write_quoted(Path(f"a{ending}"), [row for part in parts for row in (names, *part)])
    refused = cli("init", path, "-o", "c.yaml", code=2).err
    assert [int(x) for x in re.findall(rf"a\{ending}:(\d+): ", refused)] == lines[:10]
    (command,) = re.findall("seqtrain (init .*)", refused)
    cli(*shlex.split(command))
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.bad_rows == "drop"
    data = prepare(config)
    assert sum(map(len, data.splits.values())) == len({row[0] for row in rows})
    assert len(data.preprocessing.labels) == 2


@pytest.mark.parametrize("above", [",,", ", ,", "\n,,"])
def test_delimiters_alone_above_a_header_are_no_header(tmp_path, above):
    draw = random.Random(above)
    rows = [[sentence(draw, x), x, ""] for x in draw.choices(["kup", "wem"], k=80)]
    path = Path(write_quoted(tmp_path / "a.csv", [["text", "label", ""], *rows]))
    path.write_text(above + "\n" + path.read_text())
    config, _ = proposed(str(path))
    assert (config.data.sequence, config.data.label) == ("text", "label")
    assert sum(map(len, prepare(config).splits.values())) == 80


@pytest.mark.parametrize("names", [["review", ""], ["", "label"]])
def test_a_column_without_a_name_is_named_by_the_printed_command(tmp_path, monkeypatch, cli, names):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(str(names))
    rows = [[sentence(draw, x), x] for x in draw.choices(["kup", "wem"], k=80)]
    write_quoted(Path("a.csv"), [names, *rows])
    (new,) = run_conversion(cli, cli("init", "a.csv", code=2).err)
    config, _ = proposed(str(new))
    assert [config.data.sequence, config.data.label] == [names[0] or "text", "label"]
    assert sum(map(len, prepare(config).splits.values())) == 80


@pytest.mark.parametrize(
    ("spellings", "classes"),
    [
        (["0,0", "1,0"], ["0,0", "1,0"]),
        (["2.0", "3", "3.0", "2", "3.00"], ["2", "3"]),
        (["1.50", "2.0", "1.5", "2"], ["1.5", "2"]),
        ([".5", "0.50", "7.25"], [".5", "7.25"]),
        (["007", "7.0", "7"], ["007", "7"]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_equal_numbers_are_one_class(tmp_path, spellings, classes, ending):
    draw = random.Random(str(spellings))
    rows = [[sentence(draw), spellings[at % len(spellings)]] for at in range(120)]
    path = tmp_path / f"a.{ending}"
    if ending == "csv":
        write(path, ["text", "label"], rows, ";")
    else:
        path.write_text("".join(json.dumps({"text": a, "label": b}) + "\n" for a, b in rows))
    config, _ = proposed(str(path), label="label")
    assert list(prepare(config).preprocessing.labels) == classes


ALIKE = {
    "accents": ["café", "cafe\u0301", "thé"],
    "zeros": ["00", "0", "1"],
    "decimal commas": ["0", "0,0", "1"],
    "no width": ["neg", "\ufeffneg", "pos"],
}


@pytest.mark.parametrize("kind", ALIKE)
def test_labels_that_look_alike_are_doubted(tmp_path, kind):
    draw, labels = random.Random(kind), ALIKE[kind]
    rows = [[sentence(draw), label] for label in draw.choices(labels, k=120)]
    config, proposal = proposed(write(tmp_path / "a.csv", ["text", "label"], rows, ";"))
    assert len(prepare(config).preprocessing.labels) == 3
    (doubt,) = [line for line in proposal.warnings if "spellings" in line]
    assert all(f"({[y for _, y in rows].count(label)})" in doubt for label in labels[:2])
    assert f"'{labels[2]}' (" not in doubt


def test_labels_of_a_test_file_that_train_lacks_are_named(tmp_path, cli):
    for split, labels in (("train", ["Yes", "No"]), ("test", ["yes", "no"])):
        rows = [[sentence(random.Random(at)), labels[at % 2]] for at in range(60)]
        write(tmp_path / f"{split}.csv", ["text", "label"], rows)
    refused = cli("init", tmp_path / "train.csv", tmp_path / "test.csv", code=2).err
    assert all(f"'{label}'" in refused for label in ("Yes", "No", "yes", "no"))


LISTS = {
    "jsonl": lambda items: items,
    "channels": lambda items: [[item, at] for at, item in enumerate(items)],
    "csv": lambda items: str(items),
    "blanks": lambda items: " ".join(map(str, items)),
}


@pytest.mark.parametrize("form", LISTS)
@pytest.mark.parametrize(("word", "count"), [("err", 40), ("n.d.", 150), ("NaN", 150), ("", 20)])
def test_a_word_in_a_list_of_numbers_is_named_and_may_be_missing(
    tmp_path, monkeypatch, cli, form, word, count
):
    if not word and form == "blanks":
        pytest.skip("nothing between blanks is no item")
    monkeypatch.chdir(tmp_path)
    draw = random.Random(f"{form} {word}")
    series = [[round(draw.gauss(at % 2, 1), 2) for _ in range(9)] for at in range(count)]
    rows = [[[*own], "ab"[at % 2]] for at, own in enumerate(series)]
    rows[5][0][0] = rows[9][0][4] = word  # the first item of a list is one like others
    rows = [[LISTS[form](items), label] for items, label in rows]
    if form in ("jsonl", "channels"):
        path = "a.jsonl"
        lines = (json.dumps({"x": items, "y": label}) + "\n" for items, label in rows)
        Path(path).write_text("".join(lines))
    else:
        path = write_quoted(Path("a.csv"), [["x", "y"], *rows])
    shown = cli("init", path, "-o", "a.yaml").err
    if word not in ("NaN", ""):
        assert f"'{word}'" in shown
        assert parse_config(Path("a.yaml").read_text()).data.bad_rows == "drop"
        (setting,) = re.findall("--set '(data.na_values=.*?)'", shown)
        cli("init", path, "-o", "a.yaml", "--force", "--set", setting)
    config = parse_config(Path("a.yaml").read_text())
    assert (config.data.bad_rows, config.data.missing) == ("error", "mask")
    data = prepare(config)
    assert sum(map(len, data.splits.values())) == count


@pytest.mark.parametrize("mark", [",", ";", "|", "\t"])
def test_line_breaks_within_texts_are_joined_by_the_printed_command(
    tmp_path, monkeypatch, cli, mark
):
    monkeypatch.chdir(tmp_path)
    draw, rows = random.Random(mark), list[list[Any]]()
    for at in range(150):
        text = sentence(draw)
        rows.append([at, text.replace(" ", "\n", 1) if at % 7 == 0 else text, draw.choice("pn")])
    file = "a.tsv" if mark == "\t" else "a.csv"
    lines = [mark.join(map(str, row)) for row in [["id", "text", "label"], *rows]]
    Path(file).write_text("\n".join(lines) + "\n")
    new = convert_printed(cli("init", file, code=2).err, cli, file)
    config, _ = proposed(str(new))
    data = prepare(config)
    assert sum(map(len, data.splits.values())) == 150
    lengths = [length for split in data.splits.values() for length in split.lengths.tolist()]
    assert set(lengths) == {7}


ARRAYS = {
    "Postgres": lambda names: "{" + ",".join(f'"{x}"' if " " in x else x for x in names) + "}",
    "Python": lambda names: str(set(names)) if names else "set()",
}


@pytest.mark.parametrize("form", ARRAYS)
def test_arrays_of_labels_may_be_empty_and_hold_apostrophes(tmp_path, form):
    draw, labels = random.Random(form), ["Drama", "Film Noir", "Kid's", "Sci-Fi"]
    rows = []
    for _ in range(150):
        own = draw.sample(labels, draw.choice([0, 1, 2, 3]))
        rows.append([sentence(draw, *own), ARRAYS[form](own)])
    config, _ = proposed(write(tmp_path / "a.csv", ["plot", "genres"], rows, ";"))
    assert list(prepare(config).preprocessing.labels) == labels


def test_letters_that_only_the_header_has_tell_the_encoding(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(5)
    rows = [f"{k};{t};{draw.gauss(k % 2, 1)};{'uv'[k % 2]}" for k in range(20) for t in range(5)]
    Path("a.csv").write_text("\n".join(["Nr;Größe;Wert;Klasse", *rows]), encoding="cp1252")
    cli("init", "a.csv", "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text(encoding="utf-8")).data
    assert (data.id, data.order, data.label) == ("Nr", "Größe", "Klasse")


def test_a_printed_command_names_a_header_in_the_encoding_of_the_file(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    header = "Charge;Temperatur [°C];Qualität"
    rows = [f"{k};{k % 3},5;{'uv'[k % 2]}" for k in range(20)]
    lines = ["Export vom 31.01.2024", "Anlage:;Ofen 3", "", header, *rows]
    Path("a.csv").write_text("\n".join(lines), encoding="cp1252")
    run_conversion(cli, cli("init", "a.csv", code=2).err)
    assert Path("a-table.csv").read_text(encoding="utf-8").splitlines() == [header, *rows]
