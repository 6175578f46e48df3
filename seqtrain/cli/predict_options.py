"""The options of `seqtrain predict`."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer


class Format(str, Enum):
    """How predictions are written."""

    tsv = "tsv"
    csv = "csv"
    jsonl = "jsonl"


class InputFormat(str, Enum):
    """How input is read that no file's name tells."""

    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    fasttext = "fasttext"
    txt = "txt"
    lines = "lines"


class Empty(str, Enum):
    """What happens to empty sequences."""

    error = "error"
    unk = "unk"
    blank = "blank"


class BadRows(str, Enum):
    """What happens to rows that can't be used."""

    error = "error"
    blank = "blank"


Output = Annotated[
    str | None, typer.Option(metavar="FILE", help="Where to write; default: standard output.")
]
OutputFormat = Annotated[
    Format | None,
    typer.Option(
        help="Output format; default: by --output's ending, else tsv; on a terminal aligned lines."
    ),
]
InputFormatOption = Annotated[
    InputFormat | None,
    typer.Option(help="How INPUT is read; default: by its name, standard input as lines."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS", help="Columns of INPUT to copy to the answers, as --keep id,text."
    ),
]
TopK = Annotated[
    int | None, typer.Option(metavar="K", min=1, help="Write the K most probable labels.")
]
Probabilities = Annotated[
    bool,
    typer.Option("--probabilities", help="Write every class's probability, in a fixed order."),
]
EmptyOption = Annotated[
    Empty | None,
    typer.Option(
        help="Empty sequences: stop, read an unknown token, or leave the answer blank; default: as "
        "in training, or blank."
    ),
]
BadRowsOption = Annotated[
    BadRows, typer.Option(help="Rows that can't be used: stop, or leave the answer blank.")
]
Steps = Annotated[
    bool,
    typer.Option(
        "--steps", help="Answer after every step: jsonl, or coloured lines on a terminal."
    ),
]
MinProbability = Annotated[
    float | None,
    typer.Option(metavar="P", min=0, max=1, help="Leave less probable labels empty."),
]
Precision = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        min=0,
        max=1,
        help="The same, with the P from which on so many answers were right on validation.",
    ),
]
OutputDir = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Answer each file that INPUT names in a file there."),
]
Shard = Annotated[
    str | None, typer.Option(metavar="K/N", help="With --output-dir: every N-th file, from K on.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing --output file.")]
