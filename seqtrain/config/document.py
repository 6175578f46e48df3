"""Strict YAML: plain values and where each stands; tags and aliases are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from seqtrain.config.problems import Keys, Place, Problem
from seqtrain.config.scalars import AmbiguousScalar, resolve_scalar
from seqtrain.config.syntax import explain
from seqtrain.text import shorten

DEPTH_LIMIT = 20

Locate: TypeAlias = Callable[[int, int], Place]
"""Makes a place of a line and a column, both from 1."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a key and its value stand, and how a plain scalar was spelled."""

    key: Place
    value: Place
    written: str | None


@dataclass
class Document:
    """A configuration as written.

    Attributes:
        value: the plain value of the whole: dict, list, text, number, bool or None.
        entries: where each key (or list item) stands.
        faults: what is wrong with the structure, such as a key given twice.
        refused: values that can't be used, by their keys; they stand as None in `value`.
    """

    value: Any = None
    entries: dict[Keys, Entry] = field(default_factory=dict)
    faults: list[Problem] = field(default_factory=list)
    refused: dict[Keys, Problem] = field(default_factory=dict)

    def forget(self, path: Keys) -> None:
        """Drop the places and refusals of a value about to be replaced."""
        for table in (self.entries, self.refused):
            for known in [known for known in table if known[: len(path)] == path]:
                del table[known]


def read_yaml(text: str, locate: Locate, root: Keys = ()) -> Document:
    """Read one strict YAML document.

    Args:
        text: the YAML.
        locate: makes the place of a line and column of this text.
        root: keys under which the value stands in the configuration.

    Returns:
        The document; what is wrong with it stands in its `faults` and `refused`. If the text
        can't be read at all, the whole is refused.
    """
    return _Reader(text, locate, root).read()


class _Unreadable(Exception):
    """The text can't be read past this line and column."""


class _Reader:
    def __init__(self, text: str, locate: Locate, root: Keys) -> None:
        self.text = text
        self.locate = locate
        self.root = root
        self.document = Document()
        self.parser: Any = None
        self.events: Iterator[Any] = iter(())

    def read(self) -> Document:
        try:
            self.parser = yaml.SafeLoader(self.text)
            self.events = iter(self.parser.get_event, None)
            self.document.value = self.whole()
        except yaml.reader.ReaderError as error:
            before = self.text[: error.position]
            line, column = before.count("\n") + 1, error.position - before.rfind("\n")
            self.give_up(
                line, column, f"character U+{error.character:04X} can't stand in a YAML file"
            )
        except yaml.MarkedYAMLError as error:
            self.give_up(*explain(error))
        except _Unreadable as error:
            mark, sentence = error.args
            self.give_up(mark.line + 1, mark.column + 1, sentence)
        except (ValueError, OverflowError):  # the parser's own int() and chr() on absurd numbers
            mark = self.parser.get_mark()
            self.give_up(mark.line + 1, mark.column + 1, "a number here is out of range")
        return self.document

    def give_up(self, line: int, column: int, text: str) -> None:
        self.document.refused[self.root] = Problem(self.locate(line, column), (), text)

    def whole(self) -> Any:
        """Read the only document of the stream."""
        next(self.events)  # the start of the stream
        if isinstance(next(self.events), yaml.StreamEndEvent):
            return None
        event = next(self.events)
        self.enter(self.root, event, event)
        value = self.node(event, self.root)
        next(self.events)  # the end of the document
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise _Unreadable(after.start_mark, "a second document begins here; expected one")
        return value

    def node(self, event: Any, path: Keys) -> Any:
        """Read the value that begins with `event`."""
        refusal = _refusal(event)
        if refusal:
            self.document.refused[path] = self.problem(event, path, refusal)
            self.skip(event)
            return None
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event, path)
        if len(path) - len(self.root) >= DEPTH_LIMIT:
            raise _Unreadable(event.start_mark, f"nested more than {DEPTH_LIMIT} levels deep")
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(path)
        return self.mapping(path)

    def scalar(self, event: Any, path: Keys) -> Any:
        if not event.implicit[0]:
            return event.value
        try:
            return resolve_scalar(event.value)
        except AmbiguousScalar as error:
            self.document.refused[path] = self.problem(event, path, str(error))
            return None

    def sequence(self, path: Keys) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            child = (*path, len(values))
            self.enter(child, event, event)
            values.append(self.node(event, child))
        return values

    def mapping(self, path: Keys) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        while not isinstance(key_event := next(self.events), yaml.MappingEndEvent):
            fault = _key_fault(key_event)
            key = "" if fault else key_event.value
            line = key_event.start_mark.line + 1
            if key in values:
                both = f"lines {lines[key]} and {line}" if lines[key] != line else f"line {line}"
                fault = f"given twice, on {both}; keep one"
            if fault:
                path_of_key = (*path, key) if key else path
                self.document.faults.append(self.problem(key_event, path_of_key, fault))
                if not key:
                    self.skip(key_event)
                self.skip(next(self.events))
                continue
            lines[key] = line
            event, child = next(self.events), (*path, key)
            self.enter(child, key_event, event)
            values[key] = self.node(event, child)
        return values

    def enter(self, path: Keys, key_event: Any, event: Any) -> None:
        """Note where a key and its value stand."""
        plain = isinstance(event, yaml.ScalarEvent) and event.implicit[0]
        written = event.value if plain else None
        self.document.entries[path] = Entry(self.place(key_event), self.place(event), written)

    def skip(self, event: Any) -> None:
        """Pass over the value that begins with `event`, however deep."""
        depth = 0
        while True:
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth == 0:
                return
            event = next(self.events)

    def place(self, event: Any) -> Place:
        return self.locate(event.start_mark.line + 1, event.start_mark.column + 1)

    def problem(self, event: Any, path: Keys, text: str) -> Problem:
        return Problem(self.place(event), path, text)


def _refusal(event: Any) -> str:
    """Say why a value can't be used as YAML: an alias, an anchor or a tag; else nothing."""
    if isinstance(event, yaml.AliasEvent):
        return f"alias *{shorten(str(event.anchor), 40)} refused; write the value out"
    if event.anchor is not None:
        return f"anchor &{shorten(event.anchor, 40)} refused; write the value out where it is used"
    if event.tag is not None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!", 1)
        tag = tag if tag.startswith("!") else f"!<{tag}>"
        return f"tag {shorten(tag, 60)} refused; write plain values"
    return ""


def _key_fault(event: Any) -> str:
    """Say why a key can't be used; else nothing."""
    refusal = _refusal(event)
    if refusal:
        return refusal
    if not isinstance(event, yaml.ScalarEvent):
        return "a list or mapping can't be a key; expected text"
    if event.implicit[0] and event.value == "<<":
        return "merge key << refused; write the keys out"
    if any("\ud800" <= character <= "\udfff" for character in event.value):
        return "a key holds a lone surrogate, which is no character; expected text"
    return "" if event.value else "a key is empty; expected text"
