"""`seqtrain diff`: the metrics of both runs, an interval, and where they differ."""

import shutil
from pathlib import Path

import pytest

from tests.helpers.tiny import CONFIG, fit, rows, trained_folder, write_table


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with runs a and b of the same data, of other seeds and sizes. Read only."""
    folder = trained_folder(tmp_path_factory, CONFIG, "training.max_epochs=1", run="a")
    fit(folder, CONFIG, "seed=1", "training.max_epochs=6", run="b")
    return folder


def test_the_figures_are_those_of_both_runs(beside, cli):
    found = cli("diff", "a", "b", "--json").json
    scores = [cli("eval", name, "--json").json for name in ("a", "b")]
    for metric in ("accuracy", "macro_f1"):
        values = found["metrics"][metric]
        assert [values["a"], values["b"]] == pytest.approx([each[metric] for each in scores])
        assert values["difference"] == pytest.approx(values["b"] - values["a"])
        assert values["low"] <= values["difference"] <= values["high"]
    right = found["right"]
    assert sum(right.values()) == found["num_examples"] == 20
    assert right["both"] + right["only_a"] == round(20 * scores[0]["accuracy"])
    assert right["both"] + right["only_b"] == round(20 * scores[1]["accuracy"])


def test_rows_that_differ_come_with_both_answers(beside, cli):
    found = cli("diff", "a", "b", "--json").json
    assert len(found["rows"]) == found["num_differing"] > 0
    file = Path("test.tsv").read_text().splitlines()
    for row in found["rows"]:
        assert row["a"]["predicted"] != row["b"]["predicted"]
        assert file[row["line"] - 1] == f"{row['text']}\t{row['label']}"
    answers = {
        name: cli("predict", "test.tsv", "--run", name).out.splitlines() for name in ("a", "b")
    }
    differing = [i + 1 for i in range(1, 21) if len({answers[n][i].split()[0] for n in "ab"}) > 1]
    assert sorted(row["line"] for row in found["rows"]) == differing
    assert len(cli("diff", "a", "b", "--json", "--top", "1").json["rows"]) == 1


def test_the_screen(beside, cli):
    ended = cli("diff", "a", "b", "--top", "1")
    assert "accuracy" in ended.out
    assert "95% interval" in ended.out
    assert "only B" in ended.out
    assert "predictions that differ" in ended.out
    assert "A: a, B: b, data: test.tsv" in ended.err
    same = cli("diff", "a", "a")
    assert "+0.0% to +0.0%" in same.out
    assert "A is better" not in same.out
    assert "B is better" not in same.out


def test_other_data_is_refused(beside, tmp_path, cli):
    shutil.copytree(beside / "b", tmp_path / "b")
    write_table(tmp_path / "other.tsv", rows(20, seed=9))
    config = (tmp_path / "b/config.yaml").read_text()
    other = config.replace("test: test.tsv", f"test: {tmp_path / 'other.tsv'}")
    (tmp_path / "b/config.yaml").write_text(other)
    ended = cli("diff", "a", tmp_path / "b", code=2)
    assert ended.out == ""
    assert "--data" in ended.err
    cli("diff", "a", tmp_path / "b", "--data", "test.tsv")
