"""Checks a document against the schema and tells everything wrong with it, one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from seqtrain.config.document import Document
from seqtrain.config.expectation import RETIRED_KEYS, SECTIONS, expected, hint, unknown_key
from seqtrain.config.formats import resolve_kind
from seqtrain.config.problems import SHOWN_PROBLEMS, Keys, Place, Problem, raise_if_any, show
from seqtrain.config.rules import RULES, joint_faults
from seqtrain.config.schema import Config
from seqtrain.text import shorten

_UNKNOWN = ("extra_forbidden", "invalid_key")


def validate(document: Document, top: Place) -> Config:
    """Turn a document into a configuration.

    Args:
        document: plain values and where they stand; its value is a dict.
        top: the place named where no key stands to point at.

    Returns:
        The configuration.

    Raises:
        ConfigError: with every problem of the document, of its values and between them.
    """
    values = dict(document.value)
    for name in SECTIONS:
        if values.get(name) is None:
            values[name] = {}
    _leave_out_retired(values)
    config, errors = _check(values)
    refused = _refused(document)
    wrong = {path: kind for path, kind in errors.items() if kind == "unknown" or not refused(path)}
    problems = [*document.faults, *document.refused.values()]
    ordered = sorted(wrong, key=lambda path: _place(document, path, wrong[path], top).order)
    for number, path in enumerate(ordered):
        text = _text(document, values, path, wrong[path]) if number < SHOWN_PROBLEMS else ""
        problems.append(Problem(_place(document, path, wrong[path], top), path, text))
    valid = {name: _valid(document, name, values[name], set(errors)) for name in SECTIONS}
    faults = [(name, *fault) for name, rule in RULES.items() for fault in rule(valid[name])]
    for section, key, text in (*faults, *joint_faults(valid)):
        path = (section, key)
        problems.append(Problem(_place(document, path, "value", top), path, text))
    raise_if_any(problems)
    assert config is not None, "a configuration with no problem is valid"
    return config


def _leave_out_retired(values: dict[str, Any]) -> None:
    """Drop keys of earlier versions that have the default of their time."""
    for (section, key), (default, _) in RETIRED_KEYS.items():
        given = values[section]
        if key in SECTIONS[section].model_fields or not isinstance(given, dict):
            continue
        if key in given and given[key] == default:
            values[section] = {name: value for name, value in given.items() if name != key}


def _check(values: dict[str, Any]) -> tuple[Config | None, dict[Keys, str]]:
    """Validate against the schema; return the configuration, or the kind of error of each key."""
    try:
        return Config.model_validate(values), {}
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
    errors = {_path(detail, values): _kind(detail) for detail in details}
    inner = {path[:end] for path in errors for end in range(len(path))}
    return None, {path: kind for path, kind in errors.items() if path not in inner}


def _path(detail: ErrorDetails, values: Any) -> Keys:
    """Follow the location of an error through the values, past the names of the types tried."""
    if detail["type"] in (*_UNKNOWN, "missing"):
        return detail["loc"]
    path: list[str | int] = []
    for step in detail["loc"]:
        inside = isinstance(values, dict) and step in values
        inside = inside or (isinstance(values, list) and isinstance(step, int))
        if inside:
            path.append(step)
            values = values[step]
    return tuple(path)


def _kind(detail: ErrorDetails) -> str:
    """Name the kind of an error: unknown, missing, key (of a mapping) or value."""
    if detail["loc"][-1] == "[key]":
        return "key"
    kind = detail["type"]
    return "unknown" if kind in _UNKNOWN else kind if kind == "missing" else "value"


def _refused(document: Document) -> Callable[[Keys], bool]:
    """Return a test whether a value, what holds it or a part of it was refused already."""
    above = {path[:end] for path in document.refused for end in range(len(path) + 1)}

    def test(path: Keys) -> bool:
        return path in above or any(path[:end] in document.refused for end in range(len(path)))

    return test


def _place(document: Document, path: Keys, kind: str, top: Place) -> Place:
    """Find where to point: the value, the key if that is unknown, or the nearest key above."""
    entry = document.entries.get(path)
    if entry is not None:
        return entry.key if kind == "unknown" else entry.value
    above = (document.entries.get(path[:end]) for end in range(len(path) - 1, 0, -1))
    return next((entry.key for entry in above if entry is not None), top)


def _text(document: Document, values: Any, path: Keys, kind: str) -> str:
    """Say what is wrong with the value at a key."""
    if kind == "unknown":
        return unknown_key(path)
    if kind == "missing":
        return f"missing; expected {expected(path)}"
    if kind == "key":
        wanted = expected(path[:-1]) if isinstance(path[-1], str) else "text as key"
        return f"found key {show(path[-1])}; expected {wanted}"
    for step in path:
        values = values[step]
    entry = document.entries.get(path)
    written = entry.written if entry and not isinstance(values, str) else None
    found = shorten(written, 40) if written else show(values)
    return f"found {found}; expected {expected(path)}{hint(path, values, written)}"


def _valid(document: Document, section: str, values: Any, wrong: set[Keys]) -> dict[str, Any]:
    """Return the values of a section's keys, defaults included, as far as each is valid itself."""
    faulty = {path[:2] for path in (*wrong, *document.refused)}
    if not isinstance(values, dict) or () in faulty or (section,) in faulty:
        return {}
    fields = SECTIONS[section].model_fields
    given = {name: values.get(name, field.default) for name, field in fields.items()}
    valid = {name: value for name, value in given.items() if (section, name) not in faulty}
    if valid.get("kind") == "auto":
        train, format = valid.get("train"), valid.get("format")
        if isinstance(train, str | list) and format is not None:
            valid["kind"] = resolve_kind(train, format, "auto")
        else:
            del valid["kind"]  # nobody knows it before these are right
    return valid
