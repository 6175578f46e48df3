"""YAML's traps are closed: doubtful spellings, tags, aliases, duplicates, bombs."""

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


SCALARS = st.from_regex(r"[-+0-9_.:eExXoOabTZ~a-z]{0,12}", fullmatch=True)


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
