"""What a key may hold, in words, and the valid name nearest to a wrong one. Read off the schema."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from seqtrain.config.problems import Keys, dotted
from seqtrain.config.schema import Config, Section
from seqtrain.text import nearest, one_of, shorten

SECTIONS: dict[str, type[Section]] = {
    name: field.annotation
    for name, field in Config.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}
"""The sections of a configuration, by name."""

KNOWN_KEYS: tuple[Keys, ...] = (
    *((name,) for name in Config.model_fields),
    *((name, key) for name, section in SECTIONS.items() for key in section.model_fields),
)
"""Every key of a configuration, sections included."""

RETIRED_KEYS: dict[tuple[str, str], tuple[object, str]] = {
    ("data", "readers"): ("auto", "one process reads all files; leave the key out"),
    ("training", "shards"): (
        None,
        "processes sum their gradients, equal to rounding at any number; leave the key out "
        "(seqtrain fit --nproc-per-node N)",
    ),
}
"""Keys of earlier versions: their default then, and what to use instead.

A key that is no longer in the schema is refused with this line. At its old default, as in the
config.yaml of an earlier run, it is left out without a word.
"""

RETIRED_VALUES: dict[Keys, dict[str, str]] = {
    ("model", "engine"): {"fused": "use auto or torch"},
}
"""Values of earlier versions that the schema no longer has, and what to use instead."""

FOREIGN_NAMES: dict[Keys, tuple[str, ...]] = {
    ("data", "validation"): ("val", "dev"),
    ("data", "delimiter"): ("sep", "separator"),
    ("data", "sequence"): ("text", "text_column", "input"),
    ("data", "label"): ("label_column", "target", "y"),
    ("data", "min_count"): ("min_freq",),
    ("data", "overlong"): ("truncate", "truncation"),
    ("model", "embedding_dim"): ("embedding_size", "emb_size"),
    ("model", "rnn"): ("cell", "cell_type", "rnn_type"),
    ("model", "hidden_size"): ("units",),
    ("training", "lr"): ("learning_rate",),
    ("training", "weight_decay"): ("l2", "wd"),
    ("training", "max_grad_norm"): ("clip", "clip_norm", "grad_clip", "gradient_clip_val"),
    ("training", "patience"): ("early_stopping",),
    ("training", "monitor"): ("metric",),
    ("training", "precision"): ("amp", "bf16", "dtype", "fp16"),
    ("training", "checkpoint_every"): ("save_every", "save_steps"),
    ("training", "device"): ("cuda", "gpu"),
}
"""What other programs call a key, where the spelling alone doesn't lead to it."""


def expected(path: Keys) -> str:
    """Say what the value at a key may be.

    Args:
        path: a known key, or one inside its value.

    Returns:
        Words such as `a number above 0 and at most 1000`.
    """
    words: list[str] = []
    for arm in _arms(_schema(path)):
        words += _words(arm)
    return one_of(words)


def hint(path: Keys, value: object, written: str | None) -> str:
    """Say what a wrong value may have been meant to be.

    Args:
        path: a known key, or one inside its value.
        value: what was found.
        written: its spelling, if it was a plain scalar of YAML.

    Returns:
        The end of a message, or nothing.
    """
    arms = _arms(_schema(path))
    if isinstance(value, str) and value in RETIRED_VALUES.get(path, {}):
        return f"; {value} was removed: {RETIRED_VALUES[path][value]}"
    if isinstance(value, str):
        choices = [str(word) for arm in arms for word in _choices(arm)]
        near = nearest(value.lower(), choices)
        return f"; did you mean '{near}'?" if near else ""
    if written is None or not isinstance(value, int | float):
        return ""
    numeric = any(arm.get("type") in ("integer", "number") for arm in arms)
    if numeric or not any(re.search(arm.get("pattern", "(?!)"), written) for arm in arms):
        return ""
    return f'; quote it ("{shorten(written, 40)}") if text is meant'


def unknown_key(path: Keys) -> str:
    """Say that a key is unknown, and which known one is nearest.

    Args:
        path: the section and key, or the key at the top.

    Returns:
        The text of a problem.
    """
    for retired, (_, instead) in RETIRED_KEYS.items():
        if path == retired:
            return f"this key was removed: {instead}"
    near = nearest_key(path)
    if near and len(near) == 1 < len(path):
        return f"unknown key; {near[0]} stands at the top, in no section"
    if near and dotted(near) == path[-1]:
        return f"unknown key; write {near[-1]} under {near[0]}"
    if near:
        return f"unknown key; did you mean {dotted(near)}?"
    section = SECTIONS.get(str(path[0])) if len(path) > 1 else Config
    return f"unknown key; expected {one_of(list((section or Config).model_fields))}"


def nearest_key(path: Keys) -> Keys | None:
    """Return the known key nearest to an unknown one: same name elsewhere, then alike ones.

    Args:
        path: the section and key, or the key at the top.
    """
    leaf = str(path[-1])[:100].lower()
    siblings = [known for known in KNOWN_KEYS if known[:-1] == path[:-1]]
    by_name = {dotted(k): k for k in KNOWN_KEYS if len(path) == 1 or dotted(k) not in SECTIONS}
    for known in KNOWN_KEYS:
        if leaf in (known[-1], dotted(known)):
            return known
    for known, names in FOREIGN_NAMES.items():
        if leaf in names:
            return known
    return (
        _closest(leaf, ((str(known[-1]), known) for known in siblings), 0.6)
        or _closest(leaf, by_name.items(), 0.8)
        or _closest(leaf, ((str(known[-1]), known) for known in reversed(KNOWN_KEYS)), 0.7)
    )


def _closest(name: str, named: Iterable[tuple[str, Keys]], cutoff: float) -> Keys | None:
    table = dict(named)
    near = nearest(name, table, cutoff)
    return None if near is None else table[near]


@cache
def _section_schema(name: str) -> dict[str, Any]:
    return SECTIONS[name].model_json_schema()


def _schema(path: Keys) -> dict[str, Any]:
    """Return the JSON Schema of the value at a key."""
    if path[0] in SECTIONS:
        schema, inside = _section_schema(str(path[0])), path[1:]
        if not inside:
            return {"$comment": "a mapping of keys"}
    else:
        schema, inside = Config.model_json_schema(), path
    schema = schema["properties"][inside[0]]
    for step in inside[1:]:
        part = "items" if isinstance(step, int) else "additionalProperties"
        schema = next(arm[part] for arm in _arms(schema) if part in arm)
    return schema


def _arms(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return list(schema.get("anyOf", [schema]))


def _choices(arm: dict[str, Any]) -> list[Any]:
    """Return the words an arm of a schema allows, or none."""
    return list(arm["enum"]) if "enum" in arm else [arm["const"]] if "const" in arm else []


def _words(arm: dict[str, Any]) -> list[str]:
    """Say what one arm of a schema allows."""
    if _choices(arm):
        return [str(choice) for choice in _choices(arm)]
    if "$comment" in arm:
        return [arm["$comment"]]
    if arm["type"] == "boolean":
        return ["true", "false"]
    if arm["type"] in ("integer", "number"):
        return [_range("a whole number" if arm["type"] == "integer" else "a number", arm)]
    return [{"null": "null"}.get(arm["type"], "text")]


def _range(noun: str, arm: dict[str, Any]) -> str:
    """Say a range of numbers: `a number from 0 to 1`."""
    if "minimum" in arm and "maximum" in arm:
        return f"{noun} from {_number(arm['minimum'])} to {_number(arm['maximum'])}"
    limits = (
        ("exclusiveMinimum", "above"),
        ("minimum", "at least"),
        ("exclusiveMaximum", "below"),
        ("maximum", "at most"),
    )
    parts = [f"{word} {_number(arm[limit])}" for limit, word in limits if limit in arm]
    joined = " and ".join(parts)
    return f"{noun} of {joined}" if joined.startswith("at") else f"{noun} {joined}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
