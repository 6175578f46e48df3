"""What a YAML syntax error means, in a sentence for the person who wrote the file."""

from __future__ import annotations

import re

import yaml

from seqtrain.text import shorten

_SENTENCES = (
    (r"found character '\\t'", False, "a tab can't indent YAML; use spaces"),
    (
        r"found character (.*) that cannot start any token",
        False,
        r"a value can't begin with \1; quote it",
    ),
    (
        r"mapping values are not allowed here",
        False,
        "a ':' can't stand here; check the indentation, or quote text that holds ': '",
    ),
    (r"could not find expected ':'", True, "expected 'key: value', but found no ':' on this line"),
    (
        r"found unexpected (end of stream|document separator)",
        True,
        "the quote that opens here is never closed",
    ),
    (
        r"expected ',' or '(.)', but got '<stream end>'",
        True,
        r"the bracket that opens here is never closed; expected '\1'",
    ),
    (r"expected ',' or '(.)', but got (.*)", False, r"expected ',' or '\1', but found \2"),
    (
        r"expected <block end>, but found '<block mapping start>'",
        False,
        "the indentation doesn't line up with the lines above",
    ),
    (r"expected <block end>, but found '[-?]'", False, "a list and keys can't stand side by side"),
    (
        r"expected <block end>, but found .*",
        False,
        "unexpected text after a value; quote the whole value",
    ),
    (r"expected the node content, but found .*", False, "a value is missing here"),
    (
        r"sequence entries are not allowed here",
        False,
        "a list with '-' must begin on a line of its own",
    ),
    (
        r"found unknown escape character (.*)",
        False,
        r"unknown escape \1 after '\\'; use single quotes for plain text",
    ),
    (
        r"found incompatible YAML document.*",
        False,
        "unknown YAML version; write %YAML 1.2 or leave it out",
    ),
)


def explain(error: yaml.MarkedYAMLError) -> tuple[int, int, str]:
    """Say what is wrong with the syntax, and at which mark.

    Args:
        error: what the YAML parser raised.

    Returns:
        Line and column to point at, both from 1, and one sentence.
    """
    problem = error.problem or "not YAML"
    line, column = _position(error.problem_mark)
    for pattern, at_context, sentence in _SENTENCES:
        match = re.fullmatch(pattern + ".*", problem, re.DOTALL)
        if match:
            if at_context:
                line, column = _position(error.context_mark)
            return line, column, match.expand(sentence)
    problem = problem.replace("'\\x00'", "the end").replace("'<stream end>'", "the end")
    return line, column, f"not valid YAML: {shorten(problem, 80)}"


def _position(mark: yaml.Mark | None) -> tuple[int, int]:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)
