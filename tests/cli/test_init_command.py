"""`seqtrain init` as users run it: use of columns, warnings, refusals."""

import gzip
import io
import json
import random
import re
import shlex
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqtrain.config import Config, load_config
from seqtrain.sequences.dataset import prepare

Init = Callable[..., tuple[Config, str]]
LABELS = ["idle", "run"] * 30
EVENTS = ["login ok", "view page", "add to cart", "log out now", "pay by card", "close the tab"]


def series(row: int, length: int | None = None) -> list[float]:
    steps = np.arange(length or 12 + row % 5)
    return [round(float(x), 3) for x in np.sin(steps / (1 + row % 2) + row)]


def word(row: int) -> str:
    return f"{['slow', 'quick'][row % 2]} walk, number {row}"


def plain(row: int) -> str:
    return word(row).replace(",", "")


def write(files: dict[str, Any]) -> None:
    """Write files given by name and content."""
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture
def init(tmp_path, monkeypatch, cli) -> Init:
    """Run init on files; return what fit reads, and what init said."""
    monkeypatch.chdir(tmp_path)

    def initialize(files: dict[str, Any], *options: str) -> tuple[Config, str]:
        write(files)
        ended = cli("init", next(iter(files)).partition("/")[0], "-o", "c.yaml", *options)
        config = load_config("c.yaml")
        prepare(config)
        return config, ended.err

    return initialize


def table(head: str, rows: list[list[Any]], mark: str = ",") -> str:
    return head + "".join(mark.join(map(str, row)) + "\n" for row in rows)


def csv(head: str, cells: Callable[[int], list[Any]], mark: str = ",") -> dict[str, str]:
    """Return a file of rows that end with their label."""
    return {"a.csv": table(head, [[*cells(i), y] for i, y in enumerate(LABELS)], mark)}


def jsonl(values: Callable[[int], dict[str, Any]]) -> dict[str, str]:
    """Return a file of objects with a label."""
    rows = [{**values(i), "y": y} for i, y in enumerate(LABELS)]
    return {"a.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}


def npz(*channels: list[list[float]]) -> dict[str, bytes]:
    buffer, values = io.BytesIO(), [np.array(channel) for channel in channels]
    x = values[0] if len(values) == 1 else np.stack(values, axis=2)
    np.savez(buffer, X=x, y=np.arange(len(x)) % 2)
    return {"a.npz": buffer.getvalue()}


def parquet(columns: dict[str, list[Any]]) -> dict[str, bytes]:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return {"a.parquet": buffer.getvalue()}


HEAD = "row,run,machine,start,event,code,temp,unit,note,state,state_name\n"


def log(run: int) -> list[list[Any]]:
    """Return the rows of a run of a machine, whose state is fixed."""
    y = LABELS[run]
    return [
        [
            *(
                100 * run + k,
                f"r{run}",
                "abc"[run % 3],
                f"2024-05-{run % 28 + 1:02d} 0{k}:{(run + k) % 6}0",
            ),
            *(["open", "close", "turn"][(run + k) % 3], 7000 + 777 * ((3 * run + k * k) % 5)),
            *(20 + run / 7 + k, "C", "", y, y.upper()),
        ]
        for k in range(4 + run % 3)
    ]


LOG = table(HEAD, [row for run in range(60) for row in log(run)])


def test_a_row_per_time_step(init):
    config, said = init({"a.csv": LOG}, "--label", "state")
    assert (config.data.id, config.data.order, config.data.label) == ("run", "start", "state")
    kinds = {"event": "token", "code": "token", "temp": "number", "elapsed": "order"}
    assert config.data.steps == kinds
    assert config.model.ngrams == {"event": [1, 1], "code": [1, 1]}
    assert "id = run: " in said
    assert "order = start: " in said
    assert config.data.static == {"machine": "token"}
    assert "'machine': one value per run" in said
    reasons = {"row": "unique", "unit": "one value", "note": "blank"}
    for name, reason in {**reasons, "state_name": "the label again"}.items():
        assert f"'{name}' ({reason})" in said
    assert "'state_name' gives" in said
    assert "join the two" not in said


def test_ids_that_hold_several_sequences_side_by_side_are_doubted(init):
    rows = [
        [
            site,
            unit,
            f"2026-01-0{day + 1}",
            (unit * 7 + day * site) % 11,
            "wet" if unit % 2 else "dry",
        ]
        for day in range(6)
        for unit in range(20)
        for site in (1, 2, 3)
    ]
    _, said = init(
        {"a.csv": table("site,unit,day,flow,state\n", rows)}, "--id", "unit", "--label", "state"
    )
    assert re.search("'unit' .*'day'.*'site'", said)


def test_decimal_commas_are_numbers(init):
    rows = [[y, *["0,5"] * 8, f"{i},7"] for i, y in enumerate(LABELS)]
    wide = table("y;" + ";".join(f"t{k}" for k in range(9)) + "\n", rows, ";")
    config, _ = init({"a.csv": wide})
    assert (config.data.kind, config.data.decimal) == ("features", ",")
    rows = [[f"r{i // 6}", k, f"{i},7", LABELS[i // 6]] for i in range(60) for k in "ab"]
    config, _ = init({"a.csv": table("run;v;w;y\n", rows, ";")}, "--force")
    assert (config.data.steps, config.data.decimal) == ({"v": "token", "w": "number"}, ",")
    rows = [
        [f"r{i // 6}", k, f"{i % 7 - 3},{i:03}", LABELS[i // 6]] for i in range(60) for k in "ab"
    ]
    config, _ = init({"a.csv": table("run;v;w;y\n", rows, ";")}, "--force")  # "0,123" is no 123
    assert (config.data.steps, config.data.decimal) == ({"v": "token", "w": "number"}, ",")


def test_rows_of_an_id_may_stand_anywhere_and_options_decide(init):
    rows = sorted((row for run in range(60) for row in log(run)), key=lambda row: str(row[3])[8:])
    rows[7][6], names = None, HEAD.strip().split(",")
    content = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    chosen = ["--id", "run", "--label", "state", "--order", "row", "--steps", "temp"]
    config, said = init({"a.jsonl": content}, *chosen)
    assert (config.data.order, config.data.steps) == ("row", {"temp": "number"})
    assert (config.data.missing, config.model.kernels) == ("mask", True)
    assert "'event' (" in said


def test_what_only_looks_like_a_row_per_time_step(init):
    """Different texts are sequences, though each user has several rows and one label."""
    rows = [[i // 6, f"{word(i)}".replace(",", ""), LABELS[i // 6]] for i in range(60)]
    config, _ = init({"a.csv": table("user_id,text,label\n", rows)})
    assert (config.data.id, config.data.sequence) == (None, "text")


@pytest.mark.parametrize("visits", ["{}", "visit {:x}"])
@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("each", [True, False])
def test_whole_numbers_are_codes_or_measurements(init, visits, seed, each):
    """Even page numbers tell a label. A pulse is similar to the previous one."""
    draw = random.Random(0)
    rows = [
        [
            *(visits.format(7919 * visit % 9973), 2 * draw.randrange(60) + visit % 2),
            *(60 + visit % 40 + k % 3, 5 * (k % 2), 10 + draw.randrange(3000)),
            y if each or k == 5 else "",
        ]
        for visit in range(240)
        for y, k in zip([LABELS[visit % 60]] * 8, range(8), strict=True)
    ]
    if seed is not None:
        random.Random(seed).shuffle(rows)
    head = "visit,page,pulse,lamp,price,label\n"
    config, _ = init({"a.csv": table(head, rows)}, "--id", "visit", "--label", "label")
    numbers = dict.fromkeys(("pulse", "lamp", "price"), "number")
    assert config.data.steps == {"page": "token"} | numbers


def visits(when: Any, patient: str = "P{}", mark: str = "?") -> dict[str, bytes]:
    """Return rows of patients in random order, with times, costs and marks for missing values."""
    draw = random.Random(1)
    rows = [
        [patient.format(7919 * p % 997), when(d, draw.randrange(60)), "abc"[draw.randrange(3)],
         mark if draw.random() < 0.05 else 0.1 + draw.randrange(900), draw.randrange(10, 3000), y]
        for p, y in enumerate(LABELS * 2)
        for d in range(1, 8)
    ]  # fmt: skip
    draw.shuffle(rows)
    return {"a.csv": table("patient,when,event,bp,cost,outcome\n", rows)}


KINDS = {"event": "token", "bp": "number", "cost": "number"}


@pytest.mark.parametrize(
    "when",
    [
        lambda d, m: f"03/0{d}/2024 09:{m:02d} AM",
        lambda d, m: f"0{d}/03/24",
        lambda d, m: f"2024/03/0{d}" if d > 1 else f"0{d}.03.2024",
    ],
)
def test_dates_that_cannot_sort_rows_are_doubted(init, when):
    config, said = init(visits(when), "--label", "outcome")
    assert (config.data.id, config.data.order, config.data.steps) == ("patient", None, KINDS)
    assert "'when': " in said


@pytest.mark.parametrize(
    ("when", "elapsed"),
    [
        (lambda d, m: 1709545860 + 86400 * d + 60 * m, {"elapsed": "order"}),
        (lambda d, m: (1709545860 + 86400 * d + 60 * m) * 1000, {"elapsed": "order"}),
        (lambda d, m: (1709545860 + 86400 * d + 60 * m) * 10**9, {"elapsed": "order"}),
        (lambda d, m: f"0{d}.03.2024 09:{m:02d}", {"elapsed": "order"}),
        (lambda d, m: f"03/{d + 12}/2024 09:{m:02d} AM", {"elapsed": "order"}),
        (lambda d, m: f"2024/03/0{d}", {}),
        (lambda d, m: f"0{d}.03.24", {}),
        (lambda d, m: f"0{d}:{m:02d}", {"elapsed": "order"}),
        (lambda d, m: 20240300 + d, {}),
        (lambda d, m: d, {}),
    ],
)
def test_times_and_dates_of_one_type_sort_rows(init, when, elapsed):
    config, said = init(visits(when, patient="{}"), "--label", "outcome")
    assert (config.data.id, config.data.order) == ("patient", "when")
    assert config.data.steps == KINDS | elapsed
    assert "warning" not in said


@pytest.mark.parametrize(
    ("patient", "mark"), [*zip(cycle(["{}", "P{}"]), ["NA", "N/A", "NULL", "None", "-", "?", ""])]
)
def test_words_for_nothing_among_numbers_are_missing(init, patient, mark):
    day = "2024-03-0{} 09:{}".format
    config, _ = init(visits(lambda d, m: day(d, 10 + m % 50), patient, mark), "--label", "outcome")
    assert (config.data.order, config.data.missing) == ("when", "mask")
    assert config.data.steps == KINDS | {"elapsed": "order"}


@pytest.mark.parametrize(
    ("label", "separator"),
    [
        (lambda p, k: "" if k else LABELS[p], None),
        (lambda p, k: ["late", "late|long", "late", ""][p % 4], "|"),
    ],
)
def test_one_row_of_an_id_may_have_its_label_and_a_label_may_be_several(init, label, separator):
    rows = [[f"p{p}", k, "abc"[k], 0.1 + p % 7, label(p, k)] for p in range(60) for k in range(3)]
    config, said = init({"a.csv": table("patient,step,event,bp,y\n", rows)}, "--label", "y")
    assert (config.data.id, config.data.order) == ("patient", "step")
    assert config.data.label_separator == separator
    assert ("several labels per row" in said) == bool(separator)


def test_what_fasta_takes_as_the_label_is_said(init):
    records = [f">sp|P{i} A protein OX=1 SV={i % 2}\n{'ACGT' * 9}" for i in range(60)]
    said = init({"a.fasta": "\n".join(records)})[1]
    assert "in the lines that begin with > (2 classes: 0, 1)" in said


ROWS = [[i, f"2024-01-{i % 28 + 1:02d}", word(i), y] for i, y in enumerate(LABELS)]
NAMES = ("Nr", "Datum", "Kommentar", "Urteil")
TABLE = table("Nr,Datum,Kommentar,Urteil\n", [[*row[:2], f'"{row[2]}"', row[3]] for row in ROWS])
PADDED = [[*series(i, 9), np.nan] for i in range(60)]
TALKS = [lambda i: [word(i), "yes please do"], lambda i: [{"role": "user", "content": word(i)}]]
REMARK = "{} of ours, as it was told"
FEATURES, TOKENS = {"kind": "features"}, {"kind": "tokens"}
TURNS = {"kind": "text", "sequence": "turns"}
TAKEN: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "JSON in a csv cell": (csv("s;y\n", lambda i: [str(series(i))], ";"), FEATURES, "series"),
    "numbers with blanks": (
        csv("s,y\n", lambda i: [" ".join(map(str, series(i)))]), FEATURES, "next: seqtrain fit c"
    ),
    "printed by numpy": (csv("s,y\n", lambda i: [f'"{np.array(series(i))}"']), FEATURES, "series"),
    "a csv per recording": (
        {f"a/{y}/{i}.csv": table("x,y\n", [[x, -x] for x in series(i)])
         for i, y in enumerate(LABELS)},
        {"id": "file", "steps": {"x": "number", "y": "number"}}, "a time step"
    ),
    "wide tsv of the archive": (
        {"a.tsv": table("", [[1 + i % 2, *series(i, 12), "NaN"] for i in range(60)], "\t")},
        FEATURES, "series",
    ),
    "wide csv of pandas": (
        csv(f",{','.join(map(str, range(9)))},label\n", lambda i: [i, *series(i, 9)]),
        FEATURES, "series",
    ),
    "channels in columns": (jsonl(lambda i: {"x": series(i), "v": series(i)}), FEATURES, "series"),
    "X and y": (npz(PADDED), FEATURES, "series"),
    "X of two channels": (npz(PADDED, PADDED), FEATURES, "2 channels"),
    "whole numbers near their neighbours": (
        jsonl(lambda i: {"s": [int(100 * x + 200) for x in series(i)]}),
        FEATURES, "if they are symbols: --set data.kind=tokens",
    ),
    "ids": (jsonl(lambda i: {"s": [(i * 7 + k * 31) % 40 for k in range(9)]}), TOKENS, ""),
    "many numbers beside a remark": (
        jsonl(lambda i: {"remark": word(i), "v": series(i)}), {"sequence": "v"}, ""
    ),
    "few numbers alone": (
        jsonl(lambda i: {"v": ",".join(map(str, range(i, i + 2 + i % 2)))}), FEATURES, ""
    ),
    "symbols by their name": (
        jsonl(lambda i: {"title": word(i), "tokens": [7 * i % 9, 3, i % 5]}),
        {"sequence": "tokens"}, "",
    ),
    "names of events with blanks": (
        jsonl(lambda i: {"events": [EVENTS[(i * k + i) % 6] for k in range(3 + i % 4)]}),
        {**TOKENS, "sequence": "events"}, "symbols = events",
    ),
    **{
        f"{number} of sentences and chats": (
            jsonl(lambda i, talk=talk: {"turns": talk(i)}), TURNS, ""
        )
        for number, talk in enumerate(TALKS)
    },
    "an array of chats": (
        {"a.json": json.dumps([{"turns": TALKS[1](i), "y": y} for i, y in enumerate(LABELS)])},
        TURNS, "",
    ),
    "a text beside prices": (
        csv("Kommentar;Preis;Urteil\n", lambda i: [REMARK.format(word(i)), f"{i},5{i % 10}"], ";"),
        {"kind": "text", "sequence": "Kommentar"}, "Preis' (numbers)",
    ),
    "a text beside places": (
        csv("Kommentar;gps;Urteil\n", lambda i: [REMARK.format(word(i)), f"{i}.3 45.{i}"], ";"),
        {"kind": "text", "sequence": "Kommentar"}, "gps' (lists of numbers)",
    ),
    "a text beside boxes": (
        jsonl(lambda i: {"text": REMARK.format(word(i)), "bbox": [i, 2, 30, 4 * i]}),
        {"kind": "text", "sequence": "text"}, "bbox' (lists)",
    ),
    "a comment": (
        {"a.csv": TABLE}, {"sequence": "Kommentar"},
        "text = Kommentar, label = Urteil (2 classes: idle, run)",
    ),
    "unique numbers and dates": (
        {"a.csv": TABLE}, {"label": "Urteil"}, "ignored: 'Nr' (unique), 'Datum' (dates)"
    ),
    "fastText": (
        {"a.txt": "".join(f"__label__{y} {word(i)}\n" for i, y in enumerate(LABELS))},
        {"format": "fasttext"}, "",
    ),
    "text before the label in a .txt": (
        {"a.txt": "".join(f"{word(i)} {i}\t{y}\n" for i, y in enumerate(LABELS))},
        {"format": "tsv", "sequence": 0, "label": 1}, "2 classes: idle, run",
    ),
    "names, whose case may matter": (
        csv("name,y\n", lambda i: ["ABCDE"[i % 5] + "nlr"[i % 3] + "aeiou"[i // 12]]),
        {"tokenizer": "char", "lowercase": False}, "",
    ),
    "parquet": (
        parquet(dict(zip(NAMES, zip(*ROWS, strict=True), strict=True))),
        {"sequence": "Kommentar", "label": "Urteil"}, "",
    ),
    "cp1252": (
        {"a.csv": TABLE.replace("walk", "Spaß für Größere").encode("cp1252")},
        {"sequence": "Kommentar"}, "a.csv isn't UTF-8; it is read as",
    ),
    "utf-16": ({"a.csv": TABLE.encode("utf-16")}, {"encoding": "utf-16"}, ""),
    "semicolons": (
        {"a.csv": TABLE.replace('"', "").replace(",", ";").replace("; number", ", number")},
        {"delimiter": "auto"}, "",
    ),
    "a folder with train and test inside": (
        {
            **{
                f"aclImdb/{split}/{y}/{i}.txt": f"{word(i)} {split}"
                for split in ("train", "test")
                for i, y in enumerate(LABELS)
            },
            **dict.fromkeys(("aclImdb/README", "aclImdb/train/urls_run.txt"), ""),
            "aclImdb/train/unsup/1.txt": "",
        },
        {"train": "aclImdb/train", "test": "aclImdb/test"}, "",
    ),
    "a test file without labels": (
        {"kaggle/train.csv": csv("text,target\n", lambda i: [plain(i)])["a.csv"],
         "kaggle/test.csv": "text\nslow\n"},
        {"train": "kaggle/train.csv", "test": None}, "kaggle/test.csv has no labels",
    ),
    "forty rows": (
        {"a.csv": table("label,text\n", [[y, plain(i)] for i, y in enumerate(LABELS[:40])])},
        {}, "20 rows per class are few",
    ),
    "the interval of a figure of few rows": (
        {"a.csv": table("label,text\n", [[y, plain(i)] for i, y in enumerate(LABELS[:40])])},
        {}, "on 8 rows of validation would have an uncertainty of ± 21 points",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken_of_data_and_said_of_it(init, name):
    files, expected, words = TAKEN[name]
    config, said = init(files)
    assert config.data.model_dump().items() >= expected.items()
    assert words in said


def test_options_are_taken_as_they_are_given(init):
    section = ("--set", "training={lr: 0.5}", "--set", "training.class_weights.run=2")
    config, _ = init({"a.csv": TABLE}, "--encoding", "gbk", "--set", "seed=7", *section)
    assert (config.data.encoding, config.seed) == ("gbk", 7)
    assert (config.training.lr, config.training.class_weights) == (0.5, {"run": 2.0})
    options = ("--force", "--format", "csv", "--delimiter", "semicolon")
    config, _ = init({"a.txt": TAKEN["semicolons"][0]["a.csv"]}, *options)
    assert (config.data.format, config.data.delimiter) == ("csv", "semicolon")
    config, _ = init(TAKEN["X and y"][0], "--force", "--set", "data.missing=mask")
    assert config.data.missing == "mask"
    smooth = TAKEN["whole numbers near their neighbours"][0]
    assert init(smooth, "--set", "data.kind=tokens", "--force")[0].data.kind == "tokens"


def test_blank_labels_and_the_index_of_pandas(init):
    rows = [[i, plain(i), y if i % 7 else ""] for i, y in enumerate(LABELS)]
    config, said = init({"a.csv": table(",text,class\n", rows)}, "--label", "class")
    assert (config.data.label, config.data.bad_rows) == ("class", "drop")
    assert "9 rows with a blank label" in said


@pytest.mark.parametrize("given", [["20"], ["20/by-date-train", "20/by-date-test"]])
def test_train_and_test_folders_of_a_folder_per_class_with_a_file_per_sequence(
    tmp_path, monkeypatch, cli, given
):
    monkeypatch.chdir(tmp_path)
    for i, y in enumerate(LABELS):
        for split in ("train", "test"):
            path = Path(f"20/by-date-{split}/{y}.talk/{1000 + i}")  # names as in 20 newsgroups
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{word(i)}\n\nof {split}\n")
    cli("init", *given, "-o", "c.yaml")
    config = load_config("c.yaml")
    assert (config.data.train, config.data.test) == ("20/by-date-train", "20/by-date-test")
    store = prepare(config).splits["test"]
    assert len(store) == 60


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["a|b", "a", "b"], "several labels per row = label (2 classes: a, b)"),
        ([str(age) for age in range(1, 31)], "labels are 30 numbers from 1 to 30"),
        ([*["rare"], *["usual"] * 59], "'rare' is the label of 2 of 120 rows"),
    ],
)
def test_labels_that_are_no_classes(init, labels, said):
    rows = [[labels[i % len(labels)], plain(i)] for i in range(120)]
    config, found = init({"a.csv": table("label,text\n", rows)})
    assert said in found
    assert (config.training.monitor == "macro_f1") == ("rare" in said)


@pytest.mark.parametrize(
    ("files", "options", "problem"),
    [
        ({"a.csv": "id,v,w,y\n" + "1,2,3,a\n4,5,6,b\n" * 9}, ["a.csv", "--label", "y",
         "--sequence", "v", "--sequence", "w"], "found 2 columns of one number each"),
        ({"a.csv": TABLE}, ["a.csv", "--no-header", "--label", "Urteil"], "names (--header"),
        ({"a.csv": table("s;y\n", [[f'"0,{i};1,5"', y] for i, y in enumerate(LABELS)], ";")},
         ["a.csv"], "found both , and ; between numbers; write decimals with a point"),
        ({"a.csv": table("run;v;w;y\n", [[f"r{i // 6}", k, f"{i % 9}{'k' * (k == 'b')}",
            LABELS[i // 6]] for i in range(60) for k in "ab"], ";")},
         ["a.csv"], "--steps: 'w': found '0k' (row 2); write numbers without units"),
        ({"a.csv": table("y;" + ";".join(f"t{k}" for k in range(9)) + "\n",
         [[y, *["5 mV"] * 8, f"{i}.7 mV"] for i, y in enumerate(LABELS)], ";")},
         ["a.csv"], "--sequence: 't0': found '5 mV' (row 1); write numbers without units"),
        ({"a.csv": table("shop,sold,item,price,y\n", [[f"s{i % 9}", f"2024-01-{i % 28 + 1:02d}",
         ["pen", "ink", "cup"][i % 3], f"€{i}", y] for i, y in enumerate(LABELS)])},
         ["a.csv", "--label", "y"], "it isn't clear which column holds"),
        ({"a.csv": table("machine,time,temp,state\n", [[f"m{i // 15}", i % 15, 20 + i / 7, y]
         for i, y in enumerate(LABELS)])}, ["a.csv", "--label", "state"],
         "row per time step (4 values of 'machine' in 60 rows)"),
        ({"a.csv": table("machine,time,temp,state\n", [[f"m{i // 15}", i % 15, 20 + i / 7, y]
         for i, y in enumerate(LABELS)])}, ["a.csv", "--label", "state", "--id", "machine"],
         "one 'machine' have several labels, for 'state' changes"),
        ({"a.csv": LOG}, ["a.csv"], "several columns may hold the label"),
        ({"a.csv": LOG}, ["a.csv", "--label", "state", "--steps", "speed"], "no column 'speed'"),
        ({"a.csv": LOG}, ["a.csv", "--order", "start", "--id", "event"], "--label state"),
        ({"a.csv": LOG}, ["a.csv", "--sequence", "event", "--steps", "event"], "--sequence: "),
        ({"a.csv": LOG}, ["a.csv", "--no-header", "--id", "1", "--label", "9"], "(line 1)"),
        ({"a.csv": table("time,temp,state\n", [[f"08:00:{i}", 20 + i / 7, y]
         for i, y in enumerate(LABELS)])}, ["a.csv"], "no other column holds a sequence"),
        ({"a.csv": table("Wohnort,Quadratmeter,Kommentar,Verkaufspreis\n",
         [[f"Stadt {i}", i + 0.5, f"gut {i} und schön", i * 1000.5] for i in range(60)])},
         ["a.csv"], "group numbers into classes; found"),
        ({"a.xlsx": ""}, ["a.xlsx"], "xlsx"),
        ({"a/dataset_dict.json": ""}, ["a"], "a: holds no file .arrow"),
        ({"a/x/1.txt": "b", "a/x/2.txt": "c"}, ["a"], "a: one label, 'x'; expected two or more"),
        ({"a.json": json.dumps(dict.fromkeys("abcdefghijk", 1))}, ["a.json"], "orient='records'"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path, monkeypatch, cli, files, options, problem):
    monkeypatch.chdir(tmp_path)
    write(files)
    assert problem in cli("init", *options, code=2).err


def test_the_data_are_checked_before_the_destination(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    rows = [[f"some words of row {i}", "yn"[i % 2]] for i in range(60)]
    write({"a.csv": table("text,label\n", rows), "a.yaml": "mine"})
    assert "--label" in cli("init", "a.csv", "--label", "lable", code=2).err
    assert "--output" in cli("init", "a.csv", code=2).err
    assert "--label" in cli("init", "a.csv", "--label", "label", "--label", "text", code=2).err
    assert Path("a.yaml").read_text() == "mine"


def test_a_label_for_each_column_that_marks_it(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [("log in please", 1, 0), ("refund my card", 0, 1), ("refund and log in", 1, 1)]
    rows = [f"{text} {row},{a},{b}" for row in range(20) for text, a, b in [*texts, ("hi", 0, 0)]]
    Path("a.csv").write_text("\n".join(["text,login,billing", *rows]) + "\n")
    Path("a-test.csv").write_text("\n".join(["text,login,billing", *rows[:8]]) + "\n")
    two = ("--label", "login", "--label", "billing")
    said = cli("init", "a.csv", "a-test.csv", *two, "-o", "c.yaml").err
    assert "login, billing" in said
    config = load_config("c.yaml")
    assert config.data.label == ["login", "billing"]
    assert config.data.test == "a-test.csv"
    assert config.training.monitor == "micro_f1"
    cli("fit", "c.yaml", "--run-dir", "r", "--set", "training.max_epochs=1")
    Path("new.csv").write_text("text\nlog in please 1\n")
    assert cli("predict", "new.csv", "--run", "r").out.startswith("label\tprobability\n")
    assert cli("eval", "r", "--data", "a-test.csv", "--json").json["labels"] == ["billing", "login"]
    one = [f"{text} {row},{a},{1 - a}" for row in range(20) for text, a, _ in texts]
    Path("a.csv").write_text("\n".join(["text,login,billing", *one]) + "\n")
    cli("init", "a.csv", "--set", "data.label=[login, billing]", "-o", "d.yaml")
    assert load_config("d.yaml").training.monitor in ("accuracy", "macro_f1")
    Path("a.csv").write_text("text,login,stars\n" + "\n".join(f"{x[:-1]}4" for x in one) + "\n")
    wrong = cli("init", "a.csv", "--label", "login", "--label", "stars", "-o", "e.yaml", code=2)
    assert "--label" in wrong.err
    assert "stars" in wrong.err
    assert not Path("e.yaml").exists()


@pytest.mark.parametrize("option", ["--label", "--id", "marks"])
def test_the_commands_that_a_refusal_proposes_work(cli, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    long = "the mood of the person who wrote this text on that day"
    rows = [[f"good day {i}", "ab"[i % 2], "xyz"[i % 3]] for i in range(60)]
    files = {"my data.csv": table(f"text,{long},it's\n", rows)}
    if option == "--id":
        rows = [
            [k % 2 + k // 40 * 2, k // 2 % 2 + k // 40 * 2, k / 3, "ab"[k // 40]] for k in range(80)
        ]
        files = {"my data.csv": table("unit_id,site_id,flow,state\n", rows)}
    if option == "marks":
        rows = [[f"good day {i}", i % 2, i // 2 % 2] for i in range(60)]
        files = {"my data.csv": table("text,log in,bill\n", rows)}
    Path("my data.csv").write_text(files["my data.csv"])
    refused = cli("init", "my data.csv", "-o", "my config.yaml", code=2).err
    proposed = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
    assert len(proposed) >= 2
    for command in proposed:
        cli(*shlex.split(command, comments=True), "--force")
        Path("my config.yaml").unlink()


def test_recordings_without_names_and_with_a_mark_at_each_end_of_line(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw, lines = random.Random(0), list[str]()
    for number in range(12 * 3 * 16):
        person, gait = number // 48, ("stand", "stroll", "run")[number // 16 % 3]
        force = [f"{draw.gauss(number // 16 % 3, 1):.3f}" for _ in range(2)]
        lines.append(f"p{person},{gait},{10**12 + number * 50},{','.join(force)};\n")
    Path("gait.csv").write_text("".join(lines))
    cli("init", "gait.csv", "--id", "0", "--label", "1", "--order", "2", "-o", "gait.yaml")
    config = load_config("gait.yaml")
    assert (config.data.header, config.data.steps) == (False, {"3": "number", "4": "number"})
    assert len(prepare(config).splits["train"]) > 20


@pytest.mark.parametrize(
    ("objects", "code"),
    [
        ([{"page": "home", "secs": 4}, {"page": "cart", "secs": 2}], 2),
        ([{"speaker": "A", "utterance": "it is fine"}, {"speaker": "B", "utterance": "so?"}], 0),
    ],
)
def test_lists_of_objects_are_the_same_in_a_cell_and_in_json(
    cli, tmp_path, monkeypatch, objects, code
):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"items": [*objects, *objects[: i % 2]], "n": i, "side": "ab"[i % 2]} for i in range(40)
    ]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cells = [json.dumps(row["items"]).replace('"', '""') for row in rows]
    csv = [f'"{cell}",{row["side"]}\n' for cell, row in zip(cells, rows, strict=True)]
    Path("b.csv").write_text("items,side\n" + "".join(csv))
    found = []
    for file in ("a.jsonl", "b.csv"):
        config = f"data: {{train: {file}, sequence: items, label: side, validation: null}}"
        Path("c.yaml").write_text(config)
        ended = cli("data", "c.yaml", "--json", code=code)
        said = ended.out.replace(file, "FILE") if code == 0 else ended.err.partition(": ")[2]
        found.append(re.sub(r"(a|b)[.](jsonl|csv):\d+|line\D+\d+", "", said))
    assert found[0].splitlines()[0] == found[1].splitlines()[0]


@pytest.mark.parametrize("place", [3, 30])
def test_a_damaged_compressed_file_is_named(place, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{EVENTS[n % 6]},{n % 2}\n" for n in range(90))
    content = bytearray(gzip.compress(f"text,label\n{rows}".encode()))
    content[place] ^= 255
    Path("a.csv.gz").write_bytes(content)
    (problem,) = cli("init", "a.csv.gz", "-o", "-", code=2).problems
    assert re.search(r"a\.csv\.gz:[0-9]+: the gzip data are ", problem)


def test_a_class_of_rows_without_a_sequence_alone_is_left_out(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    rows = [{"s": f"{EVENTS[n % 6]} {n}", "label": "xy"[n % 2]} for n in range(40)]
    lines = [json.dumps(row) for row in [*rows, {"s": None, "label": "z"}]]
    Path("a.jsonl").write_text("\n".join(lines))
    cli("init", "a.jsonl", "-o", "c.yaml")
    assert load_config("c.yaml", []).data.empty == "drop"
    assert prepare(load_config("c.yaml", [])).preprocessing.labels == ("x", "y")
