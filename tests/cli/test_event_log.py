"""fit --log tensorboard: the figures of metrics.jsonl. A log that fails stops no training."""

import json
from pathlib import Path

import pytest

from tests.helpers.tiny import metrics

pytestmark = pytest.mark.filterwarnings("ignore")  # of tensorboard's own


def figures(run: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(run / "tensorboard"))
    found.Reload()
    return {
        name: [(event.step, event.value) for event in found.Scalars(name)]
        for name in found.Tags()["scalars"]
    }


def test_event_files_hold_the_figures_of_the_metrics(project, cli):
    ended = cli("fit", "c.yaml", "--run-dir", "run", "-q", "--log", "tensorboard")
    assert ended.out == "run\n"
    found = figures(project / "run")
    epochs = [line for line in metrics("run") if line["event"] == "epoch"]
    steps = [line["step"] for line in epochs]
    for name in ("loss", "accuracy", "macro_f1"):
        expected = [line["validation"][name] for line in epochs]  # type: ignore[index]
        assert [step for step, _ in found[f"validation/{name}"]] == steps
        assert [value for _, value in found[f"validation/{name}"]] == pytest.approx(expected)
    test = json.loads((project / "run/test.json").read_text())
    assert found["test/accuracy"][0][1] == pytest.approx(test["accuracy"])


def test_a_log_that_cannot_be_written_stops_nothing(project, cli):
    (project / "run").mkdir()
    (project / "run/tensorboard").write_text("a file where the folder should be")
    ended = cli("fit", "c.yaml", "--run-dir", "run", "-q", "--force", "--log", "tensorboard")
    assert ended.out == "run\n"
    assert ended.err.count("--log: stopped by") == 1
    assert (project / "run/best/model.json").exists()
