"""Commands that messages of `seqtrain init` print, run as a shell would read them."""

import re
import shlex
import subprocess
from collections.abc import Callable
from typing import Any

COMMAND = re.compile(r"^(?:seqtrain:)? *seqtrain ((?:convert|init) .*?)(?:  #.*)?$", re.M)


def commands_in(said: str) -> list[list[str]]:
    """Return the words of each command that stands on a line of its own."""
    return [shlex.split(line) for line in COMMAND.findall(said)]


def run(line: str, cli: Callable[..., Any]) -> None:
    """Run a line of a message in a shell, or in this process if it is a command of seqtrain."""
    words = shlex.split(line)
    if words[0] == "seqtrain":
        cli(*words[1:])
    else:
        subprocess.run(line, shell=True, check=True)


def convert(said: str, cli: Callable[..., Any], form: str | None = None) -> list[str]:
    """Run the first conversion that is printed, and return the names of the new files.

    Args:
        said: What was printed.
        cli: The program.
        form: Name of the form, or None for any.
    """
    conversions = (words for words in commands_in(said) if words[0] == "convert")
    words = next(x for x in conversions if form in (None, x[x.index("--to") + 1]))
    return cli(*words).out.splitlines()


def follow(said: str, cli: Callable[..., Any], *options: Any, form: str | None = None) -> list[str]:
    """Run the first conversion and the command of init below it; return the new files.

    Args:
        said: What was printed.
        cli: The program.
        options: Further options of init. By default it writes c.yaml.
        form: Name of the form, or None for any.
    """
    new = convert(said, cli, form)
    init = next(words for words in commands_in(said) if words[0] == "init" and new[0] in words)
    cli(*init, *(options or ("-o", "c.yaml", "--force")))
    return new
