"""Messages about an invalid config.

A message says where the problem is, what was found, what is allowed, and which known name is the
most similar one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from seqtrain.config.document import Keys, Unreadable, brief
from seqtrain.config.schema import SECTIONS, Config
from seqtrain.config.value_types import BROKEN_RULE, Section
from seqtrain.errors import ConfigError
from seqtrain.text import nearest, one_line, one_of, shorten

KEYS = (*Config.model_fields, *(f"{s}.{key}" for s in SECTIONS for key in SECTIONS[s].model_fields))
"""All keys of a config: "seed", the sections, and the keys of sections, such as "training.lr"."""
SHOWN_PROBLEMS = 50
"""Largest number of problems that an error lists. Other problems are counted."""
UNKNOWN_KEY = ("extra_forbidden", "invalid_key")
"""Types of pydantic's errors about unknown keys."""


class Location(NamedTuple):
    """Place of a key or a value, for messages.

    Attributes:
        order: Key by which places are sorted: first places in the file, by line and column, then
            options, by their index.
        text: Name of the place, such as "my.yaml:3:5" or "--set training.lr=0".
    """

    order: tuple[int, ...] = ()
    text: str = ""


Locations: TypeAlias = "dict[Keys, tuple[Location, Location]]"
"""Maps the path of each value to the locations of its key and of the value."""


@dataclass(frozen=True)
class Origin:
    """Origin of the values of a config.

    Attributes:
        locations: Locations of the values in a file or in options. Values from Python have none.
        misspelt: Maps the correct name of each misspelt section to the misspelt name in the config.
    """

    locations: Locations = field(default_factory=dict)
    misspelt: Mapping[str, str] = field(default_factory=dict)


def config_error(error: ValidationError | None, values: Any, origin: Origin | None) -> ConfigError:
    """Return the error that reports all problems of a config, one line each.

    The lines are sorted by location. After SHOWN_PROBLEMS lines, the remaining problems are only
    counted.

    Args:
        error: Error of pydantic, or None if only names of sections are misspelt.
        values: The values that were validated, with misspelt sections under their right names.
        origin: Origin of the values, or None if they come from Python.
    """
    origin = origin or Origin()
    found = []
    for path, detail in _innermost(error, values).items() if error else ():
        place = (origin.misspelt.get(str(path[0]), path[0]), *path[1:]) if path else path
        location = _locate(origin.locations, place, is_key=detail["type"] in UNKNOWN_KEY)
        found.append((location, path, _describe(path, detail)))
    for right, name in origin.misspelt.items():
        location = _locate(origin.locations, (name,), is_key=True)
        found.append((location, (name,), f"unknown key; did you mean {right}?"))
    found.sort(key=lambda problem: problem[0].order)
    lines = [_line(*problem) for problem in found[:SHOWN_PROBLEMS]]
    if len(found) > SHOWN_PROBLEMS:
        lines.append(f"{len(found) - SHOWN_PROBLEMS} more problems not shown")
    return ConfigError(*lines)


def _innermost(error: ValidationError, values: Any) -> dict[Keys, ErrorDetails]:
    """Return a dict that maps the path of each wrong value to one of its errors.

    If a value in a list or mapping is wrong, only that value is reported, not the list or mapping.
    If a value has two or more errors, an error of a rule is preferred, because its message says
    most.

    Args:
        error: Error of pydantic.
        values: The values that were validated.
    """
    details = error.errors(include_url=False, include_context=False)
    details.sort(key=lambda detail: detail["type"] == BROKEN_RULE)
    errors = {_path(detail, values): detail for detail in details}
    outer = {path[:end] for path in errors for end in range(len(path))}
    return {path: detail for path, detail in errors.items() if path not in outer}


def _path(detail: ErrorDetails, values: Any) -> Keys:
    """Return the path of the value that an error is about.

    The names of types in pydantic's path are left out.

    Args:
        detail: The error.
        values: The values that were validated.
    """
    if detail["type"] in (*UNKNOWN_KEY, "missing"):
        return detail["loc"]
    path: list[str | int] = []
    for step in detail["loc"]:
        is_index = isinstance(values, list) and isinstance(step, int)
        if is_index or (isinstance(values, dict) and step in values):
            path.append(step)
            values = values[step]
    # A rule may complain about a key that was not set.
    return detail["loc"] if detail["type"] == BROKEN_RULE and len(path) < 2 else tuple(path)


def _locate(locations: Locations, path: Keys, *, is_key: bool) -> Location:
    """Return the location of a key (`is_key`) or of its value.

    Without a location, return the location of the nearest key above, or an empty location.
    """
    if path in locations:
        key, value = locations[path]
        return key if is_key else value
    above = (path[:end] for end in range(len(path) - 1, -1, -1))
    return next((locations[key][0] for key in above if key in locations), Location())


def _line(location: Location, path: Keys, text: str) -> str:
    """Return a problem as one line: location, key and message.

    The key is left out if the location is an option, which begins with the key.

    Args:
        location: Location of the problem, empty for values from Python.
        path: Path of the value.
        text: The message.
    """
    key = ".".join(shorten(str(step), 40) for step in path)
    if not location.text.startswith(f"--set {key}="):
        text = f"{key}: {text}" if key else text
    return one_line(f"{location.text}: {text}" if location.text else text)


def _describe(path: Keys, detail: ErrorDetails) -> str:
    """Return the message for one error: what was found, and what is allowed.

    Args:
        path: Path of the value.
        detail: Error of pydantic.
    """
    value = detail["input"]
    if detail["type"] in UNKNOWN_KEY:
        return unknown_key(path, is_section=isinstance(value, dict))
    if isinstance(value, Unreadable):
        return value.why
    if detail["type"] == "missing":
        return f"missing; expected {expected(path)}"
    if detail["type"] == BROKEN_RULE:
        return detail["msg"]
    if detail["loc"] and detail["loc"][-1] == "[key]":
        allowed = expected(path[:-1]) if isinstance(path[-1], str) else "text as key"
        return f"found key {brief(path[-1])}; expected {allowed}"
    return wrong_value(path, value) if path else f"found {brief(value)}; expected a mapping"


def wrong_value(path: Keys, value: object) -> str:
    """Return the message for a wrong value: what was found, what is allowed, the nearest word.

    Args:
        path: Path of the value, whose key is known.
        value: The value.
    """
    hint = ""
    if isinstance(value, str):
        near = nearest(value.lower(), allowed_words(path))
        hint = f"; did you mean {near}?" if near else ""
    return f"found {brief(value)}; expected {expected(path)}{hint}"


def unknown_key(path: Keys, *, is_section: bool) -> str:
    """Return the message for an unknown key, with the key that was probably meant.

    Args:
        path: Path of the key.
        is_section: True if the key's value is a mapping, so that the key may be a section.
    """
    near = nearest_key(path, is_section=is_section)
    if near is None:
        section = SECTIONS.get(str(path[0]), Config) if len(path) > 1 else Config
        return f"unknown key; expected {one_of(list(section.model_fields))}"
    if near == path[-1] and "." in near:
        return "unknown key; write {1} under {0}".format(*near.split("."))
    at_top = ", at the top" if len(path) > 1 and "." not in near else ""
    return f"unknown key; did you mean {near}{at_top}?"


def nearest_key(path: Keys, *, is_section: bool = False) -> str | None:
    """Return the known key that is most similar to an unknown one, or None if no key is similar.

    Keys of the same section are preferred. If no name is similar, descriptions of keys are searched
    for the words of the unknown key: "learning_rate" finds training.lr.

    Args:
        path: Path of the unknown key.
        is_section: True if the unknown key's value is a mapping. A key outside of sections is then
            compared with the names of sections only.

    Returns:
        The key with its section, such as "training.lr", or the name of a section.
    """
    leaf, section = str(path[-1])[:100].lower(), f"{path[0]}."
    if is_section and len(path) == 1:
        return nearest(leaf, SECTIONS)
    known = {key: key for key in KEYS}
    known |= {key.rpartition(".")[2]: key for key in reversed(KEYS)}
    siblings = [name for name, key in known.items() if key.startswith(section)]
    near = leaf if leaf in known else nearest(leaf, siblings) or nearest(leaf, known, 0.7)
    if near is None and "_" in leaf:  # such as learning_rate: the description of training.lr
        words = leaf.replace("_", " ")
        return next((key for key in KEYS if words in _description(key)), None)
    return None if near is None else known[near]


def expected(path: Keys) -> str:
    """Return a description of the values that a known key allows, such as "text or null".

    Args:
        path: Path of the key. Path entries below the key are ignored.

    Raises:
        KeyError: If the section has no such key.
    """
    return one_of([word for variant in _variants(path) for word in _words(variant)])


def allowed_words(path: Keys) -> list[str]:
    """Return the words that a known key allows, such as "auto", "true" or "null".

    Args:
        path: Path of the key. Path entries below the key are ignored.
    """
    return [word for part in _variants(path) for word in _words(part) if _lists_words(part)]


def _description(key: str) -> str:
    """Return the description of a key in the schema, in lower case."""
    section, _, name = key.rpartition(".")
    fields = SECTIONS.get(section, Config).model_fields
    return str(fields[name].description).lower()


@cache
def _section_schema(section: type[Section]) -> dict[str, Any]:
    """Return the JSON Schema of a section. It is computed once."""
    return section.model_json_schema()


def _variants(path: Keys) -> list[dict[str, Any]]:
    """Return the JSON Schema of each kind of value that a key allows."""
    section = SECTIONS.get(str(path[0]))
    if section and len(path) == 1:
        return [{"$comment": "a mapping of keys"}]
    schema: dict[str, Any] = _section_schema(section or Config)
    found = schema["properties"][path[1] if section else path[0]]
    return list(found.get("anyOf", [found]))


def _lists_words(variant: dict[str, Any]) -> bool:
    """Return True if a JSON Schema allows only certain words, such as an enum."""
    return "enum" in variant or "const" in variant or variant.get("type") in ("boolean", "null")


def _words(variant: dict[str, Any]) -> list[str]:
    """Return descriptions of the values that a JSON Schema allows."""
    kind = variant.get("type")
    if "enum" in variant or "const" in variant:
        return [str(word) for word in variant.get("enum", [variant.get("const")])]
    if "$comment" in variant:
        return [variant["$comment"]]
    if kind in ("integer", "number"):
        return [_range("a whole number" if kind == "integer" else "a number", variant)]
    return {"boolean": ["true", "false"], "null": ["null"]}.get(str(kind), ["text"])


def _range(noun: str, variant: dict[str, Any]) -> str:
    """Return a description of a number with its limits, such as "a number above 0".

    Args:
        noun: "a number" or "a whole number".
        variant: JSON Schema with the limits.
    """
    limits = {
        "exclusiveMinimum": "above",
        "minimum": "of at least",
        "exclusiveMaximum": "below",
        "maximum": "at most",
    }
    words = [f"{limits[name]} {_number(variant[name])}" for name in limits if name in variant]
    if "minimum" in variant and "maximum" in variant:
        return f"{noun} from {_number(variant['minimum'])} to {_number(variant['maximum'])}"
    return f"{noun} {' and '.join(words)}"


def _number(value: float) -> str:
    """Return a number as text, without ".0" if it is whole."""
    return str(int(value)) if value == int(value) else repr(value)
