"""YAML's traps are closed: doubtful spellings, tags, aliases, duplicates, bombs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from seqtrain.config import parse_config
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
def test_plain_scalars(text: str) -> None:
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
def test_doubtful_spellings_are_refused_and_say_to_quote(text: str) -> None:
    problem = only_problem(f"data: {{train: a.csv, sequence: s, label: {text}}}")
    expected = f'cfg.yaml:1:42: data.label: found {text}; quote it ("{text}") if text is meant'
    assert problem.startswith(expected)
    config = parse_config(f'data: {{train: a.csv, sequence: s, label: "{text}"}}')
    assert config.data.label == text


SCALARS = st.from_regex(r"[-+0-9_.:eExXoOabTZ~a-z]{0,12}", fullmatch=True)


@given(SCALARS | st.sampled_from(DOUBTFUL))
@example(".inf")
@example("0_1")
@examples(400)
def test_what_other_yaml_tools_read_as_no_text_is_the_same_here_or_refused(text: str) -> None:
    ours = resolve_scalar(text)
    loader: Any = yaml.SafeLoader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    if not isinstance(ours, Unreadable) and not tag.endswith((":str", ":merge", ":value")):
        assert repr(ours) == repr(loader.construct_object(yaml.ScalarNode(tag, text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "cfg.yaml:1:1: empty config; expected a mapping of sections"),
        ("null", "cfg.yaml:1:1: empty config; expected a mapping of sections"),
        ("- a", "cfg.yaml:1:1: found [a]; expected a mapping of sections"),
        (DATA + "---\nb: 1", "cfg.yaml:2:1: but found another document (expected a single docum"),
        (DATA + "model: !!python/name:os.system x", "2:8: tag !!python/name:os.system refused"),
        (DATA + "model: !foo {rnn: no}", "cfg.yaml:2:8: tag !foo refused; write a plain value"),
        (DATA + "model: &a {}", "cfg.yaml:2:8: anchor &a refused; write the value out"),
        (DATA + "model: *a", "cfg.yaml:2:8: alias *a refused; write the value out"),
        ("a0: &a0 [x]\na1: [*a0, *a0]\n", "cfg.yaml:1:5: anchor &a0 refused; write the value"),
        (DATA + "<<: {seed: 1}", "cfg.yaml:2:1: <<: merge key refused; write the keys out"),
        (DATA + "? [a, [b]]\n: 1", "cfg.yaml:2:3: a list or mapping can't be a key; expected text"),
        (DATA + "'': 1", "cfg.yaml:2:1: a key is empty; expected text"),
        (
            DATA + "seed: 1\nmodel: {}\nseed: 2",
            "cfg.yaml:4:1: seed: given twice, on lines 2 and 4;",
        ),
        (DATA + "model: {rnn: gru, rnn: gru}", "2:19: model.rnn: given twice, on lines 2 and 2"),
        ("[" * 100_000, "cfg.yaml:1:22: nested more than 20 levels deep"),
        ("- " * 50_000, "nested more than 20 levels deep"),
        ("data: {train: x\nmodel: {}", "cfg.yaml:2:6: expected ',' or '}', but got ':'"),
        ("data:\n\ttrain: x", "cfg.yaml:2:1: found a tab; indent with spaces, not tabs"),
        ("data:\n  train:\tx", "cfg.yaml:2:9: found a tab; write a blank"),
        (
            "data:\n  train: x\n   test: y",
            "cfg.yaml:3:8: this line is indented unlike those before",
        ),
        ("data:\n  train: x\n test: y", "cfg.yaml:3:2: this line is indented unlike those before"),
        ("data:\r\r\r\n\ttrain: x", "found a tab; indent with spaces, not tabs"),
        ("data: {}\n  seed: 1", "cfg.yaml:2:3: this line is indented unlike those before it"),
        ("seed: 'a' b", "cfg.yaml:1:11: expected <block end>, but found '<scalar>'"),
        ("seed: a: b", "cfg.yaml:1:8: mapping values are not allowed here"),
        ("data: 'x\nmodel: y", "found unexpected end of stream (while scanning a quoted scalar)"),
        ("seed: 1\nlr 0.2\n", "could not find expected ':'"),
        ('seed: "\\UFFFFFFFF"', "cfg.yaml:1:10: a number here is out of range"),
        ("%YAML " + "1" * 5000 + ".1\n---\n", "a number here is out of range"),
        ("seed: 1\nmodel: \x07", "cfg.yaml:2:8: character U+0007 can't stand in a YAML file"),
        ("seed: " + "1" * 5000, "cfg.yaml:1:7: seed: found 1111"),
    ],
)
def test_structure(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "cfg.yaml")
    assert expected in caught.value.problems[-1]


def test_label_keys_are_text_as_written() -> None:
    config = parse_config(DATA + "training: {class_weights: {0: 1, 01: 2, no: 3, 1.50: 4}}")
    assert config.training.class_weights == {"0": 1.0, "01": 2.0, "no": 3.0, "1.50": 4.0}


def test_byte_order_mark_windows_lines_and_empty_sections_are_fine() -> None:
    text = "\ufeff" + DATA.replace("\n", "\r\n") + "model:\r\ntraining:\r\n"
    assert parse_config(text) == parse_config(DATA)
