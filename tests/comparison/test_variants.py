"""Variants of compare: right ones agree, and wrong ones depend on padding."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from seqtrain.comparison.compare import VariantRun, compare, learn_equally, take_turns
from seqtrain.comparison.learners import make_learner, one_by_one, randomize_biases
from seqtrain.comparison.task import VARIANTS, Task, variants_for
from seqtrain.config.schema import Config
from seqtrain.errors import ConfigError
from seqtrain.sequences.labels import LabelSet
from seqtrain.sequences.vocabulary import SPECIAL, Vocabulary
from tests.helpers.small_models import make_model
from tests.helpers.stores import store_of

ROWS = 90


@pytest.fixture(scope="module")
def task() -> Task:
    sequences = [np.arange(row, 2 * row + 1) % 20 + 2 for row in range(ROWS)]
    train = store_of(sequences, [row % 2 for row in range(ROWS)], range(ROWS))
    sections: dict[str, dict[str, Any]] = {
        "data": {"train": "a.tsv", "sequence": 0, "label": 1},
        "batching": {"batch_size": 6},
        "model": {"embedding_dim": 4, "hidden_size": 4},
        "training": {"max_epochs": 3},
    }
    rules = {
        "label_set": LabelSet(("a", "b")),
        "vocabulary": Vocabulary((*SPECIAL, *map(str, range(20)))),
    }
    return Task(
        config=Config.model_validate(sections),
        train=train,
        held_out=train.__getitems__(np.arange(0, ROWS, 3)),
        preprocessing=make_model("tokens", rules).preprocessing,
        device=torch.device("cpu"),
        warnings=[],
        probe=np.arange(3),
    )


def test_variants_that_cannot_run_here_say_why(task):
    problems = variants_for(task.config, torch.device("cuda"))
    assert "cuda" in problems["native"]
    assert problems["torch"] == problems["packed"] == ""
    carried = task.config.with_keys(model={"initial_state": "carried"}, data={"group": 2})
    assert "carried" in variants_for(carried, task.device)["last-of-padding"]


def with_model(task: Task, **keys: object) -> Task:
    model = task.config.model.model_copy(update=keys)
    return replace(task, config=task.config.model_copy(update={"model": model}))


@pytest.mark.parametrize("channels", [0, 3])
@pytest.mark.parametrize(
    "keys",
    [
        {"rnn": "gru"},
        {"rnn": "gru", "pooling": "mean", "bidirectional": True},
        {"rnn": "gru", "pooling": "attention", "num_layers": 2, "bidirectional": True},
        {"rnn": "lstm", "bidirectional": True, "join": "sum"},
        {"rnn": "lstm", "pooling": "mean", "num_layers": 2},
        {"rnn": "rnn", "bidirectional": True},
        {"rnn": "rnn", "pooling": "max", "bidirectional": True, "join": "mean"},
    ],
)
def test_right_variants_answer_as_one_by_one_and_wrong_ones_do_not(task, keys, channels):
    task = with_model(task, **keys)
    if channels:
        values = np.random.default_rng(0).normal(size=(len(task.train.values), channels))
        train = replace(task.train, values=values.astype(np.float32))
        rules = {
            "label_set": LabelSet(("a", "b")),
            "mean": (0.0,) * channels,
            "std": (1.0,) * channels,
        }
        fitted = make_model("features", rules).preprocessing
        task = replace(task, train=train, preprocessing=fitted)
    for name, problem in variants_for(task.config, task.device).items():
        if problem:
            continue
        of_variant = VARIANTS[name].config(task.config).model.pooling
        learner = make_learner(name, task)
        randomize_biases(learner.model)
        found = learner.logits([task.probe])
        difference = float((found - one_by_one(task, of_variant)).abs().max())
        assert (difference > 1e-3) == (VARIANTS[name].kind_for(task.config) == "wrong"), name


def test_every_variant_runs_on_what_init_writes(task):
    """A bidirectional model with attention and its hidden layer."""
    task = with_model(task, bidirectional=True, pooling="attention", attention_size=8)
    problems = variants_for(task.config, task.device)
    assert {"native", "torch", "padded", "last-of-padding", "mean-valid"} <= problems.keys()
    assert {name for name, why in problems.items() if why} <= {"native"}
    assert VARIANTS["padded"].kind_for(task.config) == "wrong"
    assert VARIANTS["packed"].kind_for(task.config) == "recipe"


def test_variants_that_a_config_is_already_do_not_come_twice(task):
    assert "last-valid" not in variants_for(task.config, task.device)
    assert {"mean-valid", "random-batches", "padded-sorted-mask"} <= set(
        variants_for(task.config, task.device)
    )
    batching = task.config.batching.model_copy(update={"bucketing": False})
    random = with_model(task, pooling="mean").config.model_copy(update={"batching": batching})
    names = set(variants_for(random, task.device))
    assert "last-valid" in names
    assert not {"mean-valid", "random-batches", "padded-sorted-mask"} & names


def test_accuracy_is_of_what_was_learned_anew(task):
    """Sequences whose class follows from their last step are learned, or not at all."""
    train = replace(task.train, values=task.train.values.copy())
    train.values[train.offsets[1:] - 1] = 2 + train.labels
    training = task.config.training.model_copy(update={"lr": 0.05})
    config = task.config.model_copy(update={"training": training})
    easy = replace(task, train=train, held_out=train, config=config)
    learner = make_learner("torch", easy)
    assert learner.accuracy(10 * len(task.train)) == 1.0
    unlearned = learner.accuracy(0)
    assert unlearned < 1.0


LEARNERS = ["torch", "padded-sorted", "random-batches", "packed", "last-of-padding"]


def measured(task: Task, *names: str, seconds: float = 0.0) -> Mapping[str, VariantRun]:
    runs = [VariantRun(name, task) for name in names]
    take_turns(runs, "training", seconds, lambda run: None)
    return {run.name: run for run in runs}


def test_a_batch_that_would_take_too_long_is_given_up(task, monkeypatch):
    monkeypatch.setattr("seqtrain.comparison.compare.LONGEST", 1e-9)
    runs = measured(task, "torch", "packed", seconds=-1.0)
    assert all("allow more seconds" in run.problem for run in runs.values())
    assert all(run.training is None for run in runs.values())


def test_what_is_alike_learns_once_and_what_differs_for_itself(task):
    runs = measured(task, *LEARNERS)
    before: list[str] = []
    examples = learn_equally([*runs.values()], task, 60.0, lambda run: before.append(run.name))
    assert examples == task.config.training.max_epochs * len(task.train)
    accuracies = {name: run.accuracy for name, run in runs.items()}
    assert None not in accuracies.values()
    assert accuracies["torch"] == accuracies["padded-sorted"]
    assert accuracies["random-batches"] == accuracies["packed"]
    assert set(before) == {"torch", "random-batches", "last-of-padding"}
    assert learn_equally([*runs.values()], task, 0.0, lambda run: None) == 0


def test_no_time_is_an_error():
    with pytest.raises(ConfigError, match="seconds"):
        compare("configs/quickstart.yaml", seconds=0)
