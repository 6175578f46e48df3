"""Command `seqtrain convert`: write a data file in a form that `init` reads."""

from seqtrain.cli.options import DELIMITER, FORCE, Delimiter, argument, flag, option
from seqtrain.tables.conversions.forms import CONVERSIONS, converted_names

FORMS = [f"{form}: {each.help}" for form, each in CONVERSIONS.items()]
EPILOG = "\n".join(["\b", "Forms:", *FORMS])
"""End of the help. The first mark keeps the lines as they are."""


def convert(
    data: list[str] = argument("Data files, or folders whose files are all converted.", "DATA"),
    to: str = option("Form to write: one of those at the end.", "FORM", default=...),
    after: int | None = option("Number of fields after a text.", "N", min=0),
    at: str | None = option(
        "Label of a line: first, last or tree. Or the number of a part of an id.", "PLACE"
    ),
    before: int | None = option("Number of fields before a text.", "N", min=0),
    column: list[str] | None = option("Column to convert. Can be repeated.", "COLUMN"),
    every: int | None = option("Number of rows of each part.", "N", min=1),
    field: list[str] | None = option("Field that becomes a turn. Can be repeated.", "FIELD"),
    flags: bool = flag("Write what isn't a number in a column of its own.", "--flags"),
    folder: str | None = option("Folder of the files that a column names.", "FOLDER"),
    header_line: str | None = option("Line with the names of a table's columns.", "TEXT"),
    line: int | None = option("Line of the file, counted from 1.", "N", min=1),
    mark: str | None = option("Mark between columns, such as :: or tab.", "MARK"),
    name: str | None = option("Name of the new column, or of the array.", "NAME"),
    other: list[str] | None = option("Column to leave out. Can be repeated.", "COLUMN"),
    pattern: str | None = option(
        "Part of a name as a regular expression, or the form of dates, such as %d/%m/%Y.", "PATTERN"
    ),
    points: bool = flag("Commas separate numbers, and aren't decimal marks.", "--points"),
    rows: int | None = option("Number of rows with names.", "N", min=1),
    rule: str | None = option("Rule by which cells are rewritten.", "RULE"),
    skip: int | None = option("Number of rows below the names to leave out.", "N", min=0),
    text: str | None = option("Text for blank cells.", "TEXT"),
    value: list[str] | None = option("Cell to keep. Can be repeated.", "CELL"),
    without: list[str] | None = option("Cell of rows to leave out. Can be repeated.", "CELL"),
    header: bool = option(
        "The first row names the columns, or doesn't.", None, "--header/--no-header", default=True
    ),
    delimiter: Delimiter = DELIMITER,
    sheet: str | None = option("Sheet of a workbook. Default: the first one.", "NAME"),
    encoding: str = option("Encoding. Default: detected from the bytes.", "NAME", default="auto"),
    output: str | None = option(
        "File to write for one DATA. Default: the name of DATA with the form at its end, in the "
        "current directory.",
        "FILE",
        "-o",
        "--output",
    ),
    force: bool = FORCE,
) -> None:
    """Example: seqtrain convert scores.csv --to turned --name sensor"""
    from seqtrain.cli.screens.console import print_path
    from seqtrain.errors import ConfigError
    from seqtrain.tables.blocks import Dialect
    from seqtrain.tables.conversions.convert import UnchangedError
    from seqtrain.tables.conversions.convert import convert as convert_file
    from seqtrain.tables.delimited import DELIMITERS

    if to not in CONVERSIONS:
        raise ConfigError(f"--to: found {to}; expected one of:", *FORMS)
    if output is not None and len(data) > 1:
        raise ConfigError("--output: names one file, but several are converted; leave it out")
    options = {
        "after": after,
        "at": at,
        "before": before,
        "column": column,
        "every": every,
        "field": field,
        "flags": flags,
        "folder": folder,
        "header_line": header_line,
        "line": line,
        "mark": mark,
        "name": name,
        "other": other,
        "pattern": pattern,
        "points": points,
        "rows": rows,
        "rule": rule,
        "skip": skip,
        "text": text,
        "value": value,
        "without": without,
    }
    separator = None
    if delimiter is not None:
        separator = DELIMITERS[delimiter]
    dialect = Dialect("auto", encoding, separator, header=header, sheet=sheet)
    names = converted_names(data, to)
    if output is not None:
        names = [output]
    left = list[tuple[str, str]]()
    for path, new in zip(data, names, strict=True):
        try:
            print_path(convert_file(path, to, options, dialect, new, force=force))
        except UnchangedError:
            if len(left) + 1 == len(data):  # none of them changes
                raise
            left.append((path, new))
    for path, new in left:
        print_path(convert_file(path, to, options, dialect, new, force=force, may_be_equal=True))
