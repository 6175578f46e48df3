"""Loading of a config from a file, a text or a mapping, and its checks.

Options of the form `section.key=value`, as `--set` has them on the command line, replace single
values before the checks.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from seqtrain.config.document import Unreadable, brief, read_yaml
from seqtrain.config.problems import (
    Location,
    Locations,
    Origin,
    config_error,
    nearest_key,
)
from seqtrain.config.schema import SECTIONS, Config
from seqtrain.config.value_types import Section
from seqtrain.errors import ConfigError
from seqtrain.files.reading import open_regular, path_problem
from seqtrain.tables.formats import resolve_format
from seqtrain.text import one_line, shorten

SIZE_LIMIT = 2**20
"""Largest size of a config file, in bytes."""
RUN_CONFIG = "config.yaml"
"""Name of the config file in a run directory."""
BLOCK_MARKS = ("|", ">")
"""Characters that begin a block of text in YAML. If an option's whole value is one, it is a text.

An example is `data.label_separator=|`.
"""
OPTION_FORM = "expected the form section.key=value, such as training.lr=0.001"


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a config from a YAML file in UTF-8 of at most 1 MiB.

    Args:
        path: Path of the file.
        overrides: Options `section.key=value` that replace values of the file.

    Raises:
        ConfigError: If the file can't be read, or if its values or the options are wrong. The error
            names all problems.
        RunError: If the machine failed to read the file, for example because of a broken disk.
    """
    return parse_config(_read(path), str(path), overrides)


def parse_config(text: str, name: str = "config", overrides: Sequence[str] = ()) -> Config:
    """Read a config from a text in YAML.

    Args:
        text: The text.
        name: Name of the text in messages, usually the path of its file.
        overrides: Options `section.key=value` that replace values of the text.

    Raises:
        ConfigError: If the text or the options are wrong. The error names all problems.
    """
    shown = shorten(name, 4096)

    def location(mark: Any) -> Location:
        line, column = mark.line + 1, mark.column + 1
        return Location((0, line, column), f"{shown}:{line}:{column}")

    values, marks = read_yaml(text)
    locations = {path: (location(key), location(value)) for path, (key, value) in marks.items()}
    if isinstance(values, Unreadable):
        raise ConfigError(one_line(f"{locations[()][0].text}: {values.why}"))
    if not isinstance(values, dict):
        found = "empty config" if values is None else f"found {brief(values)}"
        expected = f"expected a mapping of sections ({', '.join(SECTIONS)})"
        raise ConfigError(one_line(f"{shown}:1:1: {found}; {expected}"))
    return _validated(values, locations, overrides)


def config_from_mapping(mapping: Mapping[str, Any], overrides: Sequence[str] = ()) -> Config:
    """Return the config with the values of a mapping.

    Args:
        mapping: Maps the name of each section to a mapping of its keys, or to a section object such
            as a DataConfig. It may also have the key "seed". It doesn't change.
        overrides: Options `section.key=value` that replace values of the mapping.

    Raises:
        ConfigError: If the mapping or the options are wrong. The error names all problems.
    """
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"config: found {brief(mapping)}; expected a mapping of sections")
    return _validated({key: _plain(value) for key, value in mapping.items()}, {}, overrides)


def resolved_config(
    config: Config | Mapping[str, Any] | str | os.PathLike[str],
    device: str | None = None,
    overrides: Sequence[str] = (),
) -> Config:
    """Return the Config for a Config, a mapping or a file, with replaced values.

    Args:
        config: A Config, a mapping of its sections, or the path of a YAML file.
        device: Value in place of training.device, or None to keep it.
        overrides: Options `section.key=value` that replace values of the config.

    Raises:
        ConfigError: If the config or the options are wrong. The error names all problems.
        RunError: If the machine failed to read the file.
    """
    if isinstance(config, str | os.PathLike):
        config = load_config(Path(config), overrides)
    elif overrides or not isinstance(config, Config):
        sections = vars(config) if isinstance(config, Config) else config
        config = config_from_mapping(sections, overrides)
    return config if device is None else config.with_keys(training={"device": device})


def _plain(value: object) -> object:
    """Return a value of a mapping as YAML has it.

    Section objects become dicts, tuples and arrays lists, paths texts. NumPy's numbers become
    Python's.
    """
    if isinstance(value, Section):
        return value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # of NumPy, which isn't imported here
        return _plain(value.tolist())
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _apply_override(values: dict[str, Any], locations: Locations, option: str, number: int) -> None:
    """Set the value that an option names in `values`, and its location in `locations`.

    If the option or its value can't be read, the value is set to an `Unreadable`. If the section of
    the key is an `Unreadable`, `values` doesn't change.

    Args:
        values: Values of a config, as nested dicts. They are changed.
        locations: Locations of the values. They are changed.
        option: Option of the form `section.key=value`, with the value in YAML.
        number: Index of the option among all options, by which its problems are sorted.
    """
    here = Location((1, number), f"--set {shorten(option, 50)}")
    name, equals, text = option.partition("=")
    path = tuple(name.strip().split("."))
    for replaced in [known for known in locations if known[: len(path)] == path]:
        del locations[replaced]
    text = f'"{text.strip()}"' if text.strip() in BLOCK_MARKS else text
    value, marks = read_yaml(text) if equals else (Unreadable(OPTION_FORM), {})
    locations |= {(*path, *inside): (here, here) for inside in ((), *marks)}
    for depth, step in enumerate(path[:-1], 1):
        if isinstance(values.get(step), Unreadable):
            return
        if not isinstance(values.get(step), dict):
            values[step] = {}
            locations[path[:depth]] = here, here
        values = values[step]
    values[path[-1]] = value


def _validated(values: dict[str, Any], locations: Locations, overrides: Sequence[str]) -> Config:
    """Apply the options, then check all values, and return the config.

    The keys of a misspelt section are checked as if its name were right.

    Args:
        values: Values of a config, as nested dicts. They are changed.
        locations: Locations of the values; empty for values from Python.
        overrides: Options `section.key=value`.

    Raises:
        ConfigError: If the values or the options are wrong. The error names all problems.
    """
    for number, option in enumerate(overrides):
        _apply_override(values, locations, option, number)
    origin = Origin(locations, _misspelt_sections(values))
    for right, found in origin.misspelt.items():
        values[right] = values.pop(found)
    for name in SECTIONS:
        values[name] = {} if values.get(name) is None else values[name]
    config = Config.model_validate(values, context=origin)
    if origin.misspelt:
        raise config_error(None, values, origin)
    return config


def _misspelt_sections(values: dict[str, Any]) -> dict[str, str]:
    """Return a dict that maps the correct name of each misspelt section to the misspelt name.

    A dict under an unknown name is a misspelt section if a section that `values` lacks has a
    similar name.
    """
    found: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, dict) and name not in SECTIONS:
            near = nearest_key((name,), is_section=True)
            if near is not None and near not in values:
                found.setdefault(near, name)
    return found


def _read(path: str | Path) -> str:
    """Return the text of a config file.

    Raises:
        ConfigError: If the file can't be read, is too large, is a data file, or isn't UTF-8.
        RunError: If the machine failed to read the file.
    """
    tried = shorten(os.path.abspath(path), 4096)
    try:
        if resolve_format(os.fspath(path), "auto") is not None and os.path.isfile(path):
            init = f"write one for it with: seqtrain init {shorten(os.fspath(path), 60)}"
            raise ConfigError(f"{tried}: has the name of a data file; expected a YAML file; {init}")
        with open(path, "rb", opener=open_regular) as file:
            content = file.read(SIZE_LIMIT + 1)
    except (OSError, ValueError) as error:
        inside = os.path.join(path, RUN_CONFIG)
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
