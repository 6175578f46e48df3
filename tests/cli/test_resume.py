"""`fit --resume`: bit-exact continuation, and refusal of changes."""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from seqtrain.api.fit import fit
from seqtrain.config import load_config
from seqtrain.errors import Interrupted
from seqtrain.files.writing import write_folder
from seqtrain.runs.model_folder import load_model, model_files
from tests.helpers.tiny import (
    assert_same_run,
    fit_until,
    listing,
    metrics,
    rows,
    sets,
    stopping_after,
    write_table,
)


@pytest.mark.parametrize("epochs", [1, 3])
def test_longer_run_equals_an_uninterrupted_one(project, cli, epochs):
    whole = ("--set", "training.max_epochs=3")
    cli("fit", "c.yaml", "--run-dir", "whole", *whole)
    cli("fit", "c.yaml", "--run-dir", "parts", "--set", f"training.max_epochs={epochs}")
    ended = cli("fit", "c.yaml", "--run-dir", "parts", "--resume", *whole)
    assert ended.out == "parts\n"
    assert_same_run("whole", "parts")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("seed=1",), ["seed: found 1, but r/config.yaml has 0"]),
        (
            ("model.hidden_size=5", "model.freeze=1"),  # which is no switch, though 1 == True
            [
                "model.hidden_size: found 5, but r/config.yaml has 4",
                "model.freeze: found 1, but r/config.yaml has true",
            ],
        ),
        (
            ("training.max_epochs=1",),
            ["training.max_epochs: found 1, but 2 epochs are done; expected 2 or more"],
        ),
    ],
)
def test_changed_keys_are_named(project, cli, changed, said):
    frozen = ("fit", "c.yaml", "--run-dir", "r", *sets("model.freeze=true"))
    cli(*frozen)
    before = listing(project)
    ended = cli(*frozen, "--resume", *sets(*changed), code=2)
    assert all(words in ended.err for words in said)
    assert listing(project) == before


def test_changed_data_is_named_with_both_digests(begun, cli):
    recorded = json.loads(Path("r/environment.json").read_text())["data"]["test.tsv"]
    write_table(begun / "test.tsv", rows(19, seed=2))
    before = listing(begun)
    ended = cli("fit", "c.yaml", "--run-dir", "r", "--resume", "--quiet", code=2)
    assert len(ended.problems) == 1
    assert "test.tsv" in ended.err
    assert recorded[:12] in ended.err
    assert listing(begun) == before


FILES = ["training_state.json", "model.safetensors"]


@pytest.mark.parametrize("name", FILES)
def test_damaged_checkpoint_is_skipped_for_the_one_before(project, cli, name):
    cli("fit", "c.yaml", "--run-dir", "whole")
    fit_until(1, "r")
    fit_until(2, "r", resume=True)
    before = listing(Path("r/previous"))
    path = Path("r/last", name)
    path.write_bytes(path.read_bytes()[:-9])
    shutil.copytree("r", "killed")
    fit_until(2, "killed", resume=True)
    assert listing(Path("killed/previous")) == before, "the damaged one took its place"
    ended = cli("fit", "c.yaml", "--run-dir", "r", "--resume", "--quiet")
    assert name in ended.err
    assert "from r/previous (update 4)" in ended.err
    assert_same_run("whole", "r")


@pytest.mark.parametrize(
    ("harmed", "content"),
    [
        ("best", None),
        ("best/model.safetensors", b"x" * 100),
        ("*/training_state.json", b"{}"),
        ("metrics.jsonl", b""),
    ],
)
def test_run_that_cannot_end_is_refused_before_data_are_read(project, cli, harmed, content):
    """The best epoch is the first. The last checkpoint was written after the second."""
    epochs = ("--set", "training.max_epochs=2", "--set", "training.lr=1e-30")
    cli("fit", "c.yaml", "--run-dir", "r", *epochs)
    for path in Path("r").glob(harmed):
        shutil.rmtree(path) if content is None else path.write_bytes(content)
    write_table(project / "train.tsv", [("broken", "")])
    before = listing(project)
    longer = ("--set", "training.max_epochs=4", "--set", "training.lr=1e-30")
    ended = cli("fit", "c.yaml", "--run-dir", "r", "--resume", *longer, code=2)
    assert "train.tsv" not in ended.err
    assert ended.problems[-1].endswith(" with --force")
    assert all(problem.startswith("seqtrain: ") for problem in ended.problems)
    assert listing(project) == before


def test_run_of_another_name_is_not_taken_and_the_searched_folder_is_named(project, cli):
    cli("fit", "c.yaml", "--run-dir", "runs/mine")
    ended = cli("fit", "c.yaml", "--resume", code=2)
    assert str(Path("runs").absolute()) in ended.err
    assert "--run-dir" in ended.err


def test_rules_of_stopping_may_change(project, cli):
    cli("fit", "c.yaml", "--run-dir", "r")
    changed = sets("training.max_epochs=3", "training.patience=null", "training.min_delta=0.5")
    cli("fit", "c.yaml", "--run-dir", "r", "--resume", *changed)
    assert [line["event"] for line in metrics("r")].count("epoch") == 3


@pytest.mark.parametrize(
    "options", [("training.max_epochs=2",), ("training.max_epochs=9", "training.patience=1")]
)
def test_run_with_nothing_left_says_why_and_keeps_its_config(project, cli, options):
    """So low a learning rate brings no better epoch than the first."""
    slow = ("--set", "training.lr=1e-30")
    cli("fit", "c.yaml", "--run-dir", "r", *slow)
    before = Path("r/config.yaml").read_bytes()
    ended = cli("fit", "c.yaml", "--run-dir", "r", "--resume", *slow, *sets(*options))
    assert "epoch 2, the best is 1" in ended.err
    assert "training.max_epochs or training.patience" in ended.err
    assert "going on" not in ended.err
    assert Path("r/config.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("every", "saves"),
    [("{steps: 3}", [3, 4]), ("{steps: 5}", [0, 4]), ("{minutes: 1e-9}", [4, 4])],
)
def test_checkpoints_within_an_epoch(project, every, saves):
    """One epoch of four steps, whose end has a checkpoint in any case, as has step 0."""
    fit_until(1, "r", f"training.checkpoint_every={every}", "training.max_epochs=1")
    assert [step_of("r/previous"), step_of("r/last")] == saves


LANGUAGE_MODEL = ("pretraining.objective=language_model", "pretraining.max_epochs=1")
SPELLED = ("model.ngrams_spelling=true",)
STOPPED = {
    "plain": (
        *("training.weight_decay=0.1", "training.checkpoint_every={steps: 2}", "model.rnn=lstm"),
        *("training.optimizer=adam", "training.schedule=cosine", "training.warmup=0.2"),
        *("model.initial_state=random", "model.num_layers=2", "model.pooling=attention"),
        *("model.initial_scale=2.0", "training.bptt=2"),
    ),
    "plateau": (
        *("training.schedule=plateau", "training.class_weights=balanced", "model.freeze=1"),
        "training.sparse_embedding=false",
    ),
    "refit": ("training.refit=true", "model.ngrams=[1, 2]", "model.subwords=[3, 4]", *SPELLED),
    "autoencoder": ("pretraining.objective=autoencoder", "pretraining.max_epochs=1"),
    "language model": (*LANGUAGE_MODEL, "training.optimizer=sgd", "training.precision=bfloat16"),
}


@pytest.mark.parametrize("kind", STOPPED)
def test_a_run_stopped_after_every_update_ends_with_equal_bits(project, cli, kind):
    """Small batches: some tokens are in none of them, and have no state of the optimizer."""
    settings = ["batching.batch_size=16", *STOPPED[kind]]
    cli("fit", "c.yaml", "--run-dir", "whole", *sets(*settings))
    config, stops = load_config("c.yaml", settings), 0
    while not Path("parts/test.json").exists():
        with suppress(Interrupted):
            begun = Path("parts").exists()
            fit(config, run_dir="parts", resume=begun, listener=stopping_after(1))
        stops += 1
    assert stops > 2 * len([line for line in metrics("whole") if line["event"] != "end"])
    assert_same_run("whole", "parts")


def test_weights_that_are_not_finite_are_never_saved(begun, cli):
    """An update whose loss and gradient are finite may still bring a weight beyond its range."""
    model = load_model(Path("r/best"))
    model.network.recurrent.embedding.weight.data.fill_(1e33)
    write_folder(Path("r/best"), model_files(model))
    settings = ("training.lr=1000", "training.weight_decay=1000", "training.optimizer=adamw")
    options = sets(*settings, "training.checkpoint_every={steps: 1}")
    ended = cli("fit", "c.yaml", "--run-dir", "new", "--init-from", "r", "-q", *options, code=3)
    assert ended.problems[-1].startswith("seqtrain: training, update 1: embedding.weight ")
    assert "training.lr or training.weight_decay" in ended.problems[-1]
    assert step_of("new/last") == 0
    assert load_model(Path("new/last")).network is not None


def test_a_finished_run_that_goes_on_has_no_scores_until_it_ends(begun, cli):
    assert Path("r/test.json").exists()
    config = load_config("c.yaml", ["training.max_epochs=4"])
    with pytest.raises(Interrupted):
        fit(config, run_dir="r", resume=True, listener=stopping_after(1))
    assert not Path("r/test.json").exists()
    longer = sets("training.max_epochs=4")
    cli("fit", "c.yaml", "--run-dir", "r", "--resume", *longer)
    assert Path("r/test.json").exists()


def step_of(folder: str) -> int:
    """Return the updates made before a checkpoint."""
    state = json.loads(Path(folder, "training_state.json").read_text())
    assert isinstance(state["progress"]["updates"], int)
    return state["progress"]["updates"]


def test_another_machine_is_told(begun, cli):
    path = Path("r/environment.json")
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, "threads": 99}))
    ended = cli("fit", "c.yaml", "--run-dir", "r", "--resume", "--quiet")
    assert "threads is 1 here and was 99" in ended.err
