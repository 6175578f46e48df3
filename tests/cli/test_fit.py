"""`seqtrain fit`: the run directory, its files, and refusals that write nothing."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from tests.helpers.tiny import CONFIG, metrics, rows, sets, write_table


def test_run_directory_holds_what_the_contract_lists(trained):
    run = trained / "run"
    folder_files = {"model.safetensors", "model.json", "vocabulary.json", "manifest.json"}
    assert {p.name for p in run.iterdir()} == {
        *("config.yaml", "environment.json", "metrics.jsonl", "test.json", "validation.json"),
        *("best", "last"),
    }
    assert {p.name for p in (run / "best").iterdir()} == folder_files
    state = {p.name for p in (run / "last").iterdir()} - folder_files
    assert state
    assert all(name.startswith("training_state.") for name in state)
    tokens = json.loads((run / "best" / "vocabulary.json").read_text())["tokens"]
    assert tokens[:2] == ["<pad>", "<unk>"]


def test_the_losses_of_train_and_validation_are_comparable(project, cli):
    untrained = sets("training.lr=1e-9", "training.max_epochs=1")
    cli("fit", "c.yaml", "--run-dir", "r", *untrained)
    [epoch] = [line for line in metrics("r") if line["event"] == "epoch"]
    assert epoch["train"]["loss"] == pytest.approx(epoch["validation"]["loss"], abs=0.1)  # type: ignore[index]


def test_the_end_compares_validation_with_the_majority_class(project, cli):
    shown = cli("fit", "c.yaml", "--run-dir", "r", "--set", "data.test=null").err
    [line] = [line for line in shown.splitlines() if line.startswith("validation at the best")]
    best = next(line for line in reversed(metrics("r")) if line.get("best"))["validation"]
    for name in ("accuracy", "majority_baseline"):
        assert f"{best[name]:.2%}" in line  # type: ignore[index]


def test_metrics_lines_hold_the_contracts_keys(trained):
    events = [json.loads(line) for line in (trained / "run/metrics.jsonl").read_text().splitlines()]
    epochs = [event for event in events if event["event"] == "epoch"]
    assert [event["epoch"] for event in epochs] == [1, 2]
    assert events[-1]["event"] == "end"
    for event in epochs:
        assert event.keys() >= {
            *("epoch", "step", "train", "validation", "lr", "seconds"),
            *("tokens", "tokens_per_second", "padding_fraction"),
        }
        assert event["train"].keys() >= {"loss", "accuracy"}
        assert event["validation"].keys() >= {"loss", "accuracy", "macro_f1"}
        assert 0 <= event["padding_fraction"] < 1
    words = [len(text.split()) for text, _ in rows(40, seed=1)]
    assert sum(words) * 0.5 < epochs[0]["tokens"] < sum(words)


def test_resolved_config_repeats_the_run(beside, cli, tmp_path):
    cli("fit", "run/config.yaml", "--run-dir", tmp_path / "again")
    for name in ("best/model.safetensors", "last/model.safetensors", "config.yaml"):
        assert (tmp_path / "again" / name).read_bytes() == Path("run", name).read_bytes()


def test_the_end_compares_with_the_n_grams_alone(project, cli):
    ended = cli("fit", "c.yaml", "--set", "model.ngrams=[1, 2]", "--run-dir", "r")
    line = re.compile(r"n-grams ([\d.]+)%, all together ([\d.]+)%")
    (figures,) = line.findall(ended.err)
    scores = cli("eval", "r", "--json").json
    expected = scores["parts"]["ngrams"]["accuracy"], scores["accuracy"]
    assert figures == tuple(f"{100 * value:.1f}" for value in expected)


def test_a_model_that_learns_nothing_of_validation_says_what_to_look_at(project, cli):
    lines = [f"{'ab'[i * i % 7 % 2]},w{i * 31 % 17} w{i * 13 % 11}\n" for i in range(120)]
    Path("odd.csv").write_text("label,text\n" + "".join(lines))
    keys = [
        "data={train: odd.csv, validation: 0.4, sequence: text, label: label}",
        "training.lr=1e-6",
    ]
    said = cli("fit", "c.yaml", *sets(*keys), "--run-dir", "r").err
    assert "not clearly better" in said
    assert "data.sequence and data.label" in said


@pytest.mark.parametrize("monitor", ["accuracy", "macro_f1"])
def test_a_model_without_a_right_prediction_says_what_to_look_at(project, cli, monitor):
    """Labels that are quantities: only one of validation occurs in train."""
    for name, start in (("train", 100), ("held", 159)):
        lines = [f"{(start + i) / 100},w{i % 7} w{i % 5}\n" for i in range(60)]
        Path(f"{name}.csv").write_text("label,text\n" + "".join(lines))
    data = "data={train: train.csv, validation: held.csv, sequence: text, label: label}"
    keys = [data, f"training.monitor={monitor}", "training.max_epochs=2"]
    said = cli("fit", "c.yaml", *sets(*keys), "--run-dir", "r").err
    assert f"validation {monitor} 0.0%" in said


def test_what_is_as_good_as_the_whole_is_named(project, cli):
    """A branch, and the majority-class baseline, for a model that learns next to nothing."""
    examples = [(f"w{i % 5} w{i % 3}", "up" if i % 4 else "down") for i in range(40)]
    write_table(project / "train.tsv", examples)
    write_table(project / "test.tsv", examples[:20])
    lr = ("training.lr=1e-9", "model.ngrams=[1, 2]")
    ended = [cli("fit", "c.yaml", *sets(*lr), "--run-dir", "r"), cli("eval", "r")]
    scores = json.loads(cli("eval", "r", "--json").out)
    whole, parts = scores["accuracy"], {n: s["accuracy"] for n, s in scores["parts"].items()}
    names = {"ngrams": "n-grams", "recurrent": "recurrent network"}
    assert whole <= 0.75
    assert max(parts.values()) >= whole
    for each in ended:
        assert "predicting 'up' is right for 75.0%" in each.err
        for name, own in parts.items():
            assert f"{names[name]} {own:.1%}, " in each.err
            enough = each.err.partition("enough alone: ")[2].partition("\n")[0]
            assert (names[name] in enough) == (own >= whole)
    assert "alone" not in cli("eval", "r", "--split", "train").err  # rows that it learned


def test_a_refit_that_few_rows_would_end_early_makes_all_epochs(project, cli):
    """Labels have nothing to do with words: some epoch is the best of 8 rows by chance."""
    examples = [(text, ["up", "down"][i % 3 == 0]) for i, (text, _) in enumerate(rows(40, seed=1))]
    write_table(project / "train.tsv", examples)
    settings = ("training.refit=true", "training.max_epochs=12", "training.lr=0.05")
    cli("fit", "c.yaml", *sets(*settings), "--run-dir", "r")
    *epochs, end = [json.loads(line) for line in Path("r/metrics.jsonl").read_text().splitlines()]
    right = [row["validation"]["accuracy"] for row in epochs if row["event"] == "epoch"]
    assert right[-1] < max(right) - 0.2
    assert end["epochs"] == 12
    assert end["best_epoch"] < 12


def test_quiet_prints_warnings_alone(project, cli):
    write_table(project / "test.tsv", [*rows(20, seed=2), ("rise", "sideways")])
    ended = cli("fit", "c.yaml", "--quiet")
    assert ended.problems
    assert all(line.startswith("warning: ") for line in ended.problems)
    assert "test.tsv:22" in ended.err
    assert "sideways" in ended.err


def test_strange_labels_print_safely(project, cli):
    strange = ["[/red]", "[bold]b", "\x1b[31mred", "=1+2"]
    examples = [(text, strange[i % 4]) for i, (text, _) in enumerate(rows(40, seed=1))]
    write_table(project / "train.tsv", examples)
    write_table(project / "test.tsv", [*examples[:3], ("new", "[/x]\x07")])
    ended = cli("fit", "c.yaml", "--run-dir", "r")
    assert "[/red]" in ended.err
    assert "[bold]b" in ended.err
    assert "\\x1b[31mred" in ended.err
    assert "\x1b" not in ended.err
    assert "\x07" not in ended.err
    scored = cli("eval", "r")
    assert "[/red]" in scored.out
    assert "\x1b" not in scored.out
    assert cli("eval", "r", "--json").json["labels"] == sorted(strange)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_strange_run_directory_is_printed_safely_on_a_terminal_alone(
    project, cli, monkeypatch, terminal
):
    name = "r\x1b[31m\x9b\u202eé"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    ended = cli("fit", "c.yaml", "--run-dir", name, "--quiet", "--set", "training.max_epochs=1")
    assert ended.out == ("r\\x1b[31m\\x9b\\u202eé\n" if terminal else f"{name}\n")


def test_data_file_names_may_be_strange(project, cli):
    (project / "train.tsv").rename(project / "-new\nline.tsv")
    config = yaml.safe_load(CONFIG)
    config["data"]["train"] = "-new\nline.tsv"
    (project / "c.yaml").write_text(json.dumps(config))
    assert cli("fit", "c.yaml", "--run-dir=-r\n1").out == "-r\n1\n"
    assert cli("predict", "--run=-r\n1", "--", "-new\nline.tsv").out.count("\n") == 41


BAD_ROWS = ["no label", "three\tfields\tup", "blank label\t "]
DROP = ("--set", "data.bad_rows=drop")


def test_rows_that_were_left_out_explain_a_missing_class(project, cli):
    rows = (b"r\xe9 n%d\tup\n" % n if n % 2 else b"fall n%d\tdown\n" % n for n in range(20))
    Path("train.tsv").write_bytes(b"text\tlabel\n" + b"".join(rows))
    for words in (("fit", "c.yaml", *DROP), ("data", "c.yaml")):
        said = cli(*words, code=2).err
        assert "found one class" in said
        assert "train.tsv:3: byte 2 is not UTF-8" in said
        assert "skipped 10 examples" in said


def test_bad_rows_may_be_dropped(project, cli):
    """The rest is trained on and scored as if they were not there; predict leaves them blank."""
    for name in ("train.tsv", "test.tsv"):
        lines = Path(name).read_text().splitlines()
        text = "\n".join([*lines[:3], *BAD_ROWS, *lines[3:], "bad"])
        Path(f"spoilt-{name}").write_text(text)
    Path("spoilt.yaml").write_text(CONFIG.replace("train.tsv", "spoilt-train.tsv"))
    cli("fit", "spoilt.yaml", "--quiet", "--run-dir", "refused", code=2)
    ended = cli("fit", "spoilt.yaml", "--quiet", "--run-dir", "read", *DROP)
    shown = [line for line in ended.problems if "spoilt-train.tsv:" in line]
    assert [re.findall(r"\b\d+\b", line) for line in shown] == [
        ["4", "2", "1", "45"],  # lines 4 and 45 have one field instead of two
        ["5", "2", "3"],
        ["6"],
    ]
    assert "skipped 4 " in ended.err
    cli("fit", "c.yaml", "--quiet", "--run-dir", "clean", *DROP)
    weights = [Path(run, "best/model.safetensors").read_bytes() for run in ("clean", "read")]
    assert weights[0] == weights[1]
    wanted = cli("eval", "clean", "--json").json | {"trained_on_rows": None}
    ended = cli("eval", "clean", "--json", "--data", "spoilt-test.tsv")
    assert ended.json == wanted
    assert "spoilt-test.tsv: skipped 4 " in ended.err
    rows = cli("predict", "spoilt-test.tsv", "clean").out.splitlines()
    assert [index for index, row in enumerate(rows, 1) if row == "\t"][:2] == [4, 5]
    stopped = cli("predict", "spoilt-test.tsv", "clean", "--bad-rows", "error", code=2)
    assert stopped.out.count("\n") == 3
    assert "spoilt-test.tsv:4: " in stopped.err


SETTINGS = ("--set", "training.max_epochs=12", "--set", "training.lr=0.05")
REFIT = ("--set", "data.validation=0.2", "--set", "training.refit=true")


def test_scores_of_learned_rows_say_so(project, cli):
    ended = cli("fit", "c.yaml", "--run-dir", "r", *SETTINGS, *REFIT)
    before, _, after = ended.err.partition("refit 1: ")
    assert "training.refit" in before.splitlines()[-1]
    assert after.count("refit 2: ") == 1
    assert "refit is kept" in after
    assert "next: seqtrain predict FILE r, seqtrain eval r, seqtrain errors r\n" in ended.err
    no_test = ("--set", "data.test=null", "--set", "training.max_epochs=1")
    refitted = cli("fit", "c.yaml", "--run-dir", "r2", *REFIT, *no_test)
    assert "next: seqtrain predict FILE r2\n" in refitted.err  # no rows that weren't learned
    advised = re.search("seqtrain (fit .*) --folds 5", cli("errors", "r2").err)
    folds = cli(*shlex.split(advised[1]), "--folds", "2", "--run-dir", "folds").out.split()[-1]
    assert cli("errors", folds, "--json").json["num_examples"] == 40  # all rows of train
    too = "trained on these rows too (training.refit)"
    assert too in " ".join(cli("eval", "r", "--split", "validation").err.split())
    assert "trained on these rows" in cli("eval", "r", "--split", "train").err
    asked = {"--split": ("train", "validation", "test"), "--data": ("test.tsv",)}
    said = [
        cli("eval", "r", option, value, "--json").json["trained_on_rows"]
        for option, values in asked.items()
        for value in values
    ]
    assert said == [True, True, False, None]
    cli("report", "r", "--split", "validation", "--output", "r.html")
    page = Path("r.html").read_text()
    assert f"validation, {too}" in page


def test_a_file_of_another_kind_is_named_with_what_the_model_reads(trained, trained_features, cli):
    """At predict and eval there is no config to change, so no key of it is named."""
    text, features = trained / "run", trained_features / "run"
    series, table = trained_features / "train.npz", trained / "test.tsv"
    cases = [
        (text, series, "found format npz; the model reads text; expected csv, tsv,"),
        (features, table, "found format tsv; the model reads features without named columns; "),
    ]
    for run, other, said in cases:
        for command in (("predict", other, run), ("eval", run, "--data", other)):
            ended = cli(*command, code=2)
            assert said in ended.err
            assert "data." not in ended.err
    ended = cli("predict", "-", features, stdin="hello\n", code=2)
    assert re.search("stdin:1: .*'hello'", ended.err)


def test_runs_shows_the_scores_of_the_calibrated_model(project, cli):
    cli("fit", "c.yaml", "--run-dir", "runs/r", "--quiet", "--set", "training.refit=true")
    saved = json.loads(Path("runs/r/validation.json").read_text())
    [run] = cli("runs", "--json").json["runs"]
    assert run["validation"] == {name: saved[name] for name in run["validation"]}
    best = next(line for line in reversed(metrics("runs/r")) if line.get("best"))["validation"]
    assert run["validation"]["loss"] != best["loss"]  # type: ignore[index]
