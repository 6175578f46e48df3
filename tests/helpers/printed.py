"""Commands that messages print: those of the program run in this process."""

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.helpers.tiny import Cli


COMMAND = re.compile(r"^(?:seqtrain:)? *seqtrain ((?:convert|init) .*?)(?:  #.*)?$", re.M)
"""A command of a message that has a line of its own."""


def printed_lines(said: str) -> list[str]:
    """Return the commands that have a line of their own."""
    return re.findall("^seqtrain:   (seqtrain .*)$", said, re.MULTILINE)


def run_conversions(cli: "Cli", said: str) -> list[str]:
    """Run the first commands that a message prints, and return the arguments of the next one.

    The next one is the first command of the program that isn't `seqtrain convert`.
    """
    for line in printed_lines(said):
        _, *arguments = shlex.split(line, comments=True)
        if arguments[0] != "convert":
            return arguments
        cli(*arguments)
    return []


def commands_in(said: str) -> list[list[str]]:
    """Return the words of each command that stands on a line of its own."""
    return [shlex.split(line) for line in COMMAND.findall(said)]


def run_conversion(cli: "Cli", said: str, form: str | None = None) -> list[str]:
    """Run the first conversion that is printed, and return the names of the new files.

    Args:
        cli: The program.
        said: What was printed.
        form: Name of the form, or None for any.
    """
    conversions = (words for words in commands_in(said) if words[0] == "convert")
    words = next(x for x in conversions if form in (None, x[x.index("--to") + 1]))
    return cli(*words).out.splitlines()


def follow_printed(cli: "Cli", said: str, *options: str, form: str | None = None) -> list[str]:
    """Run the first conversion and the command of init below it; return the new files.

    Args:
        cli: The program.
        said: What was printed.
        options: Further options of init. By default it writes c.yaml.
        form: Name of the form, or None for any.
    """
    new = run_conversion(cli, said, form)
    init = next(words for words in commands_in(said) if words[0] == "init" and new[0] in words)
    cli(*init, *(options or ("-o", "c.yaml", "--force")))
    return new
