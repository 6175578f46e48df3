"""Commands `seqtrain init` in messages, which get the options that the user gave."""

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seqtrain.files.reading import uncompressed
from seqtrain.proposal.options import INIT_COMMAND
from seqtrain.tables.conversions.forms import CONVERSIONS, as_path, converted_names

INIT, CONVERT = "seqtrain init ", "seqtrain convert "
COMMENT = "  #"
PLACEHOLDER = INIT_COMMAND.removeprefix(INIT)
"""What stands for the user's files and options in a command."""
FLAG_OPTIONS = {"--force", "--header", "--no-header", "--flags", "--points"}
"""Options of `init` and `convert` without a value."""
OF_BYTES = {"encoding", "data.encoding", "sheet", "data.sheet"}
"""Keys that don't hold for a converted file, which is UTF-8 and has one sheet."""
OF_FORMAT = {"data.format", "data.delimiter", "data.header", "data.path"}
"""Keys that hold for a converted file only if it has the format of the old one."""
WILDCARDS = re.compile(r"[-_.]?(?:[*?]|\[[^\]]*\])+")
"""What stands for other characters in a pattern of names, and the mark before it."""


@dataclass
class Arguments:
    """Arguments of a command of the program.

    Attributes:
        files: The data files.
        options: Maps each key of the config that options set, or the name of another option, to
            the words of these options.
    """

    files: list[str] = field(default_factory=list)
    options: dict[str, list[str]] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command of `init` with these arguments, as a shell reads it."""
        words = [word for words in self.options.values() for word in words]
        return INIT + shlex.join([*map(as_path, self.files), *words])

    @property
    def output(self) -> str:
        """The config that the command writes."""
        if "output" in self.options:
            return self.options["output"][-1]
        return default_name(self.files[0])


def arguments_of(words: Sequence[str]) -> Arguments:
    """Return the arguments in the words of a command, after its name."""
    found, rest = Arguments(), iter(words)
    for word in rest:
        if word == "--":
            found.files += rest
        elif word == "-" or not word.startswith("-"):
            found.files.append(word)
        else:
            name, is_whole, value = word.partition("=")
            own = [word]
            if name[:2] == "-o" and word != "-o":
                name, is_whole = "-o", word[2:]
            if not is_whole and word not in FLAG_OPTIONS:
                value = next(rest, "")
                own.append(value)
            found.options.setdefault(_key(name, value), []).extend(own)
    return found


def _key(name: str, value: str) -> str:
    """Return the key of the config that an option sets, or the name of another option."""
    if name == "--set":
        return value.partition("=")[0].strip()
    name = name.removeprefix("--").removeprefix("no-")
    if name == "-o":
        return "output"
    if name in ("output", "force", "to"):
        return name
    return f"data.{name}"


def completed(lines: Sequence[str], user: Arguments, *, written: str | None = None) -> list[str]:
    """Return lines of a message whose commands of `init` have the options of the user, too.

    An option that a command sets itself isn't repeated. One that can't hold for a converted file is
    left out.

    Args:
        lines: The lines. One that begins with two blanks is a command.
        user: What the user gave.
        written: The config that was written, or None. A command that writes it again gets --force.
    """
    shown, conversion = list[str](), Arguments()
    for line in lines:
        conversion = _arguments_after(CONVERT, line) or conversion
        own = _arguments_after(INIT, line)
        if own is None:
            shown.append(line.replace(INIT_COMMAND, user.command))
            continue
        options = user.options
        if own.files == [PLACEHOLDER]:
            own.files = user.files
        else:
            options = _options_for(own.files, user, conversion)
        if "(?P<label>" in str(own.options.get("data.path")):
            own.options.setdefault("data.label", [])  # the label is in the names of files
        own.options = {**options, **own.options}
        if written is not None and own.files and own.output == written:
            own.options["force"] = ["--force"]
        before, _, after = line.rpartition(INIT)
        _, *comment = after.partition(COMMENT)
        shown.append(f"{before}{own.command}{''.join(comment)}")
    return shown


def _arguments_after(command: str, line: str) -> Arguments | None:
    """Return the arguments of a command in a line of a message, or None if it isn't there."""
    _, found, text = line.rpartition(f" {command}")
    if not found or not line.startswith("  "):
        return None
    try:
        return arguments_of(shlex.split(text.partition(COMMENT)[0]))
    except ValueError:  # a quote isn't closed
        return None


def _options_for(
    files: Sequence[str], user: Arguments, conversion: Arguments
) -> dict[str, list[str]]:
    """Return the user's options that hold for the files of a command.

    Args:
        files: The files of the command.
        user: What the user gave.
        conversion: The last conversion above the command.
    """
    if not _are_written(files, conversion):
        return {key: words for key, words in user.options.items() if words[-1] not in files}
    form = CONVERSIONS[conversion.options["to"][-1]]
    used = {word for words in conversion.options.values() for word in words}
    kept = dict[str, list[str]]()
    for key, words in user.options.items():
        values = [word.rpartition("=")[2] for word in words]
        names_file = key != "output" and any(map(os.path.isfile, values))
        is_lost = form.replaces_columns and any(x in used or x.isdecimal() for x in values)
        has_other_format = form.ending is not None and key in OF_FORMAT
        if key not in OF_BYTES and not (names_file or is_lost or has_other_format):
            kept[key] = words
    return kept


def _are_written(files: Sequence[str], conversion: Arguments) -> bool:
    """Return True if a conversion writes the files, or the folder that they are in."""
    if "to" not in conversion.options:
        return False
    names = converted_names(conversion.files, conversion.options["to"][-1])
    names += conversion.options.get("output", [])
    return any(file == name or file.startswith(f"{name}/") for file in files for name in names)


def default_name(data: str) -> str:
    """Return the name of the config for a data file: `reviews.yaml` for `in/reviews-*.csv.gz`.

    If nothing of the name is left, as of `in/*.csv`, it is that of the folder, or `config.yaml`.
    """
    path = Path(uncompressed(data.rstrip("/")))
    for part in (path.stem, *(folder.name for folder in path.parents)):
        name = WILDCARDS.sub("", part)
        if name.strip("."):
            return f"{name}.yaml"
    return "config.yaml"
