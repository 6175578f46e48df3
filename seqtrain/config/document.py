"""Strict YAML: reading of plain values and of the places where they are, and writing on one line.

Strict means: no anchors, aliases and tags, no key twice, and no value that YAML tools read in
different ways.
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from seqtrain.text import quote, shorten

DEPTH_LIMIT = 20
"""Deepest allowed nesting of lists and mappings."""
NUMBER_LIMIT = 400
"""Largest number of characters of a number."""

Keys: TypeAlias = tuple[str | int, ...]
"""Path of a value in a document: keys of mappings and indices of lists from the top.

An example is ("training", "lr").
"""
Places: TypeAlias = dict[Keys, tuple[str, str]]
"""Maps the path of each value to the places of its key and of the value, such as "my.yaml:3:5".

The paths have the order of the document. For the items of a list, both places are equal.
"""

LONE_MARK = re.compile(r"[^\w\s~'\"]|->|=>")
"""A mark of punctuation, or an arrow, which is a text as the whole value of an option."""
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./-]*")
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_REFUSED = re.compile(r"[*&!][^\s\0,\[\]{}]*")
"""An alias, an anchor or a tag."""
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
"""Maps words that aren't text to their values."""
_AMBIGUOUS = re.compile(
    r"(?i:true|false|yes|no|on|off|y|n|null)"
    r"|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?"
    r"|[-+]?0([xX][0-9a-fA-F_]+|[oO][0-7_]+|[bB][01_]+)"
    r"|[-+]?(\.?[0-9][0-9_]*|[0-9][0-9_]*\.[0-9_]*)([eE][-+]?[0-9_]+)?"
)
"""Pattern of scalars that YAML tools read in different ways: no, 1:30, 2024-01-01, 0x1F, 1_000."""


@dataclass(frozen=True)
class Unreadable:
    """Placeholder for a value that can't be read, in a document or an option.

    Attributes:
        why: Message that says what is wrong, and what to write instead.
    """

    why: str

    def __repr__(self) -> str:
        return self.why


class _Refused(yaml.MarkedYAMLError):
    """A part of a document that strict YAML doesn't allow. `problem` is a message for the user."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem=problem, problem_mark=mark)


class _Composer(yaml.SafeLoader):
    """Loader of PyYAML that raises `_Refused` for aliases, anchors, tags and deep nesting."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        refused = _REFUSED.match(mark.buffer, mark.pointer)
        if refused:
            raise _Refused(
                f"found {shorten(refused[0], 60)}; aliases, anchors and tags aren't allowed; "
                "write a plain value",
                mark,
            )
        if self.depth > DEPTH_LIMIT:
            raise _Refused(f"nested more than {DEPTH_LIMIT} levels deep", mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def read_option(text: str) -> Any:
    """Return the value of an option `section.key=value`, which is written in YAML.

    A single mark or blank is a text, as in `data.label_separator=|`, though it isn't one in YAML.

    Args:
        text: The value.
    """
    if text == " " or LONE_MARK.fullmatch(text.strip()):
        return text.strip() or text
    return read_yaml(text)[0]


def read_yaml(text: str, name: str = "") -> tuple[Any, Places]:
    """Return the value of a strict YAML document, and the places of its values.

    Keys of mappings are always texts, such as "1" for 1. An empty document has the value None.

    No error is raised. If a single value can't be read, an `Unreadable` replaces this value. If the
    whole text can't be read, the result is an `Unreadable`, and the place of the empty path is that
    of the problem.

    Args:
        text: The document.
        name: Name of the document, for the places.
    """
    reader = _Reader(name)
    loader: Any = None
    line = column = 0
    try:
        loader = _Composer(text)
        node = loader.get_single_node()
        return None if node is None else reader.value_of(node, node, ()), reader.places
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line = before.count("\n")
        column = error.position - before.rfind("\n") - 1
        why = f"character U+{error.character:04X} isn't allowed in YAML; remove it"
    except yaml.MarkedYAMLError as error:
        why = _explained(error)
        if error.problem_mark is not None:
            line = error.problem_mark.line
            column = error.problem_mark.column
    except (ValueError, OverflowError):  # PyYAML's own int() and chr() of absurd numbers
        why = "a number here is out of range"
        if loader is not None:
            line = loader.line
            column = loader.column
    place = f"{name}:{line + 1}:{column + 1}"
    return Unreadable(why), {(): (place, place)}


def _explained(error: yaml.MarkedYAMLError) -> str:
    """Return the message for the user about an error of PyYAML."""
    text = shorten(error.problem or "", 100)
    if isinstance(error, _Refused):
        return text
    if "\\t" in text:
        return "found a tab; YAML needs spaces for indentation"
    text = re.sub("expected <block end>.*", "this isn't expected here", text)
    return (
        f"not valid YAML: {text}; check quotes and colons, and indent the lines of a section "
        "alike, with spaces"
    )


class _Reader:
    """Conversion of PyYAML's nodes to values.

    Attributes:
        places: Places of the values so far.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.places: Places = {}

    def value_of(self, key: Any, node: Any, path: Keys) -> Any:
        """Return the value of a node, and keep the places of the value and all values in it.

        Args:
            key: Node of the key of the value, or `node` itself if it has no key.
            node: Node of the value.
            path: Path of the value.
        """
        self.places[path] = self._place(key), self._place(node)
        if isinstance(node, yaml.ScalarNode):
            if node.style:
                return node.value
            return resolve_scalar(node.value)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.value_of(item, item, (*path, number)) for number, item in enumerate(node.value)
            ]
        values = {}
        lines: dict[str, int] = {}
        for name, inner in node.value:
            if not isinstance(name, yaml.ScalarNode):
                raise _Refused("a list or mapping can't be a key; expected text", name.start_mark)
            line = name.start_mark.line + 1
            child = (*path, name.value)
            value = self.value_of(name, inner, child)
            if name.value in values:
                first = lines[name.value]
                value = Unreadable(f"given twice, on lines {first} and {line}; keep one")
                self.places[child] = self._place(name), self._place(name)
            values[name.value] = value
            lines[name.value] = line
        return values

    def _place(self, node: Any) -> str:
        """Return the place where a node begins."""
        return f"{self.name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def resolve_scalar(text: str) -> str | float | bool | Unreadable | None:
    """Return the value of an unquoted scalar: None, True, False, a number, or the text itself.

    Return an `Unreadable` for a scalar that YAML tools read in different ways, such as `no`, `012`
    or `1:30`. A number of more than NUMBER_LIMIT characters also gives an `Unreadable`.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    if _FLOAT.fullmatch(text) and len(text) <= NUMBER_LIMIT:
        if _INTEGER.fullmatch(text):
            return int(text)
        return float(text)
    if _AMBIGUOUS.fullmatch(text):
        found = shorten(text, 40)
        return Unreadable(
            f'found {found}; quote it ("{found}") if text is meant, else write true, false, null '
            "or a plain decimal number"
        )
    return text


def set_options(values: Mapping[str, Any]) -> str:
    """Return the options of a command that set keys of the section data, as a shell reads them."""
    settings = [f"data.{key}={flow(value)}" for key, value in values.items()]
    return shlex.join([word for setting in settings for word in ("--set", setting)])


def flow(value: object) -> str:
    """Return a value as YAML on one line that `read_yaml` reads back.

    Args:
        value: None, a boolean, a finite number, a text, or a list or dict of such values.
    """
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{flow(key)}: {flow(item)}' for key, item in value.items())}}}"
    if not isinstance(value, str):
        return repr(value)
    if _PLAIN.fullmatch(value) and resolve_scalar(value) == value:
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(character: str) -> str:
    """Return a character as it is written within double quotes in YAML."""
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    return f"\\U{ord(character):08x}"


def brief(value: object) -> str:
    """Return a value as a message quotes it: on one line, with about 40 characters at most.

    A text is in single quotes. Other values are written as YAML.
    """
    if isinstance(value, str):
        return quote(value, 42)
    return shorten(flow(value), 40)
