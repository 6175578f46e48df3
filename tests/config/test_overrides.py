"""`--set section.key=value`: strict values; a complaint about one names the option."""

from __future__ import annotations

import pytest

from seqtrain.config import Config, parse_config
from seqtrain.errors import ConfigError

DATA = "data: {train: a.csv, sequence: s, label: l}\n"


def load(*options: str, text: str = DATA) -> Config:
    return parse_config(text, "cfg.yaml", options)


def problems(*options: str, text: str = DATA) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load(*options, text=text)
    return caught.value.problems


def test_values_of_every_kind() -> None:
    config = load(
        *("training.lr=3e-4", "data.test=null", "seed=1", "data.sequence=[title, description]"),
        *("training.class_weights={a: 2.0}", "data.validation=0.1", 'data.label="no"'),
        *("model.bidirectional=true", "data.train=x=y.csv", " model.rnn = lstm "),
    )
    assert (config.training.lr, config.data.test, config.seed) == (3e-4, None, 1)
    assert config.data.sequence == ["title", "description"]
    assert config.training.class_weights == {"a": 2.0}
    assert (config.data.validation, config.data.label) == (0.1, "no")
    assert (config.model.bidirectional, config.model.rnn) == (True, "lstm")
    assert config.data.train == "x=y.csv"


def test_option_replaces_only_its_key_and_the_last_one_wins() -> None:
    text = DATA + "training: {lr: 1, max_epochs: 7, class_weights: {a: 1, b: 2}}"
    config = load("training.lr=2", "training.lr=3", "training.class_weights.b=9", text=text)
    assert (config.training.lr, config.training.max_epochs) == (3.0, 7)
    assert config.training.class_weights == {"a": 1.0, "b": 9.0}
    assert load("training.class_weights.a=2").training.class_weights == {"a": 2.0}
    assert load("training={lr: 5}", text=text).training.max_epochs == "auto"
    assert load("model.rnn=rnn", text=DATA + "model:\n").model.rnn == "rnn"


@pytest.mark.parametrize("wrong", ["lr: no", "lr: -1", "lr: {a: no}"])
def test_what_an_option_replaces_is_not_complained_about(wrong: str) -> None:
    assert load("training.lr=3e-4", text=DATA + f"training: {{{wrong}}}").training.lr == 3e-4


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("training.lrr=1", "unknown key; did you mean training.lr?"),
        ("lr=1", "unknown key; did you mean training.lr?"),
        ("training.lr=abc", "found 'abc'; expected a number above 0 and at most 1000"),
        ("training.lr=", "found null; expected a number above 0 and at most 1000"),
        (
            "data.label=no",
            'found no; quote it ("no") if text is meant, else write true, false, null or a plain '
            "decimal number",
        ),
        ("data.label=s", "found 's', a column of data.sequence; expected another"),
        ("model.rnn=!!str gru", "tag !!str refused; write a plain value"),
        (
            "model.rnn=[gru",
            "expected ',' or ']', but got '<stream end>' (while parsing a flow sequence)",
        ),
        ("foo", "expected the form section.key=value, such as training.lr=0.001"),
        ("=1", "expected the form section.key=value, such as training.lr=0.001"),
    ],
)
def test_complaints_name_the_option(option: str, expected: str) -> None:
    assert problems(option) == (f"--set {option}: {expected}",)


def test_complaints_inside_a_value_name_the_key_too() -> None:
    assert problems("training.class_weights={a: 1, b: 0}") == (
        "--set training.class_weights={a: 1, b: 0}: training.class_weights.b: found 0; "
        "expected a number above 0 and at most 1000000000",
    )
    assert problems("train.max_epochs=3") == (
        "--set train.max_epochs=3: train: unknown key; did you mean training?",
    )
    assert problems("training.lr.x=1", text=DATA + "training: {lr: 1}") == (
        "--set training.lr.x=1: training.lr: found {x: 1}; expected a number above 0 and at most "
        "1000",
    )
    assert problems("training={lr: 1, lr: 2}") == (
        "--set training={lr: 1, lr: 2}: training.lr: given twice, on lines 1 and 1; keep one",
    )
