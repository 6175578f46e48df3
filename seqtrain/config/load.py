"""Loading of a config from a file, a text or a mapping.

Options of the form `section.key=value`, as `--set` has them on the command line, replace single
values before the checks.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from pydantic import BaseModel

from seqtrain.config.document import Places, Unreadable, brief, read_option, read_yaml
from seqtrain.config.messages import nearest_key
from seqtrain.config.schema import SECTIONS, Config, SingleValues
from seqtrain.errors import ConfigError
from seqtrain.files.reading import open_regular, path_problem
from seqtrain.tables.formats import resolve_format
from seqtrain.text import one_line, shorten

SIZE_LIMIT = 2**20
"""Largest size of a config file, in bytes."""
RUN_CONFIG = "config.yaml"
"""Name of the config file in a run directory."""


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
    values, places = read_yaml(text, shorten(name, 4096))
    if isinstance(values, Unreadable):
        raise ConfigError(one_line(f"{places[()][0]}: {values.why}"))
    if not isinstance(values, dict):
        if values is None:
            found = "empty config"
        else:
            found = f"found {brief(values)}"
        raise ConfigError(
            one_line(
                f"{shorten(name, 4096)}:1:1: {found}; expected a mapping of sections "
                f"({', '.join(SECTIONS)})"
            )
        )
    return _validated(values, places, overrides)


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
    elif not isinstance(config, Config):
        config = config_from_mapping(config, overrides)
    elif overrides:
        config = config_from_mapping(vars(config), overrides)
    if device is None:
        return config
    return config.with_keys(training={"device": device})


def check_options(overrides: Sequence[str]) -> None:
    """Check the values of options `section.key=value` one by one, before there is a config.

    Args:
        overrides: The options.

    Raises:
        ConfigError: If a key is unknown, or a value is wrong. The error names all problems.
    """
    values = {"data": {"train": "train"}}
    places: Places = {}
    for option in overrides:
        _apply_override(values, places, option)
    SingleValues.model_validate(values, context=places)


def _plain(value: object) -> object:
    """Return a value of a mapping as YAML has it.

    Section objects become dicts, tuples and arrays lists, paths texts. NumPy's numbers become
    Python's.
    """
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # of NumPy, which isn't imported here
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _validated(values: dict[str, Any], places: Places, overrides: Sequence[str]) -> Config:
    """Apply the options, then check all values, and return the config.

    The keys of a misspelt section are checked as if its name were right.

    Args:
        values: Values of a config, as nested dicts. They are changed.
        places: Places of the values; empty for values from Python. They are changed.
        overrides: Options `section.key=value`.

    Raises:
        ConfigError: If the values or the options are wrong. The error names all problems.
    """
    for option in overrides:
        _apply_override(values, places, option)
    for name in [name for name in values if name not in SECTIONS]:
        near = nearest_key((name,), Config, is_section=True)
        if near is not None and near not in values and isinstance(values[name], dict):
            values[near] = values[name]
            values[name] = Unreadable(f"unknown key; did you mean {near}?")
            places = {
                (near, *path[1:]) if path[:1] == (name,) != path else path: place
                for path, place in places.items()
            }
    for name in SECTIONS:
        if values.get(name) is None:
            values[name] = {}
    return Config.model_validate(values, context=places)


def _apply_override(values: dict[str, Any], places: Places, option: str) -> None:
    """Set the value that an option names in `values`, and its place in `places`.

    If the option or its value can't be read, the value is set to an `Unreadable`. If the section of
    the key is an `Unreadable`, `values` doesn't change.

    Args:
        values: Values of a config, as nested dicts. They are changed.
        places: Places of the values. They are changed.
        option: Option of the form `section.key=value`, with the value in YAML.
    """
    name, equals, text = option.partition("=")
    *sections, key = name.strip().split(".")
    value: Any = Unreadable("expected the form section.key=value, such as training.lr=0.001")
    if equals:
        value = read_option(text)
    if key.endswith("_separator") and text.strip() == "~":
        mark = quote(f'{name.strip()}="~"')
        value = Unreadable(f"found ~, which is null in YAML; for this mark: --set {mark}")
    here = f"--set {shorten(option, 50)}"
    for depth, section in enumerate(sections, 1):
        if not isinstance(values.get(section), dict | Unreadable):
            values[section] = {}
            places[tuple(sections[:depth])] = here, here
        values = values[section]
        if isinstance(values, Unreadable):
            return
    values[key] = value
    path = (*sections, key)
    for replaced in [known for known in places if known[: len(path)] == path]:
        del places[replaced]
    places[path] = here, here


def _read(path: str | Path) -> str:
    """Return the text of a config file.

    Raises:
        ConfigError: If the file can't be read, is too large, is a data file, or isn't UTF-8.
        RunError: If the machine failed to read the file.
    """
    name = os.fspath(path)
    shown = shorten(name, 4096)
    try:
        if resolve_format(name, "auto") is not None and os.path.isfile(path):
            advice = f"write one for it with: seqtrain init {shorten(name, 60)}"
            tried = shorten(os.path.abspath(path), 4096)
            raise ConfigError(
                f"{tried}: has the name of a data file; expected a YAML file; {advice}"
            )
        with open(path, "rb", opener=open_regular) as file:
            content = file.read(SIZE_LIMIT + 1)
    except (OSError, ValueError) as error:
        advice = ""
        config_of_run = os.path.join(name, RUN_CONFIG)
        if os.path.isfile(config_of_run):
            advice = (
                f"go on with this run: seqtrain fit {quote(config_of_run)} --resume --run-dir "
                f"{quote(name)}"
            )
        elif os.path.isdir(path):
            advice = "write a config for data there with: seqtrain init"
        raise path_problem(path, error, ConfigError, advice) from None
    if len(content) > SIZE_LIMIT:
        raise ConfigError(f"{shown}: larger than 1 MiB; expected a YAML file of a few lines")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{shown}: byte 0x{content[error.start]:02X} at byte {error.start} isn't UTF-8; save "
            "the file as UTF-8"
        ) from None
