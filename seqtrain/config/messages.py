"""Messages about wrong values of a config.

A message says where the problem is, what was found, what is allowed, and which known name is the
most similar one. This module knows the keys of a config from its class only, which is an argument.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from seqtrain.config.document import Keys, Places, Unreadable, brief
from seqtrain.config.value_types import BROKEN_RULE
from seqtrain.errors import ConfigError
from seqtrain.text import counted, nearest, one_line, one_of, shorten

SHOWN_PROBLEMS = 50
"""Largest number of problems that an error lists. Other problems are counted."""
UNKNOWN_KEY = ("extra_forbidden", "invalid_key")
"""Types of pydantic's errors about unknown keys."""
NAMES_ELSEWHERE = {
    "training.max_epochs": "epochs num_epochs n_epochs num_train_epochs nb_epoch",
    "batching.batch_size": "batch bs per_device_train_batch_size",
    "model.hidden_size": "hidden num_hidden hidden_units units rnn_size",
    "model.embedding_dim": "emb_dim embed_dim emb_size embed_size",
    "model.rnn": "cell cell_type rnn_type",
    "training.patience": "early_stopping early_stop",
    "training.max_grad_norm": "clip grad_clip gradient_clip clip_norm clipnorm",
    "training.weight_decay": "l2 wd",
    "training.device": "gpu cuda",
    "data.max_length": "maxlen seq_len seq_length max_seq_len max_seq_length",
    "data.sequence": "text text_column text_col input inputs x",
    "data.label": "target target_column label_column label_col y",
    "data.validation": "val dev eval",
}
"""Maps keys to the names that other tools have for them, where these are spelled differently."""
WORDS_OF_TYPES = {"boolean": ["true", "false"], "null": ["null"]}
"""Maps types of JSON Schema to all their values."""
KEY_DEPTH = 2
"""Number of steps to a key of a section."""
NO_PLACE = ("", "")


class Problem(NamedTuple):
    """A problem of a config.

    Attributes:
        path: Path of the wrong value.
        text: The message.
        is_unknown: True if the key is unknown. The place is then that of the key.
    """

    path: Keys
    text: str
    is_unknown: bool = False


def config_error(problems: list[Problem], places: Places) -> ConfigError:
    """Return the error that reports all problems of a config, one line each.

    The lines have the order of the places. After SHOWN_PROBLEMS lines, the remaining problems are
    only counted.

    Args:
        problems: The problems.
        places: Places of the values; empty for values from Python.
    """
    order = {path: number for number, path in enumerate(places)}
    problems = sorted(problems, key=lambda problem: order.get(_placed(problem.path, places), -1))
    lines = [_line(problem, places) for problem in problems[:SHOWN_PROBLEMS]]
    if len(problems) > SHOWN_PROBLEMS:
        lines.append(f"{counted(len(problems) - SHOWN_PROBLEMS, 'more problem')} not shown")
    return ConfigError(*lines)


def _placed(path: Keys, places: Places) -> Keys:
    """Return the longest beginning of a path that has a place, or the whole path if none has."""
    above = (path[:end] for end in range(len(path), -1, -1))
    return next((key for key in above if key in places), path)


def _line(problem: Problem, places: Places) -> str:
    """Return a problem as one line: place, key and message.

    The key is left out if the place is an option, which begins with the key.
    """
    placed = _placed(problem.path, places)
    of_key, of_value = places.get(placed, NO_PLACE)
    if problem.is_unknown or placed != problem.path:
        place = of_key
    else:
        place = of_value
    key = ".".join(shorten(str(step), 40) for step in problem.path)
    if place.startswith(f"--set {key}="):
        key = ""
    return one_line(": ".join(part for part in (place, key, problem.text) if part))


def problems_of(error: ValidationError, values: Any, root: type[BaseModel]) -> list[Problem]:
    """Return one problem for each wrong value.

    If a value in a list or mapping is wrong, only that value is reported, not the list or mapping.
    If a value has two or more errors, an error of a rule is preferred, because its message says
    most.

    Args:
        error: Error of pydantic.
        values: The values that were validated.
        root: Class of the config.
    """
    details = error.errors(include_url=False, include_context=False)
    details.sort(key=lambda detail: detail["type"] == BROKEN_RULE)
    errors = {_path(detail, values): detail for detail in details}
    outer = {path[:end] for path in errors for end in range(len(path))}
    return [
        Problem(path, _described(path, detail, root, values), detail["type"] in UNKNOWN_KEY)
        for path, detail in errors.items()
        if path not in outer
    ]


def _path(detail: ErrorDetails, values: Any) -> Keys:
    """Return the path of the value that an error of pydantic is about.

    The names of types in pydantic's path are left out. If a small mapping such as {fold: 1, of: 3}
    lacks a key or has an unknown one, the path is that of the mapping.
    """
    path = []
    for step in detail["loc"]:
        is_index = isinstance(values, list) and isinstance(step, int)
        if is_index or (isinstance(values, dict) and step in values):
            path.append(step)
            values = values[step]
    if detail["type"] == "missing" and len(path) < KEY_DEPTH:
        path.append(detail["loc"][-1])
    if detail["type"] in UNKNOWN_KEY and len(path) > KEY_DEPTH:
        path.pop()
    return tuple(path)


def _described(path: Keys, detail: ErrorDetails, root: type[BaseModel], values: Any) -> str:
    """Return the message for an error of pydantic: what was found, and what is allowed."""
    value = detail["input"]
    is_of_key = path[-1:] == detail["loc"][-1:]
    if isinstance(value, Unreadable):
        return value.why
    if detail["type"] in UNKNOWN_KEY and is_of_key:
        return _unknown_key(path, root, is_section=isinstance(value, dict))
    if detail["type"] == BROKEN_RULE:
        return detail["msg"]
    if not path:
        return f"found {brief(value)}; expected a mapping"
    if detail["type"] == "missing" and is_of_key:
        if path == ("data", "train"):
            table = ", or a table in Python (train=)"
        else:
            table = ""
        return f"missing; expected {expected(path, root)}{table}"
    if detail["loc"][-1] == "[key]":
        return f"found key {brief(path[-1])}; expected text as key"
    if detail["type"] in UNKNOWN_KEY:
        for step in path:
            values = values[step]
        value = values
    if isinstance(value, str):
        near = nearest(value.lower(), allowed_words(path, root))
    else:
        near = None
    hint = f"; did you mean {near}?" if near else ""
    return f"found {brief(value)}; expected {expected(path, root)}{hint}"


def sections_of(root: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return a dict that maps the name of each section of a config to its class."""
    classes = {name: field.annotation for name, field in root.model_fields.items()}
    return {
        name: found
        for name, found in classes.items()
        if isinstance(found, type) and issubclass(found, BaseModel)
    }


def key_fields(root: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return a dict that maps each key of a config to its field.

    The keys are "seed", the sections, and the keys of sections, such as "training.lr".
    """
    fields = dict(root.model_fields)
    for name, section in sections_of(root).items():
        fields |= {f"{name}.{key}": field for key, field in section.model_fields.items()}
    return fields


def _unknown_key(path: Keys, root: type[BaseModel], *, is_section: bool) -> str:
    """Return the message for an unknown key, with the key that was probably meant.

    Args:
        path: Path of the key.
        root: Class of the config.
        is_section: True if the key's value is a mapping, so that the key may be a section.
    """
    near = nearest_key(path, root, is_section=is_section)
    if near is None:
        if len(path) > 1:
            section = sections_of(root).get(str(path[0]), root)
        else:
            section = root
        return f"unknown key; expected {one_of(list(section.model_fields))}"
    if near == path[-1]:
        section_name, _, name = near.rpartition(".")
        if section_name:
            place = f"under {section_name}"
        else:
            place = "at the top, outside of all sections"
        return f"unknown key; write {name} {place}"
    return f"unknown key; did you mean {near}?"


def nearest_key(path: Keys, root: type[BaseModel], *, is_section: bool = False) -> str | None:
    """Return the known key that is most similar to an unknown one, or None if no key is similar.

    A name that other tools have for a key finds it (`NAMES_ELSEWHERE`). Else keys of the same
    section are preferred. If no name is similar, descriptions of keys are searched
    for the words of the unknown key: "learning_rate" finds training.lr.

    Args:
        path: Path of the unknown key.
        root: Class of the config.
        is_section: True if the unknown key's value is a mapping. A key outside of sections is then
            compared with the names of sections only.
    """
    leaf = str(path[-1])[:100].lower()
    if is_section and len(path) == 1:
        return nearest(leaf, sections_of(root))
    fields = key_fields(root)
    known = {key: key for key in fields}
    known |= {key.rpartition(".")[2]: key for key in reversed(fields)}
    siblings = [name for name, key in known.items() if key.startswith(f"{path[0]}.")]
    if leaf in known:
        return known[leaf]
    for key, names in NAMES_ELSEWHERE.items():
        if leaf in names.split():
            return key
    near = nearest(leaf, siblings) or nearest(leaf, known, 0.7)
    if near is not None:
        return known[near]
    words = leaf.replace("_", " ")  # such as learning_rate: the description of training.lr
    if words == leaf:
        return None
    return next((key for key in fields if words in str(fields[key].description).lower()), None)


def expected(path: Keys, root: type[BaseModel]) -> str:
    """Return a description of the values that a known key allows, such as "text or null".

    Args:
        path: Path of the key. Path entries below the key are ignored.
        root: Class of the config.

    Raises:
        KeyError: If there is no such key.
    """
    return one_of([text for text, _ in _allowed(path, root)])


def allowed_words(path: Keys, root: type[BaseModel]) -> list[str]:
    """Return the words that a known key allows, such as "auto", "true" or "null".

    Arguments and errors are those of `expected`.
    """
    return [text for text, is_word in _allowed(path, root) if is_word]


@cache
def _json_schema(section: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a section. It is computed once."""
    return section.model_json_schema()


def _allowed(path: Keys, root: type[BaseModel]) -> Iterator[tuple[str, bool]]:
    """Yield each word that a key allows with True, and a description of other values with False."""
    section = sections_of(root).get(str(path[0]))
    if section is not None and len(path) == 1:
        yield "a mapping of keys", False
        return
    found = _json_schema(section or root)["properties"][path[0] if section is None else path[1]]
    for variant in found.get("anyOf", [found]):
        words = variant.get("enum", [variant["const"]] if "const" in variant else [])
        words = WORDS_OF_TYPES.get(variant.get("type"), words)
        for word in words:
            yield str(word), True
        if not words:
            yield variant.get("$comment") or _form(variant), False


def _form(variant: dict[str, Any]) -> str:
    """Return a description of the numbers or texts that a JSON Schema allows."""
    if variant.get("type") not in ("integer", "number"):
        return "text"
    noun = "a whole number" if variant["type"] == "integer" else "a number"
    if "minimum" in variant and "maximum" in variant:
        return f"{noun} from {variant['minimum']} to {variant['maximum']}"
    limits = {
        "exclusiveMinimum": "above",
        "minimum": "of at least",
        "exclusiveMaximum": "below",
        "maximum": "at most",
    }
    words = [f"{limits[name]} {variant[name]}" for name in limits if name in variant]
    return f"{noun} {' and '.join(words)}"
