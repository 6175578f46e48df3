"""Commands that messages print: conversions of data files, and options of `init`."""

import shlex

from seqtrain.proposal.options import FileLayout
from seqtrain.tables.conversions.forms import conversion_lines
from seqtrain.tables.delimited import DELIMITERS


def converting(
    form: str, layout: FileLayout, path: str, *init_options: str, **options: object
) -> list[str]:
    """Return two lines of a message: a command that converts all data files, and one for these.

    The encoding is that which the user names.

    Args:
        form: Name of the form.
        layout: Layout of the files.
        path: The file that was read. If it isn't one of the layout, it is converted alone.
        init_options: Options of `seqtrain init` for the new files, as a shell reads them.
        options: Options of `seqtrain convert`, as those of `conversion`.
    """
    test = layout.splits.get("test")
    files = layout.files_with(path)
    options = {"encoding": layout.options.get("encoding"), **options}
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
