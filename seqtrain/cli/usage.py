"""What is wrong with a command line, in one line, with the nearest valid name."""

import re
from typing import Any

import typer

from seqtrain.text import listed, nearest

UsageError: type[typer.BadParameter] = typer.BadParameter.__bases__[0]
"""Typer's own base of usage errors: click's, or its copy of click's, by version."""
COMMANDS_ELSEWHERE = {
    **dict.fromkeys(("train", "learn", "run"), "fit"),
    **dict.fromkeys(("evaluate", "test", "score"), "eval"),
    **dict.fromkeys(("infer", "classify"), "predict"),
    "benchmark": "compare",
    "validate": "check",
}
"""Commands by the names that other programs give them."""
OPTIONS_ELSEWHERE = {"model": "run", "checkpoint": "run", "file": "data", "out": "output"}
"""Options by the names that other programs give them."""
WORDING = {
    "Value error, ": "",
    r"Input should be greater than or equal to (\S+)": r"expected \1 or more",
    r"Input should be less than or equal to (\S+)": r"expected \1 or less",
}


def usage_problem(error: typer.BadParameter, program: Any, called: str) -> str:
    """Say in one line what is wrong with a command line, the valid names, and where help stands.

    `called` is the program with the name of the command, if one was called.
    """
    context: Any = error.ctx
    text = " ".join(error.format_message().split()).rstrip(".")
    for pattern, words in WORDING.items():
        text = re.sub(pattern, words, text)
    if context is None:
        return f"{text}; see: {called} --help"
    option = getattr(error, "option_name", None)
    command = re.match("No such command '(.*?)'", text)
    if option and text.startswith("No such option"):
        text = f"no option {option}; {_instead(option, context, program)}"
    elif command:
        commands = program.list_commands(context)
        near = COMMANDS_ELSEWHERE.get(command[1].lower()) or nearest(command[1], commands)
        hint = f"did you mean {near}?" if near else f"expected {', '.join(commands)}"
        text = f"no command {command[1]}; {hint}"
    return f"{text}; see: {context.command_path} --help"


def _instead(option: str, context: Any, program: Any) -> str:
    """Name the option that may be meant: of the command, of the program, or a key of the config."""
    from seqtrain.config.problems import nearest_key
    from seqtrain.config.schema import SECTIONS

    own, of_program = _names(context.command, context), _names(program, context)
    name, key = option.lstrip("-"), None
    wanted = name.replace("-", "_")
    near = nearest(OPTIONS_ELSEWHERE.get(name, name), own, 0.65)
    if "set" in own and nearest_key((wanted,)) not in SECTIONS:
        key = nearest_key((wanted,))
    if near and not (key or "").endswith(wanted):
        return f"did you mean --{near}?"
    if name in of_program:
        return f"it stands before the command: seqtrain {option} {context.command.name} …"
    return (
        f"did you mean --set {key}=…?"
        if key
        else f"expected {listed([f'--{each}' for each in own], 8)}"
    )


def _names(command: Any, context: Any) -> list[str]:
    parameters = [*command.params, command.get_help_option(context)]
    return [name[2:] for each in parameters for name in each.opts if name.startswith("--")]
