"""From a file, a text or a mapping, with --set options, to a checked config."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from seqtrain.config.document import Keys, Unreadable, brief, read_yaml
from seqtrain.config.formats import resolve_format
from seqtrain.config.problems import RETIRED_KEYS, expected, unknown_key, wrong_value
from seqtrain.config.schema import BROKEN_RULE, SECTIONS, Config, Section
from seqtrain.errors import ConfigError
from seqtrain.files.reading import open_regular, path_problem
from seqtrain.text import one_line, shorten

SIZE_LIMIT = 2**20
"""Largest config file, in bytes."""
CONFIG_OF_A_RUN = "config.yaml"
SHOWN_PROBLEMS = 50
"""Problems of a config that are shown; the rest is counted."""
BLOCK_MARKS = ("|", ">")
"""What begins a block in YAML; alone in an option it is that character, such as a separator."""
FORM = "expected the form section.key=value, such as training.lr=0.001"
_UNKNOWN = ("extra_forbidden", "invalid_key")


class Location(NamedTuple):
    """The order of a location, the file's before those of options; and how it is shown."""

    order: tuple[int, ...] = ()
    where: str = ""


Locations: TypeAlias = dict[Keys, tuple[Location, Location]]
"""Where each key and its value stand."""


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a config file, YAML in UTF-8 of 1 MiB at most.

    `overrides` are options `section.key=value` that replace values of the file.

    Raises:
        ConfigError: the file can't be read, or all that is wrong in it and the options.
        RunError: the machine failed to read it.
    """
    return parse_config(_read(path), str(path), overrides)


def parse_config(text: str, name: str = "config", overrides: Sequence[str] = ()) -> Config:
    """Read a config from YAML text; `name` is what messages call the text, usually its file.

    Raises:
        ConfigError: all that is wrong in the text and the options.
    """
    shown = shorten(name, 4096)

    def location(mark: Any) -> Location:
        line, column = mark.line + 1, mark.column + 1
        return Location((0, line, column), f"{shown}:{line}:{column}")

    values, marks = read_yaml(text)
    locations = {path: (location(key), location(value)) for path, (key, value) in marks.items()}
    if isinstance(values, Unreadable):
        raise ConfigError(one_line(f"{locations[()][0].where}: {values.why}"))
    if not isinstance(values, dict):
        found = "empty config" if values is None else f"found {brief(values)}"
        wanted = f"{found}; expected a mapping of sections ({', '.join(SECTIONS)})"
        raise ConfigError(one_line(f"{shown}:1:1: {wanted}"))
    return _checked(values, locations, overrides)


def config_from_mapping(mapping: Mapping[str, Any], overrides: Sequence[str] = ()) -> Config:
    """Check a mapping, sections by name, each a mapping of keys or a section object, as a config.

    Raises:
        ConfigError: all that is wrong in the mapping and the options, by dotted key.
    """
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"config: found {brief(mapping)}; expected a mapping of sections")
    return _checked({key: _plain(value) for key, value in mapping.items()}, {}, overrides)


def resolved_config(
    config: Config | Mapping[str, Any] | str | Path,
    device: str | None = None,
    overrides: Sequence[str] = (),
) -> Config:
    """Return a config from what a caller gave; a device takes the place of training.device."""
    if isinstance(config, str | Path):
        config = load_config(config, overrides)
    elif overrides or not isinstance(config, Config):
        sections = vars(config) if isinstance(config, Config) else config
        config = config_from_mapping(sections, overrides)
    return config if device is None else config.with_keys(training={"device": device})


def _plain(value: object) -> object:
    if isinstance(value, Section):
        return value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _apply_override(values: dict[str, Any], locations: Locations, option: str, number: int) -> None:
    at = Location((1, number), f"--set {shorten(option, 50)}")
    name, equals, text = option.partition("=")
    path = tuple(name.strip().split("."))
    for known in [known for known in locations if known[: len(path)] == path]:
        del locations[known]
    alone = f'"{text.strip()}"' if text.strip() in BLOCK_MARKS else text
    value, marks = read_yaml(alone) if equals else (Unreadable(FORM), {})
    locations |= {(*path, *inside): (at, at) for inside in ((), *marks)}
    for depth, step in enumerate(path[:-1], 1):
        if isinstance(values.get(step), Unreadable):
            return
        if not isinstance(values.get(step), dict):
            values[step] = {}
            locations[path[:depth]] = at, at
        values = values[step]
    values[path[-1]] = value


def _checked(values: dict[str, Any], locations: Locations, overrides: Sequence[str]) -> Config:
    for number, option in enumerate(overrides):
        _apply_override(values, locations, option, number)
    for name in SECTIONS:
        values[name] = {} if values.get(name) is None else values[name]
    for retired, (default, _) in RETIRED_KEYS.items():
        name, key = retired.split(".")
        given = values[name] if isinstance(values[name], dict) else {}
        if given.get(key, ...) == default:
            del given[key]
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        details = _by_path(error, values).items()
    found = [(_location(locations, path, detail), path, detail) for path, detail in details]
    found.sort(key=lambda problem: problem[0].order)
    lines = [_line(*problem) for problem in found[:SHOWN_PROBLEMS]]
    if len(found) > SHOWN_PROBLEMS:
        lines.append(f"{len(found) - SHOWN_PROBLEMS} more problems not shown")
    raise ConfigError(*lines)


def _by_path(error: ValidationError, values: dict[str, Any]) -> dict[Keys, ErrorDetails]:
    """Return one error for each wrong value, the innermost ones; a broken rule before others."""
    details = error.errors(include_url=False, include_context=False)
    details.sort(key=lambda detail: detail["type"] == BROKEN_RULE)
    errors = {_path(detail, values): detail for detail in details}
    outer = {path[:end] for path in errors for end in range(len(path))}
    return {path: detail for path, detail in errors.items() if path not in outer}


def _path(detail: ErrorDetails, values: Any) -> Keys:
    """Follow the location of an error through the values, past the names of the types tried."""
    if detail["type"] in (*_UNKNOWN, "missing"):
        return detail["loc"]
    path: list[str | int] = []
    for step in detail["loc"]:
        in_list = isinstance(values, list) and isinstance(step, int)
        if in_list or (isinstance(values, dict) and step in values):
            path.append(step)
            values = values[step]
    # A rule may complain about a key that was not given.
    return detail["loc"] if detail["type"] == BROKEN_RULE and len(path) < 2 else tuple(path)


def _location(locations: Locations, path: Keys, detail: ErrorDetails) -> Location:
    """Return where an error stands: at its key or value, or else at the nearest key above it."""
    if path in locations:
        return locations[path][detail["type"] not in _UNKNOWN]
    above = (path[:end] for end in range(len(path) - 1, -1, -1))
    return next((locations[key][0] for key in above if key in locations), Location())


def _line(location: Location, path: Keys, detail: ErrorDetails) -> str:
    """Return a problem as a line; an option that begins with the key stands for it."""
    where, key = location.where, ".".join(shorten(str(step), 40) for step in path)
    text = _text(path, detail)
    if not where.startswith(f"--set {key}="):
        text = f"{key}: {text}"
    return one_line(f"{where}: {text}" if where else text)


def _text(path: Keys, detail: ErrorDetails) -> str:
    value = detail["input"]
    if detail["type"] in _UNKNOWN:
        return unknown_key(path, of_section=isinstance(value, dict))
    if isinstance(value, Unreadable):
        return value.why
    if detail["type"] == "missing":
        return f"missing; expected {expected(path)}"
    if detail["type"] == BROKEN_RULE:
        return detail["msg"]
    if detail["loc"][-1] == "[key]":
        wanted = expected(path[:-1]) if isinstance(path[-1], str) else "text as key"
        return f"found key {brief(path[-1])}; expected {wanted}"
    return wrong_value(path, value)


def _read(path: str | Path) -> str:
    tried = shorten(os.path.abspath(path), 4096)
    try:
        if resolve_format(os.fspath(path), "auto") is not None and os.path.isfile(path):
            init = f"write one for it with: seqtrain init {shorten(os.fspath(path), 60)}"
            raise ConfigError(f"{tried}: is a data file by its name; expected a YAML file; {init}")
        with open(path, "rb", opener=open_regular) as file:
            content = file.read(SIZE_LIMIT + 1)
    except (OSError, ValueError) as error:
        inside = os.path.join(path, CONFIG_OF_A_RUN)
        init = "write a config for data there with: seqtrain init"
        advice = init if os.path.isdir(path) else ""
        if os.path.isfile(inside):
            again = f"seqtrain fit {quote(inside)} --resume --run-dir {quote(os.fspath(path))}"
            advice = f"go on with this run: {again}"
        raise path_problem(path, error, ConfigError, advice) from None
    if len(content) > SIZE_LIMIT:
        raise ConfigError(f"{tried}: larger than 1 MiB; expected a YAML file of a few lines")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        at = error.start
        found = f"byte 0x{content[at]:02X} at byte {at} isn't UTF-8"
        shown = shorten(os.fspath(path), 4096)
        raise ConfigError(f"{shown}: {found}; save the file as UTF-8") from None
