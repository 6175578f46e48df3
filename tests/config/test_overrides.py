"""`--set section.key=value`: strict values; a complaint about one names the option."""

import pytest

from seqtrain.config import Config, parse_config
from seqtrain.errors import ConfigError

DATA = "data: {train: a.csv, sequence: s, label: l}\n"


def load(*options: str, text: str = DATA) -> Config:
    return parse_config(text, "cfg.yaml", options)


def test_values_of_every_kind():
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


def test_what_begins_a_block_in_yaml_is_itself_alone():
    assert load("data.label_separator=|").data.label_separator == "|"
    assert load("data.label_separator= > ").data.label_separator == ">"


def test_option_replaces_only_its_key_and_the_last_one_wins():
    text = DATA + "training: {lr: 1, max_epochs: 7, class_weights: {a: 1, b: 2}}"
    config = load("training.lr=2", "training.lr=3", "training.class_weights.b=9", text=text)
    assert (config.training.lr, config.training.max_epochs) == (3.0, 7)
    assert config.training.class_weights == {"a": 1.0, "b": 9.0}
    assert load("training.class_weights.a=2").training.class_weights == {"a": 2.0}
    assert load("training={lr: 5}", text=text).training.max_epochs == "auto"
    assert load("model.rnn=rnn", text=DATA + "model:\n").model.rnn == "rnn"


@pytest.mark.parametrize("wrong", ["lr: no", "lr: -1", "lr: {a: no}"])
def test_what_an_option_replaces_is_not_complained_about(wrong):
    assert load("training.lr=3e-4", text=DATA + f"training: {{{wrong}}}").training.lr == 3e-4


@pytest.mark.parametrize("wrong", ["training: no", "training: {lr: 1}\ntraining: {lr: 2}"])
def test_a_section_that_cannot_be_used_is_complained_about_whatever_an_option_sets(wrong):
    with pytest.raises(ConfigError, match=r"^cfg.yaml:\d:\d+: training: "):
        load("training.lr=3e-4", text=DATA + wrong)
