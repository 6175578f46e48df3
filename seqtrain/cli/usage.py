"""What is wrong with a command line, in one line, with the nearest valid name."""

from __future__ import annotations

import re
from typing import Any

import typer

from seqtrain.text import listed, nearest

UsageError: type[typer.BadParameter] = typer.BadParameter.__bases__[0]
"""Typer's own base of usage errors: click's, or its copy of click's, by version."""


MEANT = {
    "train": "fit",
    "learn": "fit",
    "run": "fit",
    "evaluate": "eval",
    "test": "eval",
    "score": "eval",
    "infer": "predict",
    "classify": "predict",
    "benchmark": "compare",
    "validate": "check",
}
"""Commands by the names that other programs give them."""


def usage_problem(error: typer.BadParameter) -> str:
    """Say what is wrong with a command line.

    Args:
        error: a UsageError.

    Returns:
        One line: what was found, the nearest valid name or all valid ones, and where help stands.
    """
    context: Any = error.ctx
    text = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    text = re.sub(r"Input should be greater than or equal to (\S+)", r"expected \1 or more", text)
    text = re.sub(r"Input should be less than or equal to (\S+)", r"expected \1 or less", text)
    option = getattr(error, "option_name", None)
    verb = re.match("No such command '(.*?)'", text)
    if context is None:
        return f"{text}; see: seqtrain --help"
    if option and text.startswith("No such option"):
        text = f"no option {option}; {_instead(option, context)}"
    elif verb:
        near = MEANT.get(verb[1].lower()) or nearest(verb[1], context.command.commands)
        hint = f"did you mean {near}?" if near else ""
        text = f"no command {verb[1]}; {hint or 'expected ' + ', '.join(context.command.commands)}"
    return f"{text}; see: {context.command_path} --help"


def _instead(option: str, context: Any) -> str:
    """Name the option that may have been meant: of the verb, of the program, or a config's key."""
    own, program = _names(context), _names(context.find_root())
    near = nearest(option, own)
    name = option.lstrip("-").replace("-", "_")
    key = _nearest_key(name) if "--set" in own else None
    if near and not (key or "").endswith(name):
        return f"did you mean {near}?"
    if option in program:
        return f"it stands before the verb: seqtrain {option} {context.info_name} …"
    if key:
        return f"did you mean --set {key}=…?"
    return f"expected {listed(own, 8)}"


def _names(context: Any) -> list[str]:
    """Return the long options of a command."""
    return [
        name
        for parameter in context.command.params
        for name in parameter.opts
        if name.startswith("--")
    ] + ["--help"]


def _nearest_key(name: str) -> str | None:
    """Return the key of a config that an option is named like: epochs, learning_rate."""
    from seqtrain.config.problems import nearest_key
    from seqtrain.config.schema import SECTIONS

    near = nearest_key((name,))
    return None if near in SECTIONS else near
