"""Commands for a shell that messages print: they read a data file, and write another one."""

import os
import shlex
from collections.abc import Sequence

from seqtrain.files.reading import compression_of, uncompressed
from seqtrain.proposal.options import FileLayout
from seqtrain.tables.conversions.forms import conversion_lines
from seqtrain.tables.delimited import DELIMITERS

UNPACKERS = {".gz": ["gzip", "-dc"], ".zst": ["zstd", "-dc"]}
"""Maps endings of compressed files to the commands that write their content."""


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


def rewritten_at_once(command: Sequence[str], path: str, suffix: str, *options: str) -> str:
    """Return one line with a command that writes another file, and one that reads it."""
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
