"""`seqtrain init DATA…`: look at a data file and write a config that `fit` takes as it is."""

import re
from pathlib import Path
from shlex import quote

from seqtrain.cli import options
from seqtrain.cli.options import FORCE, OVERRIDES, argument, option, refuse
from seqtrain.config.formats import TrainingFormat
from seqtrain.files.reading import uncompressed


def init(
    data: list[str] = argument(
        "File or folder to train on, or a folder with train and test inside. Further "
        "files are recognized by their names: validation or test in them, or names that differ "
        "only in numbers.",
        "DATA",
    ),
    label: str | None = option("Column of the label. Default: detected.", "COLUMN"),
    sequence: list[str] | None = option(
        "Column of the sequence. Can be repeated: its texts are joined. Default: detected.",
        "COLUMN",
    ),
    id: list[str] | None = option(
        "Column that the rows of a sequence share, if a row is a step. Default: detected.", "COLUMN"
    ),
    order: str | None = option(
        "Column that sorts the rows of one --id. Default: detected.", "COLUMN"
    ),
    steps: list[str] | None = option(
        "Column of a step. Can be repeated. Default: all that vary within an --id.", "COLUMN"
    ),
    header: bool | None = option(
        "Whether the first row names the columns. Default: detected.", None, "--header/--no-header"
    ),
    test: str | None = option("Test file, scored once at the end.", "FILE"),
    overrides: list[str] | None = OVERRIDES,
    format: TrainingFormat | None = option("Format of DATA. Default: by its name."),
    delimiter: options.Delimiter = options.DELIMITER,
    encoding: str | None = option(
        "Encoding, such as cp1251. Default: detected from the bytes.", "NAME"
    ),
    output: str | None = option(
        "Where to write. Default: DATA.yaml; - prints.", "FILE", "-o", "--output"
    ),
    force: bool = FORCE,
) -> None:
    """Example: seqtrain init reviews.csv --label stars, then seqtrain fit reviews.yaml"""
    from seqtrain.cli.output.console import note, print_path, warn
    from seqtrain.files.writing import write_file
    from seqtrain.proposal import InitOptions, data_format, propose
    from seqtrain.runs.destination import check_destination

    several = "found several columns; expected one: join them into a column of the table first"
    refuse((f"--id: {several}", len(id or ()) > 1))
    init_options = InitOptions(
        label=label,
        sequence=[*sequence] if sequence else None,
        id=id[0] if id else None,
        order=order,
        steps=[*steps] if steps else None,
        header=header,
        format=format or "auto",
        delimiter=delimiter or "auto",
        encoding=encoding,
        settings=overrides or (),
    )
    for path in data:
        data_format(path, init_options.format)
    target = output or default_name(data[0])
    if output != "-":
        sources = [*data, *([test] if test else [])]
        check_destination(target, "file", "--output", force=force, sources=sources)
    found = propose(data, init_options, test=test, progress=note)
    note(*found.uses)
    warn(*found.warnings)
    if output == "-":
        print(found.text, end="")
        return
    write_file(Path(target), found.text.encode())
    print_path(target)
    note(f"next: seqtrain fit {quote(target)}")


def default_name(data: str) -> str:
    """Return the config's file for a data file: `reviews.yaml` for `some/reviews-*.csv.gz`."""
    name = re.sub(r"[-_.]?[*?\[\]]+", "", uncompressed(Path(data.rstrip("/")).name))
    return f"{Path(name).stem or 'config'}.yaml"
