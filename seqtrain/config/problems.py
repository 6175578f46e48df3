"""What a config's problems say: what was found, what is allowed, and the nearest valid name."""

from functools import cache
from typing import Any

from seqtrain.config.document import Keys, brief
from seqtrain.config.schema import SECTIONS, Config, Section
from seqtrain.text import nearest, one_of

KEYS = (*Config.model_fields, *(f"{s}.{key}" for s in SECTIONS for key in SECTIONS[s].model_fields))
"""Every key of a config, sections included."""

RETIRED_KEYS: dict[str, tuple[object, str]] = {
    "data.readers": ("auto", "one process reads all files; leave the key out"),
    "training.shards": (
        None,
        "processes sum their gradients, equal to rounding at any number; leave the key out "
        "(seqtrain fit --nproc-per-node N)",
    ),
}
"""Keys that are no longer in the schema: their default at the time, and what to use instead.

At that default, as in the config.yaml of an earlier run, they are left out; else they are refused.
"""
RETIRED_VALUES = {"model.engine: fused": "use auto or torch"}
"""Values that are no longer in the schema, and what to use instead."""

OTHER_NAMES = {"text": "sequence", "target": "label", "sep": "delimiter", "val": "validation"}
OTHER_NAMES |= {"cell": "rnn", "amp": "precision", "clip": "max_grad_norm"}
"""Keys as other programs name them, spelled unlike ours."""


def wrong_value(path: Keys, value: object) -> str:
    """Say what was found at a key, or inside its value, what it may be, and what was meant."""
    hint = ""
    if isinstance(value, str):
        near = nearest(value.lower(), choices(path))
        hint = f"; did you mean {near}?" if near else ""
        instead = RETIRED_VALUES.get(f"{'.'.join(map(str, path))}: {value}")
        hint = f"; {value} was removed: {instead}" if instead else hint
    return f"found {brief(value)}; expected {expected(path)}{hint}"


def unknown_key(path: Keys, *, of_section: bool) -> str:
    """Say that a key, by its path, is unknown, and which one may have been meant.

    `of_section` says whether keys stand under the first of the path.
    """
    retired = RETIRED_KEYS.get(".".join(map(str, path)))
    if retired is not None:
        return f"this key was removed: {retired[1]}"
    near = nearest_key(path, of_section=of_section)
    if near is None:
        section = SECTIONS.get(str(path[0]), Config) if len(path) > 1 else Config
        return f"unknown key; expected {one_of(list(section.model_fields))}"
    if near == path[-1] and "." in near:
        return "unknown key; write {1} under {0}".format(*near.split("."))
    at_top = ", at the top" if len(path) > 1 and "." not in near else ""
    return f"unknown key; did you mean {near}{at_top}?"


def nearest_key(path: Keys, *, of_section: bool = False) -> str | None:
    """Return the known key nearest to an unknown one: of the same name elsewhere, or a like one."""
    leaf, section = str(path[-1])[:100].lower(), f"{path[0]}."
    leaf = OTHER_NAMES.get(leaf, leaf)
    if of_section and len(path) == 1:
        return nearest(leaf, SECTIONS)
    known = {key: key for key in KEYS}
    known |= {key.rpartition(".")[2]: key for key in reversed(KEYS)}
    siblings = [name for name, key in known.items() if key.startswith(section)]
    near = leaf if leaf in known else nearest(leaf, siblings) or nearest(leaf, known, 0.7)
    if near is None and "_" in leaf:  # such as learning_rate, which says what training.lr is
        said = leaf.replace("_", " ")
        return next((key for key in KEYS if said in _description(key)), None)
    return None if near is None else known[near]


def expected(path: Keys) -> str:
    """Say what the value at a known key, or one inside its value, may be."""
    return one_of([word for arm in _arms(path) for word in _words(arm)])


def choices(path: Keys) -> list[str]:
    """Return the words that the value at a known key may be, if it lists some."""
    return [word for arm in _arms(path) for word in _words(arm) if _lists_words(arm)]


def _description(key: str) -> str:
    section, _, name = key.rpartition(".")
    fields = SECTIONS.get(section, Config).model_fields
    return str(fields[name].description).lower()


@cache
def _section_schema(section: type[Section]) -> dict[str, Any]:
    return section.model_json_schema()


def _arms(path: Keys) -> list[dict[str, Any]]:
    """Return what a key may be, by the JSON Schema; of what is inside its value, the whole."""
    section = SECTIONS.get(str(path[0]))
    if section and len(path) == 1:
        return [{"$comment": "a mapping of keys"}]
    schema: dict[str, Any] = _section_schema(section or Config)
    found = schema["properties"][path[1] if section else path[0]]
    return list(found.get("anyOf", [found]))


def _lists_words(arm: dict[str, Any]) -> bool:
    return "enum" in arm or "const" in arm or arm.get("type") in ("boolean", "null")


def _words(arm: dict[str, Any]) -> list[str]:
    kind = arm.get("type")
    if "enum" in arm or "const" in arm:
        return [str(word) for word in arm.get("enum", [arm.get("const")])]
    if "$comment" in arm:
        return [arm["$comment"]]
    if kind in ("integer", "number"):
        return [_range("a whole number" if kind == "integer" else "a number", arm)]
    return {"boolean": ["true", "false"], "null": ["null"]}.get(str(kind), ["text"])


def _range(noun: str, arm: dict[str, Any]) -> str:
    limits = {"exclusiveMinimum": "above", "minimum": "of at least"}
    limits |= {"exclusiveMaximum": "below", "maximum": "at most"}
    words = [f"{limits[limit]} {_number(arm[limit])}" for limit in limits if limit in arm]
    if "minimum" in arm and "maximum" in arm:
        return f"{noun} from {_number(arm['minimum'])} to {_number(arm['maximum'])}"
    return f"{noun} {' and '.join(words)}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
