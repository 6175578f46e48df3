"""What is wrong with a command line, in one line, with the nearest valid name."""

from __future__ import annotations

import re
from typing import Any

import typer

from seqtrain.text import listed, nearest

UsageError: type[typer.BadParameter] = typer.BadParameter.__bases__[0]
"""Typer's own base of usage errors: click's, or its copy of click's, by version."""
COMMANDS_ELSEWHERE = {
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
OPTIONS_ELSEWHERE = {"model": "run", "checkpoint": "run", "file": "data", "out": "output"}
"""Options by the names that other programs give them."""


def usage_problem(error: typer.BadParameter, program: Any, called: str) -> str:
    """Say what is wrong with a command line.

    Args:
        error: a UsageError.
        program: of which the command is one.
        called: the program with the name of the command, if one was called.

    Returns:
        One line: what was found, the nearest valid name or all valid ones, and where help stands.
    """
    context: Any = error.ctx
    text = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    text = re.sub(r"Input should be greater than or equal to (\S+)", r"expected \1 or more", text)
    text = re.sub(r"Input should be less than or equal to (\S+)", r"expected \1 or less", text)
    if context is None:
        return f"{text}; see: {called} --help"
    commands = program.list_commands(context)
    option = getattr(error, "option_name", None)
    command = re.match("No such command '(.*?)'", text)
    if option and text.startswith("No such option"):
        text = f"no option {option}; {_instead(option, context, program)}"
    elif command:
        near = COMMANDS_ELSEWHERE.get(command[1].lower()) or nearest(command[1], commands)
        hint = f"did you mean {near}?" if near else f"expected {', '.join(commands)}"
        text = f"no command {command[1]}; {hint}"
    return f"{text}; see: {context.command_path} --help"


def _instead(option: str, context: Any, program: Any) -> str:
    """Name the option that may be meant: of the command, of the program, or a key of the config."""
    own, of_program = _names(context.command, context), _names(program, context)
    name = option.lstrip("-")
    near = nearest(OPTIONS_ELSEWHERE.get(name, name), own, 0.65)
    key = _nearest_key(name.replace("-", "_")) if "set" in own else None
    if near and not (key or "").endswith(name.replace("-", "_")):
        return f"did you mean --{near}?"
    if name in of_program:
        return f"it stands before the command: seqtrain {option} {context.command.name} …"
    if key:
        return f"did you mean --set {key}=…?"
    return f"expected {listed([f'--{each}' for each in own], 8)}"


def _names(command: Any, context: Any) -> list[str]:
    """Return the long options of a command, without their dashes."""
    parameters = [*command.params, command.get_help_option(context)]
    return [name[2:] for each in parameters for name in each.opts if name.startswith("--")]


def _nearest_key(name: str) -> str | None:
    """Return the key of a config that an option is named like: epochs, learning_rate."""
    from seqtrain.config.problems import nearest_key
    from seqtrain.config.schema import SECTIONS

    near = nearest_key((name,))
    return None if near in SECTIONS else near
