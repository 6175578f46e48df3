"""`--set section.key=value`: strict values, named in every complaint about them."""

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
        "training.lr=3e-4",
        "data.test=null",
        "seed=1",
        "data.sequence=[title, description]",
        "training.class_weights={a: 2.0}",
        "data.validation=0.1",
        'data.label="no"',
        "model.bidirectional=true",
        "data.train=x=y.csv",
        " model.rnn = lstm ",
    )
    assert config.training.lr == 3e-4
    assert config.data.test is None
    assert config.seed == 1
    assert config.data.sequence == ["title", "description"]
    assert config.training.class_weights == {"a": 2.0}
    assert config.data.validation == 0.1
    assert config.data.label == "no"
    assert config.model.bidirectional is True
    assert config.data.train == "x=y.csv"
    assert config.model.rnn == "lstm"


def test_option_replaces_only_its_key_and_the_last_one_wins() -> None:
    text = DATA + "training: {lr: 1, max_epochs: 7, class_weights: {a: 1, b: 2}}"
    config = load("training.lr=2", "training.lr=3", "training.class_weights.b=9", text=text)
    assert (config.training.lr, config.training.max_epochs) == (3.0, 7)
    assert config.training.class_weights == {"a": 1.0, "b": 9.0}
    assert load("training.class_weights.a=2").training.class_weights == {"a": 2.0}
    assert load("training={lr: 5}", text=text).training.max_epochs == "auto"
    assert load("model.rnn=rnn", text=DATA + "model:\n").model.rnn == "rnn"


@pytest.mark.parametrize("wrong", ["lr: no", "lr: -1", "lr: !!x 1", "lr: &a 1", "lr: {a: no}"])
def test_what_an_option_replaces_is_not_complained_about(wrong: str) -> None:
    assert load("training.lr=3e-4", text=DATA + f"training: {{{wrong}}}").training.lr == 3e-4


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("training.lrr=1", "unknown key; did you mean training.lr?"),
        ("lr=1", "unknown key; did you mean training.lr?"),
        ("training.lr=abc", "found 'abc'; expected a number above 0 and at most 1000"),
        ("training.lr=", "found null; expected a number above 0 and at most 1000"),
        ("training.lr=[1]", "found a list; expected a number above 0 and at most 1000"),
        ("training.lr=-.inf", "found -.inf; expected a number above 0 and at most 1000"),
        ("data.label=no", 'found no; write true or false, or quote it ("no") if text is meant'),
        (
            "data.train=2024",
            "found 2024; expected a file path or a list of file paths; quote it "
            '("2024") if text is meant',
        ),
        ("data.label=s", "found 's', a column of data.sequence too; expected another column"),
        ("model.rnn=grru", "found 'grru'; expected gru, lstm or rnn; did you mean 'gru'?"),
        ("model.rnn=!!str gru", "tag !!str refused; write plain values"),
        ("model.rnn=[", "a value is missing here"),
        ("model.rnn=[gru", "the bracket that opens here is never closed; expected ']'"),
        ("model.rnn='gru", "the quote that opens here is never closed"),
        ("foo", "expected the form section.key=value, such as training.lr=0.001"),
        ("=1", "expected the form section.key=value, such as training.lr=0.001"),
        ("training.=1", "expected the form section.key=value, such as training.lr=0.001"),
    ],
)
def test_complaints_name_the_option(option: str, expected: str) -> None:
    assert problems(option) == (f"--set {option}: {expected}",)


def test_complaints_inside_a_value_name_the_key_too() -> None:
    assert problems("training.class_weights={a: 1, b: 0}") == (
        "--set training.class_weights={a: 1, b: 0}: training.class_weights.b: found 0; "
        "expected a number above 0 and at most 1000000000",
    )
    assert problems("modle.rnn=gru") == (
        "--set modle.rnn=gru: modle: unknown key; did you mean model?",
    )
    assert problems("training.lr.x=1", text=DATA + "training: {lr: 1}") == (
        "--set training.lr.x=1: training.lr: found a mapping; expected a number above 0 and at "
        "most 1000",
    )


def test_key_given_twice_in_a_value() -> None:
    assert problems("training={lr: 1, lr: 2}") == (
        "--set training={lr: 1, lr: 2}: training.lr: given twice, on line 1; keep one",
    )


def test_long_options_are_cut_but_named() -> None:
    (problem,) = problems(f"data.train={'x' * 300}")
    assert problem.startswith("--set data.train=xxx")
    assert "…: found 'xxx" in problem
    assert len(problem) < 200


def test_file_and_options_are_complained_about_together_in_order() -> None:
    found = problems("seed=x", "foo", "training.lrr=1", text=DATA + "model: {rnn: no}")
    assert [line.split(": ")[0] for line in found] == [
        "cfg.yaml:2:14",
        "--set seed=x",
        "--set foo",
        "--set training.lrr=1",
    ]
