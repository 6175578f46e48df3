"""YAML's traps are closed: doubtful spellings, tags, aliases, duplicates, bombs."""

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from seqtrain.config import parse_config
from seqtrain.config.scalars import AmbiguousScalar, resolve_scalar
from seqtrain.errors import ConfigError
from tests.helpers.examples import examples

DATA = "data: {train: a.csv, sequence: s, label: l}\n"


def only_problem(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "cfg.yaml")
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("3E+2", 300.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("-10", -10),
        ("+7", 7),
        ("0", 0),
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("false", False),
        ("none", "none"),
        ("1,000", "1,000"),
        ("1.2.3", "1.2.3"),
        ("٣", "٣"),
        ("007bond", "007bond"),
    ],
)
def test_plain_scalars(text: str, value: object) -> None:
    found = resolve_scalar(text)
    assert found == value
    assert type(found) is type(value)


AMBIGUOUS = [
    *("no", "No", "NO", "yes", "Yes", "on", "ON", "off", "y", "Y", "n", "N"),
    *("True", "TRUE", "False", "NULL", "Null"),
    *("012", "-012", "00", "08", "0o17", "0x1F", "0b101"),
    *("1_000", "1_0.5", "1:30", "1:30:15.5", "2024-01-01", "2024-01-01T10:00:00Z", "01.5", "1e1_0"),
]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_doubtful_spellings_are_refused_and_say_to_quote(text: str) -> None:
    problem = only_problem(f"data: {{train: a.csv, sequence: s, label: {text}}}")
    assert problem.startswith(f"cfg.yaml:1:42: data.label: found {text}; ")
    assert problem.endswith(f'quote it ("{text}") if text is meant')
    config = parse_config(f'data: {{train: a.csv, sequence: s, label: "{text}"}}')
    assert config.data.label == text


def test_advice_for_doubtful_spellings() -> None:
    assert "write true or false" in only_problem(DATA + "model: {bidirectional: yes}")
    assert "write null" in only_problem(DATA + "training: {patience: NULL}")
    assert "a decimal number" in only_problem(DATA + "seed: 0x1F")
    assert "without leading zeros or underscores" in only_problem(DATA + "seed: 1_000")
    assert "5000 characters" in only_problem(DATA + "seed: " + "1" * 5000)


SCALARS = st.from_regex(r"[-+0-9_.:eExXoOabTZ~a-z]{0,12}", fullmatch=True)


@given(SCALARS | st.sampled_from(AMBIGUOUS))
@example(".inf")
@example("0_1")
@examples(400)
def test_what_other_yaml_tools_read_as_no_text_is_the_same_here_or_refused(text: str) -> None:
    try:
        ours = resolve_scalar(text)
    except AmbiguousScalar:
        return
    loader: Any = yaml.SafeLoader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    if not tag.endswith((":str", ":merge", ":value")):
        assert repr(ours) == repr(loader.construct_object(yaml.ScalarNode(tag, text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "cfg.yaml:1:1: empty config; expected a mapping of sections"),
        ("# only this\n", "cfg.yaml:1:1: empty config; expected a mapping of sections"),
        ("null", "cfg.yaml:1:1: empty config; expected a mapping of sections"),
        ("- a", "cfg.yaml:1:1: found a list; expected a mapping of sections"),
        ("word", "cfg.yaml:1:1: found 'word'; expected a mapping of sections"),
        (DATA + "---\nb: 1", "cfg.yaml:2:1: a second document begins here; expected one"),
        (DATA + "model: !!python/name:os.system x", "2:8: model: tag !!python/name:os.system ref"),
        (DATA + "model: !foo {rnn: no}", "cfg.yaml:2:8: model: tag !foo refused; write plain va"),
        (DATA + "model: !!str x", "cfg.yaml:2:8: model: tag !!str refused; write plain values"),
        (DATA + "model: !<x:y> x", "cfg.yaml:2:8: model: tag !<x:y> refused; write plain values"),
        (DATA + "model: &a {}", "cfg.yaml:2:8: model: anchor &a refused; write the value out"),
        (DATA + "model: *a", "cfg.yaml:2:8: model: alias *a refused; write the value out"),
        (DATA + "<<: {seed: 1}", "cfg.yaml:2:1: merge key << refused; write the keys out"),
        (DATA + "model: {<<: {}}", "cfg.yaml:2:9: model: merge key << refused; write the keys out"),
        (DATA + "? [a, [b]]\n: 1", "cfg.yaml:2:3: a list or mapping can't be a key; expected text"),
        (DATA + "? !x y\n: [1]", "cfg.yaml:2:3: tag !x refused; write plain values"),
        (DATA + "'': 1", "cfg.yaml:2:1: a key is empty; expected text"),
        (DATA + '? "\\uD800"', "cfg.yaml:2:3: a key holds a lone surrogate"),
        (
            DATA + "seed: 1\nmodel: {}\nseed: 2",
            "cfg.yaml:4:1: seed: given twice, on lines 2 and 4;",
        ),
        (DATA + "model: {rnn: gru, rnn: gru}", "2:19: model.rnn: given twice, on line 2; keep one"),
        ("[" * 100_000, "cfg.yaml:1:21: nested more than 20 levels deep"),
        ("{a: " * 100_000, "nested more than 20 levels deep"),
        ("- " * 50_000, "nested more than 20 levels deep"),
        ("data: {train: x\nmodel: {}", "cfg.yaml:2:6: expected ',' or '}', but found ':'"),
        ("data: {train: x", "cfg.yaml:1:7: the bracket that opens here is never closed; expected"),
        ("data:\n\ttrain: x", "cfg.yaml:2:1: a tab can't indent YAML; use spaces"),
        ("data:\n  train: x\n \ttest: y", "a tab can't indent YAML; use spaces"),
        ("data: 'x\nmodel: y", "cfg.yaml:1:7: the quote that opens here is never closed"),
        ("data:\n    train: x\n  test: y", "cfg.yaml:3:3: the indentation doesn't line up with"),
        ("data: a: b", "cfg.yaml:1:8: a ':' can't stand here; check the indentation, or quote"),
        ("seed: 1\nlr 0.2\n", "cfg.yaml:2:1: expected 'key: value', but found no ':' on this line"),
        ("seed: @x", "cfg.yaml:1:7: a value can't begin with '@'; quote it"),
        ('seed: "\\q"', r"cfg.yaml:1:9: unknown escape 'q' after '\'; use single quotes"),
        ('seed: "\\UFFFFFFFF"', "cfg.yaml:1:10: a number here is out of range"),
        ("%YAML " + "1" * 5000 + ".1\n---\n", "a number here is out of range"),
        ("seed: 1\nmodel: \x07", "cfg.yaml:2:8: character U+0007 can't stand in a YAML file"),
        ("%YAML", "not valid YAML: expected a digit, but found the end"),
    ],
)
def test_structure(text: str, expected: str) -> None:
    assert expected in only_problem(text)


def test_alias_bomb_is_refused_at_each_alias() -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    with pytest.raises(ConfigError) as caught:
        parse_config("a0: &a0 [x]\n" + levels)
    assert "anchor &a0 refused" in "\n".join(caught.value.problems)


def test_label_keys_are_text_as_written() -> None:
    config = parse_config(DATA + "training: {class_weights: {0: 1, 01: 2, no: 3, 1.50: 4}}")
    assert config.training.class_weights == {"0": 1.0, "01": 2.0, "no": 3.0, "1.50": 4.0}


def test_text_with_a_byte_order_mark_or_windows_lines_is_fine() -> None:
    assert parse_config("\ufeff" + DATA.replace("\n", "\r\n")) == parse_config(DATA)
