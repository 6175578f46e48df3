"""The verbs as plain functions: a session as the README has it."""

import ast
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

import seqtrain
from seqtrain.api.study import Trial
from seqtrain.api.tune import Tuned
from seqtrain.errors import ConfigError, DataError, Interrupted
from tests.helpers.tiny import assert_same_run, write_table

WORDS = {"down": ("fall", "sink"), "up": ("rise", "climb")}


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("data")
    words = [(word, label) for _ in range(12) for label in WORDS for word in WORDS[label]]
    given = [(f"the {word} of n{i}", label) for i, (word, label) in enumerate(words)]
    write_table(folder / "train.tsv", given)
    return {
        "data": {
            "train": folder / "train.tsv",
            "validation": 0.25,
            "sequence": "text",
            "label": "label",
        },
        "model": {"embedding_dim": 8, "hidden_size": 8},
        "batching": {"batch_size": 8},
        "training": {"max_epochs": 12, "lr": 0.03, "monitor": "loss"},
    }


@pytest.fixture(scope="module")
def run(config, tmp_path_factory) -> seqtrain.Run:
    return seqtrain.fit(config, run_dir=tmp_path_factory.mktemp("runs") / "r", device="cpu")


def test_import_is_light():
    script = "import sys, seqtrain; dir(seqtrain); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_all_names_are_there():
    assert all(getattr(seqtrain, name) is not None for name in seqtrain.__all__)
    with pytest.raises(AttributeError, match="trian"):
        _ = seqtrain.trian


def test_session(run, config):
    classifier = seqtrain.load(run)
    assert classifier.labels == ("down", "up")
    answers = classifier.predict(["the rise of x", "sink", "the climb", "fall fall"])
    assert [answer.label for answer in answers] == ["up", "down", "up", "down"]
    assert sum(answers[0].probabilities.values()) == pytest.approx(1)
    assert answers[1].unknown == 0
    assert classifier.predict(["zzz yyy"])[0].unknown == 1
    assert classifier.predict([]) == []
    assert seqtrain.evaluate(run, split="validation").scores.num_examples == 12
    assert seqtrain.evaluate(str(run.path), split="train").scores.accuracy == 1.0
    train = str(config["data"]["train"])  # type: ignore[index]
    assert len(list(seqtrain.predict(train, run))) == 48
    assert run.best_epoch <= run.epochs
    assert run.test is None


def test_equal_seeds_give_equal_bits_and_leave_the_global_generator(config, tmp_path, run):
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    again = seqtrain.fit(config, run_dir=tmp_path / "again")
    assert torch.equal(torch.rand(1), expected)
    for name in ("best/model.safetensors", "last/training_state.safetensors"):
        assert (again.path / name).read_bytes() == (run.path / name).read_bytes()
    other = seqtrain.fit({**config, "seed": 1}, run_dir=tmp_path / "other")
    name = "best/model.safetensors"
    assert (other.path / name).read_bytes() != (run.path / name).read_bytes()


def test_two_fits_in_threads_of_one_process_give_the_bits_of_each_alone(config, tmp_path):
    keys = {"num_layers": 2, "dropout": 0.3, "embedding_dropout": 0.2, "initial_state": "random"}
    model = {"embedding_dim": 8, "hidden_size": 8, **keys}
    configs = [{**config, "model": model, "seed": seed} for seed in (0, 1)]

    def weights(name: str, config: dict[str, object]) -> bytes:
        run = seqtrain.fit(config, run_dir=tmp_path / name)
        return (run.path / "last" / "model.safetensors").read_bytes()

    alone = [weights(f"alone-{place}", config) for place, config in enumerate(configs)]
    with ThreadPoolExecutor(2) as pool:
        together = [*pool.map(weights, ("together-0", "together-1"), configs)]
    assert together == alone
    assert alone[0] != alone[1]


def test_listener_hears_every_update(config, tmp_path):
    heard: list[str] = []
    seqtrain.fit(config, run_dir=tmp_path / "r", listener=lambda e: heard.append(type(e).__name__))
    epochs = heard.count("EpochEvent")
    assert heard[:2] == ["DataEvent", "StartEvent"]
    assert heard[-1] == "Run"
    assert heard.count("UpdateEvent") == epochs * 5


def stopped_at(kind: str, number: int, ending: object) -> Callable[[object], object]:
    """Return a listener that ends training at an event: it returns STOP, or raises an error."""
    heard = 0

    def listener(event: object) -> object:
        nonlocal heard
        heard += type(event).__name__ == kind
        if heard != number or type(event).__name__ != kind:
            return None
        if isinstance(ending, Exception):
            raise ending
        return ending

    return listener


@pytest.mark.parametrize(
    ("kind", "number"), [("StartEvent", 1), ("UpdateEvent", 7), ("EpochEvent", 1)]
)
@pytest.mark.parametrize(
    ("ending", "raised"), [(seqtrain.STOP, Interrupted), (KeyError("my own"), KeyError)]
)
def test_a_listener_ends_training_and_the_run_goes_on_exactly(
    config, run, tmp_path, kind, number, ending, raised
):
    given = {"run_dir": tmp_path / "r", "progress": False, "device": "cpu"}
    with pytest.raises(raised) as caught:
        seqtrain.fit(config, **given, listener=stopped_at(kind, number, ending))
    if raised is Interrupted:
        assert "by the listener" in str(caught.value)
        assert "resume=True" in str(caught.value)
    else:
        assert caught.value is ending
    if kind == "EpochEvent":
        assert seqtrain.load(tmp_path / "r").predict(["a"])
    seqtrain.fit(config, **given, resume=True)
    assert_same_run(run.path, tmp_path / "r")


def test_a_listener_that_stops_before_training_leaves_nothing(config, tmp_path):
    stop = stopped_at("DataEvent", 1, seqtrain.STOP)
    with pytest.raises(Interrupted, match="nothing"):
        seqtrain.fit(config, run_dir=tmp_path / "r", progress=False, listener=stop)
    assert not (tmp_path / "r").exists()


def test_progress_is_a_line_per_epoch_on_stderr(config, tmp_path, capsys):
    run = seqtrain.fit(config, run_dir=tmp_path / "r")
    shown = capsys.readouterr()
    assert shown.out == ""
    epochs = re.findall(r"^epoch (\d+)(?: \*)?: train loss \d.*val. accuracy", shown.err, re.M)
    assert epochs == [str(number) for number in range(1, run.epochs + 1)]
    assert f"best epoch {run.best_epoch}" in shown.err
    assert str(run.path) in shown.err
    assert "\r" not in shown.err  # a bar is for terminals
    seqtrain.fit(config, run_dir=tmp_path / "s", progress=False)
    assert capsys.readouterr() == ("", "")


def test_the_table_of_names_is_what_type_checkers_read():
    tree = ast.parse(Path(seqtrain.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in guarded.body if isinstance(node, ast.ImportFrom)]
    read = {alias.name: node.module for node in imports for alias in node.names}
    assert read == seqtrain._MODULES


CALLS = {
    "seqtrain.fit('c.yaml', rundir='r')": 'argument "rundir"',
    "seqtrain.init('a.csv', lable='x')": 'argument "lable"',
    "seqtrain.predict('a.csv', kep=['id'])": 'argument "kep"',
    "seqtrain.evaluat('r')": 'attribute "evaluat"',
    "seqtrain.fit('c.yaml', run_dir='r').path.name": "",
    "seqtrain.tune('c.yaml', trials=3).best": "",
    "seqtrain.load().predict(['a'])[0].label": "",
    "seqtrain.export('r', 'folder').folder": "",
    "seqtrain.report(['r'], 'page.html').path": "",
    "seqtrain.diff('a', 'b').metrics": "",
    "DataLoader(store, batch_size=4, collate_fn=collate)": "",
}
"""Calls, and what a type checker says of them."""


CHECKED = {
    "libraries": "",
    "package": "follow_imports = skip\n[mypy-seqtrain.*]\nfollow_imports = silent\n",
}
"""Settings of mypy: it needs a minute if it reads the libraries, too."""


@pytest.mark.parametrize("extent", ["package", pytest.param("libraries", marks=pytest.mark.slow)])
def test_type_checkers_see_every_keyword(tmp_path, extent):
    pytest.importorskip("mypy")
    imports = (
        "import seqtrain; from torch.utils.data import DataLoader; "
        "from seqtrain.sequences.batch import collate; "
        "from seqtrain.sequences.store import SequenceStore; store: SequenceStore"
    )
    (tmp_path / "user.py").write_text("\n".join([imports, *CALLS, ""]))
    root = Path(seqtrain.__file__).parents[1]
    page = (root / "README.md").read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    (tmp_path / "page.py").write_text(page)
    files = [str(tmp_path / name) for name in ("user.py", "page.py")]
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = true\n{CHECKED[extent]}")
    settings = ["--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(tmp_path)]
    words = [sys.executable, "-m", "mypy", *settings, *files]
    ended = subprocess.run(words, capture_output=True, text=True, cwd=root)
    found = re.findall(r"user\.py:([0-9]+): error: (.*)", ended.stdout)
    wrong = [(f"{line}", part) for line, part in enumerate(CALLS.values(), start=2) if part]
    assert [line for line, _ in found] == [line for line, _ in wrong], ended.stdout
    assert "page.py" not in ended.stdout, ended.stdout
    assert all(part in problem for (_, problem), (_, part) in zip(found, wrong, strict=True))


@pytest.mark.parametrize(
    ("sequences", "words"),
    [
        ("rise", "found one str; expected a list of sequences"),
        (5, "found one int; expected a list of sequences"),
        (None, "found one NoneType; expected a list of sequences"),
        (np.array("rise"), "found one ndarray; expected a list of sequences"),
        (["rise", {"a": 1}], "sequence 2: expected a string, found an object"),
        (["rise", {"a": "rise"}], "sequence 2: expected a string, found an object"),
    ],
)
def test_what_is_no_list_of_sequences_is_refused(run, sequences, words):
    with pytest.raises(DataError, match=words) as caught:
        seqtrain.load(run).predict(sequences)  # type: ignore[arg-type]
    assert len(caught.value.problems) == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("nothing", ["", None, float("nan"), []])
def test_an_empty_sequence_of_a_list_has_no_label(run, nothing):
    """As in a file: the others are classified."""
    plain = seqtrain.load(run).predict(["rise", "fall"])
    assert [each.decided for each in seqtrain.predict_steps(["rise", "fall"], run)] == [1, 1]
    first, empty, last = seqtrain.load(run).predict(["rise", nothing, "fall"])
    assert [first.label, last.label] == [each.label for each in plain]
    assert (empty.label, empty.problem) == ("", "the sequence is empty")


@pytest.mark.parametrize("given", [["rise"], 5])
def test_what_is_no_labelled_table_is_refused(run, given):
    with pytest.raises(DataError, match="expected a file, or a DataFrame"):
        seqtrain.evaluate(run, data=given)


def test_a_split_that_cannot_be_is_refused(run):
    with pytest.raises(ConfigError, match=r"found 'dev'; .*test, validation, train"):
        seqtrain.evaluate(run, split="dev")


def test_results_show_on_one_line_and_as_tables(run):
    classifier = seqtrain.load(run)
    prediction = classifier.predict(["the rise of x"])[0]
    evaluation = seqtrain.evaluate(run, split="validation")
    checked = seqtrain.check(run)
    assert repr(run) == f"Run(path: {run.path}, best epoch: {run.best_epoch} of {run.epochs})"
    assert "gru of 8, pooling last, classes: 2, sequences: text by word" in repr(classifier)
    assert repr(prediction) == f"Prediction(label: up, probability: {prediction.probability:.2%})"
    assert repr(evaluation.scores).startswith("Scores(accuracy: 100.00%, ")
    assert repr(checked).startswith("Check(verdict: passed, ")
    assert re.match(r"Evaluation\(split: validation, data: \S+train.tsv, acc", repr(evaluation))
    assert "none" in repr(seqtrain.Prediction("", 0.5))
    markup = seqtrain.Prediction("<b>\x1b[31m", 0.5)
    assert "<b>" not in markup._repr_html_()
    assert "\x1b" not in repr(markup)
    difference = seqtrain.diff(run, run, split="validation")
    assert "accuracy: 100.00% and 100.00%, difference +0.00%" in repr(difference)
    tuned = Tuned(run, Trial(0, {"model.dropout": 0.1}, value=0.5), [])
    assert "best trial: 0, settings: model.dropout: 0.1, best value: 0.5000" in repr(tuned)
    results = (run, classifier, prediction, evaluation, evaluation.scores, checked, difference)
    for shown in (*results, tuned):
        assert shown._repr_html_().startswith(f"<table><caption>{type(shown).__name__}</caption>")
        assert "\n" not in repr(shown)


def test_predictions_of_a_file_are_a_stream_an_array_and_a_frame(run):
    texts = ["the rise of x", "the fall of x", "rise", "fall"]
    expected = seqtrain.load(run).predict(texts)
    found = seqtrain.predict(texts, run)
    assert next(found) == expected[0]
    np.testing.assert_array_equal(found.probabilities, expected.probabilities[1:])
    assert [*found] == expected[1:]
    assert isinstance(expected[1:], seqtrain.Predictions)
    np.testing.assert_array_equal(expected[1:].probabilities, expected.probabilities[1:])
    pytest.importorskip("pandas")
    found = seqtrain.predict(texts, run)
    assert list(found.to_frame("pandas")["label"]) == expected.labels


def test_kept_predictions_of_many_classes_take_little_memory(tmp_path):
    classes = 77
    table = {"s": [f"w{row}" for row in range(2 * classes)], "l": [*range(classes)] * 2}
    config = {
        "data": {"sequence": "s", "label": "l"},
        "model": {"hidden_size": 4, "embedding_dim": 4},
        "training": {"max_epochs": 1},
    }
    run = seqtrain.fit(config, train=table, run_dir=tmp_path / "r", progress=False)
    classifier, texts = seqtrain.load(run), table["s"] * 20
    classifier.predict(texts[:1])
    tracemalloc.start()
    try:
        found = classifier.predict(texts)
        taken = tracemalloc.get_traced_memory()[0] / len(found)
    finally:
        tracemalloc.stop()
    assert taken < 2000  # and 616 for the probabilities, in memory of torch; once 3,900
    assert len(found[0].probabilities) == classes
    assert next(iter(found[0].probabilities)) == found[0].label
