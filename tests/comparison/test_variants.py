"""What each variant computes: right ones the same, wrong ones what padding makes of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from seqtrain.comparison.learners import make_learner, one_by_one
from seqtrain.comparison.task import VARIANTS, Task, variants_for


def test_variants_that_cannot_run_here_say_why(task):
    problems = variants_for(task.config, torch.device("cuda"))
    assert "cuda" in problems["native"]
    assert problems["torch"] == problems["packed"] == ""
    carried = with_model(task, initial_state="carried").config
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
        task = replace(task, train=train, input_size=channels)
    for name, problem in variants_for(task.config, task.device).items():
        if problem:
            continue
        of_variant = VARIANTS[name].config(task.config).model.pooling
        found = make_learner(name, task).logits([task.probe])
        difference = float((found - one_by_one(task, of_variant)).abs().max())
        assert (difference > 1e-3) == (VARIANTS[name].kind == "wrong"), name


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
    """Sequences whose class stands in their last step are learned by heart, or not at all."""
    train = replace(task.train, values=task.train.values.copy())
    train.values[train.offsets[1:] - 1] = 2 + train.labels
    training = task.config.training.model_copy(update={"lr": 0.05})
    config = task.config.model_copy(update={"training": training})
    easy = replace(task, train=train, held_out=train, config=config)
    learner = make_learner("torch", easy)
    assert learner.accuracy(10 * len(task.train)) == 1.0
    unlearned = learner.accuracy(0)
    assert unlearned < 1.0
