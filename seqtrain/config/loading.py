"""From a file, a text or a plain mapping to a checked configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seqtrain.config.document import Document, read_yaml
from seqtrain.config.expectation import SECTIONS, expected
from seqtrain.config.formats import resolve_format
from seqtrain.config.overrides import apply_overrides
from seqtrain.config.problems import Place, Problem, raise_if_any, show
from seqtrain.config.schema import Config, Section, TrainingConfig
from seqtrain.config.validation import validate
from seqtrain.errors import ConfigError, reading_fault
from seqtrain.files.nearest import nearest_file
from seqtrain.files.regular import WrongKindError, open_regular
from seqtrain.text import shorten

SIZE_LIMIT = 2**20
"""Largest configuration file, in bytes."""


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a configuration file.

    Args:
        path: a YAML file in UTF-8, of 1 MiB at most.
        overrides: options `section.key=value` that replace values of the file.

    Returns:
        The configuration, defaults filled in.

    Raises:
        ConfigError: if the file can't be read, or with all that is wrong in it and the options.
        RunError: the machine failed to read it.
    """
    return parse_config(_decode(_read(path), str(path)), str(path), overrides)


def parse_config(text: str, name: str = "config", overrides: Sequence[str] = ()) -> Config:
    """Read a configuration from YAML text.

    Args:
        text: the YAML.
        name: what messages call the text, usually its file.
        overrides: options `section.key=value` that replace values of the text.

    Returns:
        The configuration, defaults filled in.

    Raises:
        ConfigError: with all that is wrong in the text and the options.
    """
    shown = shorten(name, 4096)

    def locate(line: int, column: int) -> Place:
        return Place(f"{shown}:{line}:{column}", (0, line, column))

    document = read_yaml(text, locate)
    if () not in document.refused and not isinstance(document.value, dict):
        found = "empty config" if document.value is None else f"found {show(document.value)}"
        sections = ", ".join(SECTIONS)
        fault = f"{found}; expected a mapping of sections ({sections})"
        document.refused[()] = Problem(locate(1, 1), (), fault)
    if () in document.refused:
        raise_if_any([*document.faults, *document.refused.values()])
    apply_overrides(document, overrides)
    return validate(document, locate(1, 1))


def config_from_mapping(mapping: Mapping[str, Any], overrides: Sequence[str] = ()) -> Config:
    """Check a plain mapping as a configuration.

    Args:
        mapping: sections by name, each a mapping of keys (or a section already built).
        overrides: options `section.key=value` that replace values of the mapping.

    Returns:
        The configuration, defaults filled in.

    Raises:
        ConfigError: with all that is wrong in the mapping and the options, by dotted key.
    """
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"config: found {show(mapping)}; expected a mapping of sections")
    document = Document({key: _section(value) for key, value in mapping.items()})
    apply_overrides(document, overrides)
    return validate(document, Place())


def check_device(name: str) -> None:
    """Refuse a device that is none on any machine; torch isn't needed for it.

    Raises:
        ConfigError: as said.
    """
    try:
        TrainingConfig.model_validate({"device": name})
    except ValidationError:
        allowed = expected(("training", "device"))
        raise ConfigError(f"--device: found {show(name)}; expected {allowed}") from None


def _section(value: object) -> object:
    """Copy a section to a plain dict, paths to text."""
    if isinstance(value, Section):
        return value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _plain(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return dict(value) if isinstance(value, Mapping) else value


def _read(path: str | Path) -> bytes:
    """Read a regular file of at most 1 MiB, without waiting on pipes and devices."""
    tried = shorten(os.path.abspath(path), 4096)
    if resolve_format(os.fspath(path), "auto") is not None and os.path.isfile(path):
        raise ConfigError(
            f"{tried}: is a data file by its name; expected a YAML file; write one for it with: "
            f"seqtrain init {shorten(os.fspath(path), 60)}"
        )
    try:
        with os.fdopen(open_regular(path, follow=True), "rb") as file:
            content = file.read(SIZE_LIMIT + 1)
    except WrongKindError as error:
        hint = "; of data there, write one with: seqtrain init" if os.path.isdir(path) else ""
        raise ConfigError(f"{tried}: is {error.found}; expected a YAML file{hint}") from None
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        near = nearest_file(path) if missing else None
        hint = f"; did you mean {near}?" if near else "; expected a YAML file"
        wrong = ConfigError(f"{tried}: {'no such file' if missing else error.strerror}{hint}")
        raise reading_fault(tried, error) or wrong from None
    except ValueError:
        raise ConfigError(f"{tried}: a path can't hold NUL; expected a YAML file") from None
    if len(content) > SIZE_LIMIT:
        raise ConfigError(f"{tried}: larger than 1 MiB; expected a YAML file of a few lines")
    return content


def _decode(content: bytes, name: str) -> str:
    """Decode UTF-8, with or without a byte order mark."""
    shown = shorten(name, 4096)
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ConfigError(f"{shown}: UTF-16 at byte 0; save the file as UTF-8")
    if b"\x00" in content:
        raise ConfigError(f"{shown}: NUL at byte {content.index(0)}; save the file as UTF-8 text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        offset = error.start + 3 * content.startswith(b"\xef\xbb\xbf")
        found = f"byte 0x{content[offset]:02X} at byte {offset}"
        raise ConfigError(f"{shown}: {found} isn't UTF-8; save the file as UTF-8") from None
