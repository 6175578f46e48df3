"""Saved parts of a model: frozen dataclasses as JSON values, and back.

A part that comes from a file is validated by pydantic: strict types, no unknown keys. An exported
script reads its own folder without pydantic.
"""

from __future__ import annotations

import json
import types
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

SavedValue = TypeVar("SavedValue")


class Saved:
    """Base of saved dataclasses. A field whose metadata says ``saved=False`` isn't saved."""

    __pydantic_config__: ClassVar[Any] = {
        "extra": "forbid",
        "strict": True,
        "allow_inf_nan": False,
        "arbitrary_types_allowed": True,
    }


def saved_values(part: Any) -> Any:
    """Return a saved part as JSON values."""
    if is_dataclass(part):
        own = [each for each in fields(part) if each.metadata.get("saved", True)]
        return {each.name: saved_values(getattr(part, each.name)) for each in own}
    if isinstance(part, list | tuple):
        return [saved_values(each) for each in part]
    if isinstance(part, dict):
        return {name: saved_values(each) for name, each in part.items()}
    return part


def validated(kind: type[SavedValue], values: Any) -> SavedValue:
    """Return a saved part from JSON values, which may come from anyone.

    Raises:
        ValueError: If a value is missing, unknown, of a wrong type, or out of range. The message is
            one line with the key.
    """
    from pydantic import ValidationError

    from seqtrain.files.saved import invalid

    try:
        # As JSON, a list can be a tuple, although the types are strict.
        hashable: Any = kind
        found: SavedValue = _adapter(hashable).validate_json(json.dumps(values))
    except ValidationError as error:
        raise ValueError(invalid(error)) from None
    return found


@lru_cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def rebuilt(kind: Any, values: Any) -> Any:
    """Return a saved part from JSON values of the program itself, without checks of types."""
    if is_dataclass(kind):
        make: Any = kind
        hints = get_type_hints(make)
        return make(**{name: rebuilt(hints[name], each) for name, each in values.items()})
    if get_origin(kind) in (Union, types.UnionType):
        return _rebuilt_union(get_args(kind), values)
    if get_origin(kind) is tuple and isinstance(values, list):
        return tuple(rebuilt(get_args(kind)[0], each) for each in values)
    return values


def _rebuilt_union(options: tuple[Any, ...], values: Any) -> Any:
    if isinstance(values, dict):
        for option in filter(is_dataclass, options):
            if values.keys() <= {each.name for each in fields(option)}:
                return rebuilt(option, values)
    if isinstance(values, list):
        for option in options:
            if get_origin(option) is tuple:
                return rebuilt(option, values)
    return values
