"""Options of the form `section.key=value` that replace values of a configuration."""

from __future__ import annotations

from collections.abc import Sequence

from seqtrain.config.document import Document, Entry, Locate, read_yaml
from seqtrain.config.problems import Keys, Place, Problem
from seqtrain.text import shorten


def apply_overrides(document: Document, overrides: Sequence[str]) -> None:
    """Replace values of a document in place, each by an option; the last one wins.

    Args:
        document: what to change; its value is a dict.
        overrides: options `section.key=value`, the value in YAML, such as `training.lr=3e-4`.
    """
    for number, option in enumerate(overrides):
        place = Place(f"--set {shorten(option, 50)}", (1, number))
        name, equals, text = option.partition("=")
        path: Keys = tuple(name.strip().split("."))
        if not equals or not all(path):
            fault = "expected the form section.key=value, such as training.lr=0.001"
            document.faults.append(Problem(place, (), fault))
            continue
        read = read_yaml(text, _locate_at(place), path)
        document.forget(path)
        document.faults += read.faults
        document.refused |= read.refused
        document.entries |= {path: Entry(place, place, None), **read.entries}
        _put(document, path, read.value, place)


def _locate_at(place: Place) -> Locate:
    """Place whatever an option holds at the option itself."""
    return lambda line, column: place


def _put(document: Document, path: Keys, value: object, place: Place) -> None:
    """Set a value by its keys; what stands on the way and is no mapping is replaced."""
    here = document.value
    for depth, step in enumerate(path[:-1], 1):
        if not isinstance(here.get(step), dict):
            here[step] = {}
            document.entries[path[:depth]] = Entry(place, place, None)
        here = here[step]
    here[path[-1]] = value
