"""`seqtrain init` as people run it: what it takes of their data, what it says, what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import Config, load_config
from seqtrain.data.dataset import prepare
from tests.helpers.tiny import Cli

Init = Callable[..., tuple[Config, str]]
LABELS = ["idle", "run"] * 30


def series(row: int, length: int | None = None) -> list[float]:
    steps = np.arange(length or 12 + row % 5)
    return [round(float(x), 3) for x in np.sin(steps / (1 + row % 2) + row)]


def word(row: int) -> str:
    return f"{['slow', 'quick'][row % 2]} walk, number {row}"


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Init:
    """Run init on files given by name and content; return what fit reads, and what init said."""
    monkeypatch.chdir(tmp_path)

    def initialize(files: dict[str, Any], *options: str) -> tuple[Config, str]:
        for name, content in files.items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        ended = cli("init", next(iter(files)).partition("/")[0], "-o", "c.yaml", *options)
        config = load_config("c.yaml")
        prepare(config, cache_folder=None)
        return config, ended.err

    return initialize


def table(head: str, rows: list[list[Any]], mark: str = ",") -> str:
    return head + "".join(mark.join(map(str, row)) + "\n" for row in rows)


def jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def printed(row: int) -> str:
    return str(np.array(series(row)))


OF_NUMBERS = {
    "JSON in a csv cell": {
        "a.csv": table("y;s\n", [[y, json.dumps(series(i))] for i, y in enumerate(LABELS)], ";")
    },
    "numbers with blanks": {
        "a.csv": table("y,s\n", [[y, " ".join(map(str, series(i)))] for i, y in enumerate(LABELS)])
    },
    "printed by numpy": {
        "a.csv": table("y,s\n", [[y, f'"{printed(i)}"'] for i, y in enumerate(LABELS)])
    },
    "a csv per recording": {
        f"a/{y}/{i}.csv": table("x,y\n", [[x, -x] for x in series(i)]) for i, y in enumerate(LABELS)
    },
    "wide tsv of the archive": {
        "a.tsv": table("", [[1 + i % 2, *series(i, 12), "NaN"] for i in range(60)], "\t")
    },
    "wide csv of pandas": {
        "a.csv": table(
            f",{','.join(map(str, range(9)))},label\n",
            [[i, *series(i, 9), y] for i, y in enumerate(LABELS)],
        )
    },
    "channels in columns": {
        "a.jsonl": jsonl([{"x": series(i), "v": series(i), "y": y} for i, y in enumerate(LABELS)])
    },
}


@pytest.mark.parametrize("files", OF_NUMBERS.values(), ids=OF_NUMBERS.keys())
def test_numbers_are_series(init: Init, files: dict[str, str]) -> None:
    config, said = init(files)
    assert config.data.kind == "features"
    assert "series" in said
    assert "next: seqtrain fit c.yaml" in said


def test_lists_of_whole_numbers_are_measurements_where_they_are_near_their_neighbours(
    init: Init,
) -> None:
    smooth = [{"y": y, "s": [int(100 * x + 200) for x in series(i)]} for i, y in enumerate(LABELS)]
    config, said = init({"a.jsonl": jsonl(smooth)})
    assert config.data.kind == "features"
    assert "if they are symbols: --set data.kind=tokens" in said
    config, _ = init({"a.jsonl": jsonl(smooth)}, "--set", "data.kind=tokens", "--force")
    assert config.data.kind == "tokens"
    ids = [{"y": y, "s": [(i * 7 + k * 31) % 40 for k in range(9)]} for i, y in enumerate(LABELS)]
    assert init({"a.jsonl": jsonl(ids)}, "--force")[0].data.kind == "tokens"


@pytest.mark.parametrize(
    "value", [lambda t: [t, "yes please do"], lambda t: [{"role": "user", "content": t}]]
)
def test_sentences_and_chats_are_texts(init: Init, value: Callable[[str], Any]) -> None:
    rows = [{"topic": y, "turns": value(word(i))} for i, y in enumerate(LABELS)]
    for content in (jsonl(rows), json.dumps(rows, indent=1)):
        config, _ = init({"a.json": content}, "--force")
        assert (config.data.kind, config.data.sequence) == ("text", "turns")


@pytest.mark.parametrize(
    ("name", "head", "cell", "described"),
    [
        ("a.csv", "Kommentar;Preis;Urteil\n", lambda i: f"{i},5{i % 10}", "Preis' (numbers)"),
        ("a.csv", "Kommentar;gps;Urteil\n", lambda i: f"{i}.3 45.{i}", "gps' (lists of numbers)"),
        ("a.jsonl", "", lambda i: [i, 2, 30, 4 * i], "bbox' (lists)"),
    ],
)
def test_free_text_wins_over_a_few_numbers_per_row(
    init: Init, name: str, head: str, cell: Callable[[int], Any], described: str
) -> None:
    cells = [[f"{word(i)} of ours, as it was told", cell(i), y] for i, y in enumerate(LABELS)]
    records = [dict(zip(("text", "bbox", "label"), each, strict=True)) for each in cells]
    config, said = init({name: table(head, cells, ";") if head else jsonl(records)})
    assert (config.data.kind, config.data.sequence) == ("text", "Kommentar" if head else "text")
    assert described in said


def test_many_numbers_per_row_win_over_a_remark(init: Init) -> None:
    rows = [{"y": y, "remark": word(i), "v": series(i)} for i, y in enumerate(LABELS)]
    assert init({"a.jsonl": jsonl(rows)})[0].data.sequence == "v"
    rows = [
        {"y": y, "v": ",".join(map(str, range(i, i + 2 + i % 2)))} for i, y in enumerate(LABELS)
    ]
    config, _ = init({"a.jsonl": jsonl(rows)}, "--force")
    assert config.data.kind == "features"


def test_few_symbols_per_row_win_over_a_title_by_their_name(init: Init) -> None:
    rows = [
        {"y": y, "title": word(i), "tokens": [7 * i % 9, 3, i % 5]} for i, y in enumerate(LABELS)
    ]
    assert init({"a.jsonl": jsonl(rows)})[0].data.sequence == "tokens"


EVENTS = ["login ok", "view page", "add to cart", "log out now", "pay by card", "close the tab"]


def test_names_of_events_are_symbols_though_they_hold_blanks(init: Init) -> None:
    rows = [
        {"y": y, "events": [EVENTS[(i * k + i) % 6] for k in range(3 + i % 4)]}
        for i, y in enumerate(LABELS)
    ]
    config, said = init({"a.jsonl": jsonl(rows)})
    assert (config.data.kind, config.data.sequence) == ("tokens", "events")
    assert "symbols = events" in said


ROWS = [[i, f"2024-01-{i % 28 + 1:02d}", word(i), y] for i, y in enumerate(LABELS)]
TABLE = table("Nr,Datum,Kommentar,Urteil\n", [[*row[:2], f'"{row[2]}"', row[3]] for row in ROWS])


def test_it_says_what_it_took_and_what_it_left_out(init: Init) -> None:
    _, said = init({"a.csv": TABLE})
    assert "text = Kommentar, label = Urteil (2 classes: idle, run)" in said
    assert "ignored: 'Nr' (unique), 'Datum' (dates)" in said


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_encodings_are_found(init: Init, encoding: str) -> None:
    config, _ = init({"a.csv": TABLE.replace("walk", "Spaß").encode(encoding)})
    assert config.data.encoding == encoding
    config, _ = init({"a.csv": TABLE}, "--encoding", "gbk", "--set", "seed=7", "--force")
    assert (config.data.encoding, config.seed) == ("gbk", 7)


def test_a_delimiter_binds_no_other_file_unless_it_is_given(init: Init) -> None:
    content = TABLE.replace('"', "").replace(",", ";").replace("; number", ", number")
    assert init({"a.csv": content})[0].data.delimiter == "auto"
    config, _ = init({"a.txt": content}, "--force", "--format", "csv", "--delimiter", "semicolon")
    assert (config.data.format, config.data.delimiter) == ("csv", "semicolon")


def test_blank_labels_and_the_index_of_pandas(init: Init) -> None:
    rows = [[i, word(i).replace(",", ""), y if i % 7 else ""] for i, y in enumerate(LABELS)]
    config, said = init({"a.csv": table(",text,class\n", rows)}, "--label", "class")
    assert (config.data.label, config.data.bad_rows) == ("class", "drop")
    assert "9 rows with a blank label left out" in said


def test_parquet(init: Init, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = dict(
        zip(("Nr", "Datum", "Kommentar", "Urteil"), zip(*ROWS, strict=True), strict=True)
    )
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    config, _ = init({"a.parquet": (tmp_path / "a.parquet").read_bytes()})
    assert (config.data.sequence, config.data.label) == ("Kommentar", "Urteil")


def test_x_and_y(init: Init, tmp_path: Path) -> None:
    x = np.array([[*series(i, 9), np.nan] for i in range(60)])
    for values in (x, np.stack([x, x], axis=2)):
        np.savez(tmp_path / "a.npz", X=values, y=np.arange(60) % 2)
        config, said = init({"a.npz": (tmp_path / "a.npz").read_bytes()}, "--force")
        assert config.data.kind == "features"
        assert ("2 channels" in said) == (values.ndim == 3)


def test_a_folder_with_train_and_test_inside(init: Init) -> None:
    files = {
        f"aclImdb/{split}/{y}/{i}.txt": f"{word(i)} {split}"
        for split in ("train", "test")
        for i, y in enumerate(LABELS)
    }
    files |= {
        "aclImdb/README": "",
        "aclImdb/train/urls_run.txt": "",
        "aclImdb/train/unsup/1.txt": "",
    }
    config, _ = init(files)
    assert (config.data.train, config.data.test) == ("aclImdb/train", "aclImdb/test")


def test_a_test_file_without_labels_is_left_for_predict(init: Init) -> None:
    rows = [[word(i).replace(",", ""), y] for i, y in enumerate(LABELS)]
    files = {"kaggle/train.csv": table("text,target\n", rows), "kaggle/test.csv": "text\nslow\n"}
    config, said = init(files)
    assert (config.data.train, config.data.test) == ("kaggle/train.csv", None)
    assert "kaggle/test.csv has no labels" in said


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["a|b", "a", "b"], "labels look like several each, parted by '|', such as 'a|b'"),
        ([str(age) for age in range(1, 31)], "labels are 30 whole numbers from 1 to 30"),
        ([*["rare"], *["usual"] * 59], "98.3% are 'usual', 2 of 120 rows 'rare'"),
    ],
)
def test_labels_that_are_no_classes(init: Init, labels: list[str], said: str) -> None:
    rows = [[labels[i % len(labels)], f"{word(i)}".replace(",", "")] for i in range(120)]
    config, found = init({"a.csv": table("label,text\n", rows)})
    assert said in found
    assert (config.training.monitor == "macro_f1") == ("rare" in said)


def test_how_far_a_figure_of_few_rows_can_be_trusted(init: Init) -> None:
    rows = [[y, word(i).replace(",", "")] for i, y in enumerate(LABELS[:40])]
    _, said = init({"a.csv": table("label,text\n", rows)})
    assert "20 rows per class are few" in said
    assert "on 8 rows of validation would be known to ± 21 points" in said


@pytest.mark.parametrize(
    ("files", "options", "problem"),
    [
        ({"a.csv": "id,v,w,y\n" + "1,2,3,a\n4,5,6,b\n" * 9}, ["a.csv", "--label", "y",
         "--sequence", "v", "--sequence", "w"], "found 2 columns of one number each"),
        ({"a.csv": TABLE}, ["a.csv", "--no-header", "--label", "Urteil"], "names (--header"),
        ({"a.csv": table("s;y\n", [[f'"0,{i};1,5"', y] for i, y in enumerate(LABELS)], ";")},
         ["a.csv"], "found both , and ; between numbers; write decimals with a point"),
        ({"a.csv": table("y;" + ";".join(f"t{k}" for k in range(9)) + "\n",
         [[y, *["0,5"] * 8, f"{i},7"] for i, y in enumerate(LABELS)], ";")},
         ["a.csv"], "found numbers such as 12,50; write decimals with a point"),
        ({"a.csv": table("machine,time,temp,state\n", [[f"m{i // 15}", i % 15, 20 + i / 7, y]
         for i, y in enumerate(LABELS)])}, ["a.csv", "--label", "state"],
         "row per time step (4 values of 'machine' in 60 rows); write one row per sequence, such"
         ' as {"state": "a", "temp": [1.5, 1.7, …]}, or give --sequence'),
        ({"a.csv": table("time,temp,state\n", [[f"08:00:{i}", 20 + i / 7, y]
         for i, y in enumerate(LABELS)])}, ["a.csv"], "it isn't clear which column holds"),
        ({"a.csv": table("Wohnort,Quadratmeter,Kommentar,Verkaufspreis\n",
         [[f"Stadt {i}", i + 0.5, f"gut {i} und schön", i * 1000.5] for i in range(60)])},
         ["a.csv"], "; group numbers into classes, or give --label COLUMN; found 'Wohnort'"),
        ({"a/dataset_dict.json": ""}, ["a"], "Hugging Face's save_to_disk"),
        ({"a.csv": "текст,метка\nтак,да\n".encode("cp1251")}, ["a.csv"], "--encoding, such as"),
        ({"a.json": json.dumps(dict.fromkeys("abcdefghijk", 1))}, ["a.json"], "orient='records'"),
    ],
)  # fmt: skip
def test_what_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
    files: dict[str, Any],
    options: list[str],
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert problem in cli("init", *options, code=2).err
