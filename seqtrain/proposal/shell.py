"""Commands for a shell that messages print: they read a data file, and write another one."""

import os
import shlex
import string
from collections.abc import Sequence
from contextlib import suppress

from seqtrain.files.reading import compression_of, uncompressed
from seqtrain.proposal.options import FileLayout
from seqtrain.tables.conversions.forms import conversion_lines
from seqtrain.tables.delimited import DELIMITERS

UNPACKERS = {".gz": ["gzip", "-dc"], ".zst": ["zstd", "-dc"]}
"""Maps endings of compressed files to the commands that write their content."""


MOST_REWRITTEN = 8
"""Largest number of files for each of which a message has a command."""


def rewriting(
    command: Sequence[str], path: str, suffix: str, ending: str | None = None
) -> tuple[str, str]:
    """Return a line for a shell that writes another file here, and the quoted name of this file.

    The command reads the file as its input: awk and perl may read another name than the one given.

    Args:
        command: The command, such as ["awk", CODE].
        path: The file.
        suffix: Word that tells the name of the new file from the old one, such as table.
        ending: Ending of the new name, such as .csv, or None for that of the old one.
    """
    plain = uncompressed(path)
    stem, own = os.path.splitext(os.path.basename(plain))
    target = f"{stem}-{suffix}{own if ending is None else ending}"
    if target.startswith("-"):
        target = f"./{target}"
    steps = [shlex.join(command)]
    if compression_of(path):
        steps.insert(0, shlex.join(UNPACKERS[compression_of(path)]))
    steps[0] += f" < {shlex.quote(path)}"
    return f"{' | '.join(steps)} > {shlex.quote(target)}", shlex.quote(target)


def rewritten(
    command: Sequence[str], path: str, suffix: str, *options: str, ending: str | None = None
) -> list[str]:
    """Return two lines of a message: a command that writes another file, and one that reads it.

    Args:
        command: The command, such as ["awk", CODE].
        path: The file that it reads.
        suffix: Word that tells the name of the new file from the old one.
        options: Options of `seqtrain init` for the new file, as a shell reads them.
        ending: Ending of the new name, or None for that of the old one.
    """
    line, target = rewriting(command, path, suffix, ending)
    return [f"  {line}", " ".join(["  seqtrain init", target, *options])]


def for_all_files(lines: Sequence[str], files: Sequence[str], test: str | None) -> list[str]:
    """Return lines of a message whose commands that rewrite the first file rewrite all files.

    The commands of `rewritten` are about the file of train. Those of the other splits have the same
    form.

    Args:
        lines: Lines of the message.
        files: The files of all splits, that of train first.
        test: The file that is the test file by an option, or None.
    """
    sources = [f" < {shlex.quote(path)}" for path in files]
    if len(files) > MOST_REWRITTEN or any(sources[1] in line for line in lines):
        return list(lines)
    first, *others = [os.path.splitext(os.path.basename(uncompressed(path)))[0] for path in files]
    found, words = list[str](), dict[str, str]()
    for line in lines:
        command, _, target = line.rpartition(" > ")
        name = _only_word(target)
        if sources[0] in command and name.startswith(first):
            found.append(line)
            words[target] = target
            for path, source, stem in zip(files[1:], sources[1:], others, strict=True):
                own = shlex.quote(stem + name.removeprefix(first))
                found.append(f"{command.replace(sources[0], source)} > {own}")
                words[target] += f" --test {own}" if path == test else f" {own}"
            continue
        for target, all_targets in words.items():
            start = f"  seqtrain init {target}"
            if f"{line} ".startswith(f"{start} "):
                line = f"  seqtrain init {all_targets}{line.removeprefix(start)}"
        found.append(line)
    return found


def _only_word(text: str) -> str:
    """Return the only word of a text as a shell reads it, or "" for other texts."""
    with suppress(ValueError):  # a quote isn't closed
        words = shlex.split(text)
        if len(words) == 1:
            return words[0]
    return ""


def rewritten_at_once(command: Sequence[str], path: str, suffix: str, *options: str) -> str:
    """Return one line with the two commands of `rewritten`."""
    line, target = rewriting(command, path, suffix)
    return f"{line} && {' '.join(['seqtrain init', target, *options])}"


def converting(
    form: str, layout: FileLayout, path: str, *init_options: str, **options: object
) -> list[str]:
    """Return two lines of a message: a command that converts all data files, and one for these.

    Args:
        form: Name of the form.
        layout: Layout of the files.
        path: The file that was read. If it isn't one of the layout, it is converted alone.
        init_options: Options of `seqtrain init` for the new files, as a shell reads them.
        options: Options of `seqtrain convert`, as those of `conversion`.
    """
    test = layout.splits.get("test")
    files = layout.files_with(path)
    return conversion_lines(form, files, *init_options, test=str(test), **options)


def mark_name(mark: str) -> str:
    """Return the name of a delimiter, such as tab, which a shell reads as it is."""
    return next(name for name, own in DELIMITERS.items() if own == mark)


def init_line(*words: str) -> str:
    """Return a line of a message: the command `seqtrain init` with some files and options."""
    return f"  {shlex.join(['seqtrain', 'init', *words])}"


def set_option(setting: str) -> str:
    """Return the option that sets a key of the config, such as data.order=null."""
    return shlex.join(["--set", setting])


def perl_literal(text: str) -> str:
    """Return a text as a part of a pattern of perl, with a backslash before each mark."""
    return "".join(f"\\{x}" if x in string.punctuation or x == " " else x for x in text)


def replacing_cells(cells: Sequence[str]) -> str:
    """Return the beginning of a substitution of perl for whole cells of csv or tsv: s/PATTERN.

    The cell, without quotes, is $2 in the replacement.
    """
    texts = "|".join(perl_literal(cell.replace('"', '""')) for cell in cells)
    return rf's/(^|(?<=[,;|\t]))"?({texts})"?(?=[,;|\t\r\n]|$)'
