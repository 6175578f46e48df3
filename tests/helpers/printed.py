"""Commands that messages print: those of the program run in this process."""

import re
import shlex
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.helpers.tiny import Cli


def printed_lines(said: str) -> list[str]:
    """Return the commands that have a line of their own."""
    return re.findall("^seqtrain:   (.*)$", said, re.MULTILINE)


def run_conversions(cli: "Cli", said: str) -> list[str]:
    """Run the first commands that a message prints, and return the arguments of the next one.

    The next one is the first command of the program that isn't `seqtrain convert`.
    """
    for line in printed_lines(said):
        program, *arguments = shlex.split(line, comments=True)
        if program != "seqtrain":
            subprocess.run(line, shell=True, check=True)
        elif arguments[0] == "convert":
            cli(*arguments)
        else:
            return arguments
    return []
