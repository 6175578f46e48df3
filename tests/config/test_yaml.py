"""Strict YAML in files and in `--set section.key=value`."""

import shlex
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from seqtrain.config import Config, parse_config
from seqtrain.config.document import Unreadable, resolve_scalar
from seqtrain.errors import ConfigError
from tests.helpers.examples import examples

DATA = "data: {train: a.csv, sequence: s, label: l}\n"


def only_problem(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "cfg.yaml")
    (problem,) = caught.value.problems
    return problem


PLAIN: dict[str, object] = {
    text: text for text in ("none", "1,000", "1.2.3", "٣", "007bond", "2-3")
} | {"1e-3": 0.001, "3E+2": 300.0, "1.5": 1.5, ".5": 0.5, "1.": 1.0, "-10": -10, "+7": 7}
PLAIN |= {"0": 0, "": None, "~": None, "null": None, "true": True, "false": False}


@pytest.mark.parametrize("text", PLAIN)
def test_plain_scalars(text):
    found = resolve_scalar(text)
    assert found == PLAIN[text]
    assert type(found) is type(PLAIN[text])


DOUBTFUL = [
    *("no", "No", "NO", "yes", "Yes", "on", "ON", "off", "y", "Y", "n", "N"),
    *("True", "TRUE", "False", "NULL", "Null"),
    *("012", "-012", "00", "08", "0o17", "0x1F", "0b101"),
    *("1_000", "1_0.5", "1:30", "1:30:15.5", "2024-01-01", "2024-01-01T10:00:00Z", "01.5", "1e1_0"),
]


@pytest.mark.parametrize("text", DOUBTFUL)
def test_doubtful_spellings_are_refused_and_say_to_quote(text):
    problem = only_problem(f"data: {{train: a.csv, sequence: s, label: {text}}}")
    expected = f'cfg.yaml:1:42: data.label: found {text}; quote it ("{text}") if text is meant'
    assert problem.startswith(expected)
    config = parse_config(f'data: {{train: a.csv, sequence: s, label: "{text}"}}')
    assert config.data.label == text


SCALARS = st.text("-+0123456789_.:EXOTZ~abcdefghijklmnopqrstuvwxyz", max_size=12)


@given(SCALARS | st.sampled_from(DOUBTFUL))
@example(".inf")
@example("0_1")
@examples(400)
def test_what_other_yaml_tools_read_as_no_text_is_the_same_here_or_refused(text):
    ours = resolve_scalar(text)
    loader: Any = yaml.SafeLoader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    if not isinstance(ours, Unreadable) and not tag.endswith((":str", ":merge", ":value")):
        assert repr(ours) == repr(loader.construct_object(yaml.ScalarNode(tag, text)))


def test_label_keys_are_text_as_written():
    config = parse_config(DATA + "training: {class_weights: {0: 1, 01: 2, no: 3, 1.50: 4}}")
    assert config.training.class_weights == {"0": 1.0, "01": 2.0, "no": 3.0, "1.50": 4.0}


def test_byte_order_mark_windows_lines_and_empty_sections_are_fine():
    text = "\ufeff" + DATA.replace("\n", "\r\n") + "model:\r\ntraining:\r\n"
    assert parse_config(text) == parse_config(DATA)


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


@pytest.mark.parametrize("key", ["label_separator", "symbol_separator"])
def test_a_separator_that_is_null_in_yaml_is_refused_with_its_spelling(key):
    kind = "data.kind=tokens"
    with pytest.raises(ConfigError, match="null") as refused:
        load(f"data.{key}=~", kind)
    (advised,) = shlex.split(str(refused.value).rpartition("--set ")[2])
    assert getattr(load(advised, kind).data, key) == "~"
    assert getattr(load(f"data.{key}=null", kind).data, key) is None


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
