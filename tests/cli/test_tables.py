"""Every verb takes a table with a row per time step, and row features."""

import csv
import io
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest

import seqtrain
from seqtrain.errors import DataError
from tests.helpers.program import conversing
from tests.helpers.tables import CONFIG, shuffled, table, write_rows, write_table_project
from tests.helpers.tiny import Cli, fit, tsv_rows

NGRAMS = "model.ngrams={place: [1, 2], mood: [1, 1]}"


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a config, its data, and `run`: a model of a table. Read only."""
    folder = tmp_path_factory.mktemp("table")
    write_table_project(folder)
    fit(folder, CONFIG, NGRAMS, "training.max_epochs=6")
    return folder


GIVEN = {
    "predict": ["new.csv", "--run", "run"],
    "eval": ["run", "--data", "new.csv"],
    "fit": ["c.yaml", "--set", "data.test=new.csv"],
}


@pytest.mark.parametrize("command", GIVEN)
def test_dates_are_not_taken_where_the_order_of_train_is_numbers(
    beside: Path, cli: Cli, command: str
) -> None:
    rows = [{**row, "time": f"2024-03-{1 + row['time'] % 9:02d}"} for row in table(9, seed=4)]
    write_rows(Path("new.csv"), rows)
    ended = cli(command, *GIVEN[command], code=2)
    assert "new.csv:2: time: found '2024-03-0" in ended.err
    assert "expected a number" in ended.err


def test_a_row_of_predictions_per_id_in_the_order_of_first_appearance(
    beside: Path, cli: Cli, tmp_path: Path
) -> None:
    rows = table(30, seed=2)
    found = tsv_rows(cli("predict", "test.csv", "--run", "run", "--keep", "country,place").out)
    assert list(found[0]) == ["visit", "country", "place", "label", "probability"]
    assert [row["visit"] for row in found] == [f"v{n}" for n in range(30)]
    first = {row["visit"]: row for row in reversed(rows)}
    assert all(row["place"] == first[row["visit"]]["place"] for row in found)
    scores = json.loads(cli("eval", "run", "--split", "test", "--json").out)
    truth = [first[row["visit"]]["who"] == row["label"] for row in found]
    assert scores["accuracy"] == pytest.approx(sum(truth) / 30)
    assert scores["accuracy"] > 0.8
    plain = {row["visit"]: row["probability"] for row in found}
    for ending in ("csv", "jsonl", "parquet"):
        mixed = [{k: v for k, v in row.items() if k != "who"} for row in shuffled(rows)]
        path = write_rows(tmp_path / f"new.{ending}", mixed)
        again = tsv_rows(cli("predict", str(path), "--run", "run").out)
        assert [row["visit"] for row in again] == list(dict.fromkeys(x["visit"] for x in mixed))
        assert {row["visit"]: row["probability"] for row in again} == plain
    given = (beside / "test.csv").read_bytes()
    streamed = tsv_rows(cli("predict", "-", "--run", "run", stdin=given).out)
    assert {row["visit"]: row["probability"] for row in streamed} == plain
    # Of a pipe, an id ends where another follows. A redirected file is read as a whole.
    given = path.with_suffix(".csv").read_bytes()
    redirected = tsv_rows(cli("predict", "-", "--run", "run", stdin=given).out)
    assert {row["visit"]: row["probability"] for row in redirected} == plain
    with conversing(tmp_path, "predict", "-", "--run", beside / "run") as (program, ask, _):
        ask.write(given)
        ask.close()
        assert program.end() == 2
        assert "sort the rows by visit" in program.err
        assert "seqtrain predict FILE" in program.err


def test_windows_of_the_ids_of_a_pipe(table_project: Path, cli: Cli, tmp_path: Path) -> None:
    window = ("--set", "data.window={steps: 2, stride: 1}", "--set", "training.max_epochs=1")
    cli("fit", "c.yaml", *window, "--run-dir", "cut", "--quiet")
    expected = tsv_rows(cli("predict", "test.csv", "--run", "cut").out)
    with conversing(tmp_path, "predict", "-", "--run", Path("cut").absolute()) as opened:
        program, ask, answers = opened
        ask.write(Path("test.csv").read_bytes())
        ask.close()
        rows = tsv_rows(answers.read().decode())
        assert program.end() == 0
    # Equal numbers may be summed in another order, for a pipe's batches are smaller.
    for row, other in zip(rows, expected, strict=True):
        assert float(row.pop("probability")) == pytest.approx(
            float(other.pop("probability")), abs=2e-6
        )
    assert rows == expected


@pytest.mark.parametrize("window", ["{steps: 3, label: constant}", "{steps: 3}"])
def test_predict_says_that_windows_end_by_their_steps_alone(
    table_project: Path, cli: Cli, window: str
) -> None:
    setting = f"data.window={window}"
    options = ("--set", setting, "--set", "training.max_epochs=1", "--run-dir", "cut", "--quiet")
    cli("fit", "c.yaml", *options)
    said = cli("predict", "test.csv", "--run", "cut").err
    assert ("label changes" in said and "after 3 steps" in said) == ("constant" in window)


def test_missing_ids_of_a_pipe_are_those_of_a_file(
    table_project: Path, cli: Cli, tmp_path: Path
) -> None:
    """A row whose id is missing belongs to the sequence before it."""
    cli("fit", "c.yaml", "--set", "data.na_values={visit: [lost]}", "--run-dir", "na", "--quiet")
    rows = list(csv.DictReader(io.StringIO(Path("test.csv").read_text())))
    long = next(
        row["visit"] for at, row in enumerate(rows[2:]) if rows[at]["visit"] == row["visit"]
    )
    kept = [row for row in rows if row["visit"] == long]
    kept[1]["visit"] = "lost"
    path = write_rows(tmp_path / "few.csv", kept)
    of_file = cli("predict", str(path), "--run", "na", code=2)
    with conversing(tmp_path, "predict", "-", "--run", Path("na").absolute()) as opened:
        program, ask, answers = opened
        ask.write(path.read_bytes())
        ask.close()
        assert answers.read().decode() == of_file.out
        assert program.end() == of_file.code


def test_an_id_named_by_its_index_stands_beside_the_predictions(
    table_project: Path, cli: Cli
) -> None:
    cli("fit", "c.yaml", "--set", "data.id=0", "--run-dir", "numbered", "--quiet")
    rows = tsv_rows(cli("predict", "test.csv", "--run", "numbered").out)
    steps = cli("predict", "test.csv", "--run", "numbered", "--steps").out.splitlines()
    ids = [*dict.fromkeys(row["visit"] for row in table(30, seed=2))]
    assert [row["0"] for row in rows] == ids
    assert [*dict.fromkeys(json.loads(line)["0"] for line in steps)] == ids


@pytest.fixture
def swapped(beside: Path, tmp_path: Path) -> str:
    """A table on which nearly every prediction is wrong."""
    other = {"ann": "bob", "bob": "ann"}
    rows = [{**row, "who": other[row["who"]]} for row in table(12, seed=2)]
    return str(write_rows(tmp_path / "swapped.csv", rows))


def test_errors_name_step_and_column(swapped: str, cli: Cli) -> None:
    found = json.loads(cli("errors", "run", "--data", swapped, "--explain", "--json").out)
    rows = list(csv.DictReader(io.StringIO(Path(swapped).read_text())))
    assert found["errors"]
    for error in found["errors"]:
        row = rows[error["line"] - 2]
        assert error["text"].startswith(f"{row['visit']}: {row['place']},{row['mood']},")
        named = [name for name, _ in error["weights"]]
        assert named[:3] == [f"1:{n}={row[n]}" for n in ("place", "mood", "heat")]
        assert named[-2:] == [f"{name}={row[name]}" for name in ("country", "age")]
        assert len(named) == 4 * error["length"] + 2
        assert all(math.isfinite(weight) for _, weight in error["weights"])
    assert "strongest: " in cli("errors", "run", "--data", swapped, "--explain").out


def test_reports_differences_checks_and_inspections(swapped: str, cli: Cli, tmp_path: Path) -> None:
    cli("report", "run", "--data", swapped, "-o", str(tmp_path / "r.html"))
    assert "v1: " in (tmp_path / "r.html").read_text()
    assert json.loads(cli("diff", "run", "run", "--json").out)["rows"] == []
    assert "batches of 3" in cli("check", "run").out
    assert json.loads(cli("data", "c.yaml", "--json").out)
    new = write_rows(tmp_path / "new.csv", [{**table(1, 2)[0], "place": "sea", "mood": "z"}])
    assert "1 of 1 sequence with" in cli("predict", new, "run").err
    steps = cli("predict", "--steps", "test.csv", "--run", "run").out.splitlines()
    assert len(steps) == len(table(30, seed=2))
    assert json.loads(steps[0])["token"].startswith(table(1, seed=2)[0]["place"])
    last = {row["visit"]: row["probabilities"] for row in map(json.loads, steps)}
    plain = cli("predict", "test.csv", "--run", "run", "--format", "jsonl").out.splitlines()
    for row in map(json.loads, plain):
        assert last[row["visit"]] == pytest.approx(row["probabilities"], abs=1e-5)


NUMBERS = ("data.steps={heat: number, time: number}", "data.static=null")
SERIES = ("model.kernels=true", "training.augment={shift: 0.1, slice: 0.2}")


@pytest.mark.parametrize(
    "keys", [(*NUMBERS, *SERIES), ("data.standardize=both", NGRAMS, "training.max_epochs=6")]
)
def test_numbers_take_what_series_take(
    keys: tuple[str, ...], table_project: Path, cli: Cli
) -> None:
    fit(table_project, CONFIG, *keys)
    scores = json.loads(cli("eval", "run", "--split", "test", "--json").out)
    assert scores["accuracy"] > 0.7
    cli("export", "run", "-o", "port")  # which compares its predictions with the run's
    for each in SERIES:
        ended = cli("fit", "c.yaml", "--set", each, code=2)
        assert "data.steps has" in ended.err


def test_folds_and_old_models(table_project: Path, cli: Cli) -> None:
    cli("fit", "c.yaml", "--folds", "2", "--run-dir", "folds", "--quiet")
    assert len(tsv_rows(cli("predict", "test.csv", "--run", "folds").out)) == 30
    rows = table(60, seed=5)
    rows[0]["place"] = "moon"
    write_rows(table_project / "train.csv", rows)
    begun = cli("fit", "c.yaml", "--init-from", "folds/fold-1", "--run-dir", "next")
    assert "added 0 labels, 1 token" in begun.err
    other = ["--set", "data.steps={place: token}"]
    refused = cli("fit", "c.yaml", "--init-from", "next", "--run-dir", "no", *other, code=2)
    assert "data.steps: found {place: token}, but next has {place: token, mood" in refused.err


def test_facts_stand_beside_texts_too(table_project: Path, cli: Cli) -> None:
    rows = [
        {"text": f"word{n % 3} again", "who": "ann" if age > 40 else "bob", "age": age}
        for n, age in enumerate(range(20, 62))
    ]
    write_rows(table_project / "texts.csv", rows)
    data = "{train: texts.csv, sequence: text, label: who, static: {age: number}}"
    (table_project / "t.yaml").write_text(f"data: {data}\ntraining: {{max_epochs: 30, lr: 0.02}}\n")
    cli("fit", "t.yaml", "--run-dir", "run", "--quiet")
    new = [{"text": "word1 again", "age": age} for age in (20, 60)]
    found = cli("predict", str(write_rows(table_project / "new.csv", new)), "--run", "run").out
    assert [row["label"] for row in tsv_rows(found)] == ["bob", "ann"]
    with pytest.raises(DataError, match="text, age; give a table"):
        seqtrain.load("run").predict(["word1 again"])
    write_rows(table_project / "bad.csv", [{"text": "word1", "age": "old"}])
    refused = cli("predict", "bad.csv", "--run", "run", code=2).err
    assert re.search("bad.csv:2: age: .*'old'", refused)


def test_elapsed_times_are_durations_for_people(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    lines = ["id,when,what,label"]
    for number in range(20):
        for day in (1, 15):
            lines.append(f"{number},2024-01-{day:02}T00:00:00,{'ab'[number % 3 > 0]},{number % 2}")
    Path("t.csv").write_text("\n".join(lines) + "\n")
    steps = "steps: {what: token, elapsed: order}"
    Path("c.yaml").write_text(
        f"data: {{train: t.csv, validation: 0.4, id: id, order: when, {steps}, label: label}}\n"
        "training: {max_epochs: 1, lr: 1.0e-6}\n"
    )
    cli("fit", "c.yaml", "--run-dir", "r", "--quiet")
    for options in (["--explain"], ["--json"], ["--format", "jsonl"]):
        shown = cli("errors", "r", "--split", "train", *options).out
        assert "14 d" in shown
        assert "1.2096e+06" not in shown
    cli("report", "r", "--output", "r.html")
    assert "14 d" in Path("r.html").read_text()


@pytest.mark.parametrize("has_names", [True, False])
@pytest.mark.parametrize("before", [["code", "kind"], ["kind", "code"]])
def test_what_stands_before_a_list_is_no_symbol(
    tmp_path: Path, cli: Cli, has_names: bool, before: list[str]
) -> None:
    """Rows of `code`, a group, `kind`, the label, and a list of any length (`data.sequence: rest`).

    A code is a symbol here, so that a list that begins too early has another prediction.
    """
    draw = random.Random(3)
    rows = [
        {
            "code": draw.choice("pqrs"),
            "kind": "uv"[n % 2],
            "list": draw.choices("pqrs"[n % 2 :], k=4),
        }
        for n in range(60)
    ]

    def written(columns: list[str], rows: list[dict[str, Any]]) -> str:
        lines = [",".join([*columns, "list"])] if has_names else []
        lines += [",".join([*(row[x] for x in columns), *row["list"]]) for row in rows]
        return "\n".join(lines) + "\n"

    (tmp_path / "a.csv").write_text(written(before, rows))
    label, group = before if has_names else map(str, range(2))
    if before[0] == "code":
        label, group = group, label
    fit(
        tmp_path,
        f"data: {{train: a.csv, sequence: rest, label: {label}, group: {group}, kind: tokens}}",
    )

    def predicted(columns: list[str], code: str = "p", kind: str = "", ended: int = 0) -> str:
        changed = [{**row, "code": code, "kind": kind} for row in rows]
        (tmp_path / "b.csv").write_text(written(columns, changed))
        return cli("predict", tmp_path / "b.csv", "--run", tmp_path / "run", code=ended).out

    expected = predicted(before, kind="u")
    assert predicted(before, code="q") == expected
    if has_names:
        assert predicted(["code"]) == expected
    else:
        predicted(["code"], ended=2)


def labelled_rows(seed: int) -> list[list[str]]:
    """Return rows of a day, a label, a text that tells it, and a place."""
    draw, words = random.Random(seed), {"in": "rise climb grow", "out": "fall sink drop"}
    rows = []
    for at in range(60):
        label = draw.choice(list(words))
        text = ", ".join(draw.choices(words[label].split(), k=4))
        rows.append([f"2024-05-{1 + at % 9:02}", label, text, draw.choice("pq")])
    return rows


def csv_text(rows: list[list[str]], mark: str, quoting: int = csv.QUOTE_MINIMAL) -> str:
    written = io.StringIO()
    csv.writer(written, delimiter=mark, quoting=quoting, lineterminator="\n").writerows(rows)
    return written.getvalue()


@pytest.fixture(scope="session")
def without_names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `run`: a model of csv without names of columns. Read only."""
    folder = tmp_path_factory.mktemp("indices")
    (folder / "a.csv").write_text(csv_text(labelled_rows(1), ","))
    fit(folder, "data: {train: a.csv, sequence: 2, label: 1}", "training.max_epochs=6")
    return folder


@pytest.mark.parametrize(
    ("mark", "quoting"), [(",", csv.QUOTE_MINIMAL), (";", csv.QUOTE_ALL), ("|", csv.QUOTE_ALL)]
)
def test_a_column_of_labels_that_is_missing_moves_no_other_column(
    without_names: Path, tmp_path: Path, cli: Cli, mark: str, quoting: int
) -> None:
    rows, run = labelled_rows(2)[:9], without_names / "run"
    (tmp_path / "all.csv").write_text(csv_text(rows, mark, quoting))
    text = csv_text([[row[0], *row[2:]] for row in rows], mark, quoting)
    (tmp_path / "new.csv").write_text(text)
    expected = cli("predict", tmp_path / "all.csv", "--run", run, "--keep", "2").out
    assert {line["label"] for line in tsv_rows(expected)} == {"in", "out"}
    found = cli("predict", tmp_path / "new.csv", "--run", run, "--keep", "2")
    assert found.out == expected
    assert "label" in found.err
    given = ["predict", "-", "--run", run, "--input-format", "csv", "--keep", "2"]
    assert cli(*given, stdin=text).out == expected
    assert "label" not in cli(*given, stdin=csv_text(rows, mark, quoting)).err


@pytest.mark.parametrize("mark", [",", ";", "|"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("is_labelled", [True, False])
def test_rows_of_csv_on_standard_input_are_no_sequences(
    without_names: Path, cli: Cli, mark: str, quoting: int, is_labelled: bool
) -> None:
    """A line that has as many fields as train, or one fewer, is refused with the option."""
    rows = [row if is_labelled else [row[0], *row[2:]] for row in labelled_rows(3)]
    given = ["predict", "-", "--run", without_names / "run"]
    refused = cli(*given, stdin=csv_text(rows, mark, quoting), code=2)
    assert "stdin:1:" in refused.err
    assert "--input-format csv" in refused.err
    for line in ("rise climb", "rise, climb", "rise, climb, grow, grow, sink"):
        assert len(cli(*given, stdin=f"{line}\n").out.splitlines()) == 2


@pytest.mark.parametrize("name", ["train.csv", "train-cells.csv"])
def test_advice_on_a_missing_column_is_whole_and_names_a_conversion_only_after_one(
    tmp_path: Path, cli: Cli, name: str
) -> None:
    columns = ["a long name of a column [°C]", "another long name of a column [bar]", "third [%]"]
    rows = [[str(at), *(f"{at % 7 + k}" for k in range(3)), "xy"[at % 2]] for at in range(20)]
    (tmp_path / name).write_text(csv_text([["id", *columns, "label"], *rows], ";"))
    steps = ", ".join(f"{json.dumps(column)}: number" for column in columns)
    fit(tmp_path, f"data: {{train: {name}, id: id, steps: {{{steps}}}, label: label}}")
    others = ["id", "a name of a column in a new file", *columns[1:], "label"]
    (tmp_path / "new.csv").write_text(csv_text([others, *rows], ";"))
    refused = cli("predict", tmp_path / "new.csv", "--run", tmp_path / "run", code=2)
    assert columns[0] in refused.err
    assert ("convert" in refused.err) == (name != "train.csv")
    assert not any(line.rstrip().endswith("…") for line in refused.problems)
