"""Whatever a file holds, it is a configuration or short lines of problems, nothing else."""

import re

from hypothesis import given
from hypothesis import strategies as st

from seqtrain.config import Config, parse_config, render_config
from seqtrain.config.problems import KEYS
from seqtrain.errors import ConfigError
from tests.helpers.examples import examples

WHOLE = render_config(
    parse_config(
        "data: {train: a.csv, sequence: [s, 1], label: l}\ntraining: {class_weights: {a: 1}}"
    )
)
PIECES = [
    *"\n :-,[]{}#&*!|>'\"%@`?~\t\0\x85\u2028\ud800٣\r\ufeff",
    *("\n  ", ": ", "- ", "<<: ", "&a ", "*a", "!!str ", "!x ", "---\n", "...\n"),
    *("no", "012", "1e999", ".nan", "null", "true", "-1", "0", "9" * 20, "1:30", "''"),
    *("%YAML 1.1\n", '"\\UFFFFFFFF"', '"\\ud800"', '"\\0"', "[[[[", "{a: {b: ", "? ", "|\n"),
    "x" * 300,
]
EDIT = st.tuples(
    st.integers(0, len(WHOLE)), st.integers(0, 12), st.sampled_from(PIECES) | st.text(max_size=4)
)
NAMES = list(KEYS)
OPTION = st.builds(
    lambda name, value: f"{name}={value}",
    st.sampled_from(NAMES),
    st.sampled_from(PIECES) | st.text(max_size=6),
)


def check(problems: tuple[str, ...]) -> None:
    """Assert that problems are short single lines, each with a place or a key, in order."""
    assert problems
    for problem in problems:
        assert len(problem) < 200
        assert problem.isprintable()
        assert re.match(r"cfg\.yaml:[1-9]\d*:[1-9]\d*: |--set |\d+ more problems", problem), problem
        assert not re.search("Input should|constrained|pydantic|Traceback", problem)
    places = [
        tuple(map(int, found))
        for found in re.findall(r"(?m)^cfg\.yaml:(\d+):(\d+)", "\n".join(problems))
    ]
    assert places == sorted(places)


@given(st.lists(EDIT, min_size=1, max_size=4), st.lists(OPTION, max_size=2))
@examples(300)
def test_mutated_text(edits, options):
    text = WHOLE
    for position, length, piece in edits:
        text = text[:position] + piece + text[position + length :]
    try:
        assert isinstance(parse_config(text, "cfg.yaml", options), Config)
    except ConfigError as error:
        check(error.problems)
