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
FOREIGN_NAMES = {
    "data.validation": ("val", "dev"),
    "data.delimiter": ("sep", "separator"),
    "data.sequence": ("text", "text_column", "input"),
    "data.label": ("label_column", "target", "y"),
    "data.min_count": ("min_freq",),
    "data.overlong": ("truncate", "truncation"),
    "model.embedding_dim": ("embedding_size", "emb_size"),
    "model.rnn": ("cell", "cell_type", "rnn_type"),
    "model.hidden_size": ("units",),
    "training.lr": ("learning_rate",),
    "training.weight_decay": ("l2", "wd"),
    "training.max_grad_norm": ("clip", "clip_norm", "grad_clip", "gradient_clip_val"),
    "training.patience": ("early_stopping",),
    "training.monitor": ("metric",),
    "training.precision": ("amp", "bf16", "dtype", "fp16"),
    "training.checkpoint_every": ("save_every", "save_steps"),
    "training.device": ("cuda", "gpu"),
}
"""What other programs call a key, where the spelling doesn't lead to it."""


def wrong_value(path: Keys, value: object) -> str:
    """Say what was found at a key, what is allowed, and what may have been meant."""
    hint = ""
    if isinstance(value, str):
        near = nearest(value.lower(), choices(path))
        hint = f"; did you mean {near}?" if near else ""
        instead = RETIRED_VALUES.get(f"{'.'.join(map(str, path))}: {value}")
        hint = f"; {value} was removed: {instead}" if instead else hint
    elif isinstance(value, int | float) and any("pattern" in arm for arm in _arms(path)):
        number = any(arm.get("type") in ("integer", "number") for arm in _arms(path))
        hint = "" if number else f'; quote it ("{brief(value)}") if text is meant'
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
    if len(path) > 1 and "." not in near:
        return f"unknown key; {near} stands at the top, in no section"
    if near == path[-1]:
        return "unknown key; write {1} under {0}".format(*near.split("."))
    return f"unknown key; did you mean {near}?"


def nearest_key(path: Keys, *, of_section: bool = False) -> str | None:
    """Return the known key nearest to an unknown one: of the same name elsewhere, or a like one."""
    leaf = str(path[-1])[:100].lower()
    if of_section and len(path) == 1:
        return nearest(leaf, SECTIONS)
    known = {name: key for key, names in FOREIGN_NAMES.items() for name in names}
    for key in reversed(KEYS):
        known |= {key: key} if key in SECTIONS else {key: key, key.rpartition(".")[2]: key}
    siblings = [x for x, key in known.items() if key.startswith(f"{path[0]}.") and "." not in x]
    near = leaf if leaf in known else nearest(leaf, siblings) if len(path) > 1 else None
    near = near or nearest(leaf, known, 0.6 if len(path) == 1 else 0.7)
    return None if near is None else known[near]


def expected(path: Keys) -> str:
    """Say what the value at a known key, or one inside its value, may be."""
    return one_of([word for arm in _arms(path) for word in _words(arm)])


def choices(path: Keys) -> list[str]:
    """Return the words that the value at a known key may be, if it lists some."""
    return [word for arm in _arms(path) for word in _words(arm) if _lists_words(arm)]


@cache
def _section_schema(section: type[Section]) -> dict[str, Any]:
    return section.model_json_schema()


def _arms(path: Keys) -> list[dict[str, Any]]:
    section = SECTIONS.get(str(path[0]))
    if section and len(path) == 1:
        return [{"$comment": "a mapping of keys"}]
    key, *inside = path[1:] if section else path
    schema: dict[str, Any] = _section_schema(section or Config)["properties"][key]
    for step in inside:
        arms = schema.get("anyOf", [schema])
        schema = next(part for arm in arms for part in _parts_of(arm, isinstance(step, int)))
    return list(schema.get("anyOf", [schema]))


def _parts_of(arm: dict[str, Any], is_list: bool) -> list[dict[str, Any]]:
    """Return what a list's items may be, or a mapping's values."""
    if is_list:
        return [arm["items"]] if "items" in arm else []
    values = [arm["additionalProperties"]] if "additionalProperties" in arm else []
    return values + list(arm.get("patternProperties", {}).values())


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
