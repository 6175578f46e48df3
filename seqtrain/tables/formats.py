"""Registry of the formats of data files: the only list of them.

To add a format, add an entry to `FORMATS` and a module with its reader to ``seqtrain/tables/``.
Everything else follows from the entry: the choices of ``data.format``, ``--format`` and
``--input-format``, the endings, how ``seqtrain init`` reads a file, and the table in
``data/README.md``.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seqtrain.errors import ConfigError
from seqtrain.files.reading import uncompressed
from seqtrain.text import quote

FILE, FOLDER = "file", "folder"
"""Names of the columns that every file has: its path, and the name of its folder."""
TEXT_KINDS = ("text", "tokens")
"""Kinds of sequences that any file of text can hold."""
TABLES = ("text", "tokens", "features", "steps")
"""Kinds of sequences that a file with columns can hold."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of data files.

    Attributes:
        name: Value of ``data.format``.
        endings: Endings of file names with this format.
        reader: Module in ``seqtrain/tables/`` and its function that reads an open file,
            such as ``"lines.read_fasta"``.
        row: Meaning of one row, for the documentation.
        kinds: Kinds of sequences that such a file can hold. The first one is the default.
        columns: How the config identifies a column: ``"named"`` by name, ``"delimited"`` by name or
            by index from 0. ``"none"`` if the format fixes where sequence and label are.
        labelled: False if rows have no label, so that only prediction reads such files.
        binary: True if the file isn't lines of text.
    """

    name: str
    endings: tuple[str, ...]
    reader: str
    row: str
    kinds: tuple[str, ...] = TEXT_KINDS
    columns: Literal["none", "named", "delimited"] = "none"
    labelled: bool = True
    binary: bool = False


FORMATS = {
    format.name: format
    for format in (
        Format(
            "csv",
            (".csv", ".psv"),
            "delimited.read_delimited",
            'fields separated by commas, semicolons, tabs or pipes; `"…"` quotes a field, which '
            'may hold these, line breaks and `""`; comments (`#`, `%`) may come before the header',
            TABLES,
            "delimited",
        ),
        Format(
            "tsv",
            (".tsv",),
            "delimited.read_delimited",
            'fields separated by one tab each; `"` is an ordinary character, unless all fields of '
            "the first line are in quotes or `predict` wrote the file",
            TABLES,
            "delimited",
        ),
        Format(
            "arff",
            (".arff",),
            "ts.read_arff",
            "a row of the `@data` section; the `@attribute` lines name the columns; a cell of a "
            "`relational` attribute has a line of numbers for each channel of a series",
            TABLES,
            "delimited",
        ),
        Format(
            "jsonl",
            (".jsonl", ".ndjson", ".json"),
            "json_lines.read_json_lines",
            "one JSON object per line, one array of objects, or one object with a single list of "
            'them, `{"data": […]}`, with objects by id, `{"id1": {…}, "id2": {…}}`, or as pandas '
            "writes it (orient `columns`, `index`, `split` or `table`); "
            "the sequence is a string, a list of symbols, of sentences, of "
            "turns (a chat), of numbers or of vectors; `meta.label` is the field `label` of the "
            "object in `meta`",
            TABLES,
            "named",
        ),
        Format(
            "fasttext",
            (".fasttext", ".ft"),
            "lines.read_lines",
            "a line of `__label__NAME` and the text",
        ),
        Format(
            "txt",
            (".txt",),
            "lines.read_lines",
            "a line of `label<TAB>text`; or a folder, see below",
            ("text", "tokens", "features"),
        ),
        Format(
            "fasta",
            (".fasta", ".fa"),
            "lines.read_fasta",
            "a record: `>id label` (the last word, also after a pipe or `=`, the words in brackets "
            "at the end, or the field `class=` or `label=`), then lines of the sequence",
        ),
        Format(
            "ts",
            (".ts",),
            "ts.read_ts",
            "a series of the time-series archives: channels separated by `:`, the label last",
            ("features",),
        ),
        Format(
            "npz",
            (".npz", ".npy"),
            "arrays.read_arrays",
            "a sequence of the arrays `values` (N,) or (N, F), `offsets` (B + 1,) or `lengths` "
            "(B,), `labels` (B,); or of `X` (B, T) or (B, T, F), perhaps `lengths` (B,), and `y` "
            "(B,); labels may be marks 0 and 1 of classes, too (B, C); a `.npy` file holds "
            "`X`, and its labels are in `y.npy` next to `X.npy`, "
            "`y_train.npy` next to `X_train.npy`; or a time step, with columns `0`, `1` and so on",
            ("features", "tokens", "steps"),
            binary=True,
        ),
        Format(
            "parquet",
            (".parquet",),
            "arrow.read_parquet",
            "a row of columns of texts, lists of strings, or lists of vectors; labels by number "
            "have the names that Hugging Face's datasets keep in the file; needs "
            "`pip install 'seqtrain[parquet]'`",
            TABLES,
            "named",
            binary=True,
        ),
        Format(
            "arrow",
            (".arrow", ".feather"),
            "arrow.read_arrow",
            "the same; also a folder that Hugging Face's `save_to_disk` wrote: `ds/train`",
            TABLES,
            "named",
            binary=True,
        ),
        Format(
            "xlsx",
            (".xlsx",),
            "xlsx.read_xlsx",
            "a row of the first sheet, or of `data.sheet`; the header names the columns, a title "
            "may stand above it; needs `pip install 'seqtrain[excel]'`",
            TABLES,
            "named",
            binary=True,
        ),
        Format(
            "lines",
            (),
            "lines.read_lines",
            "a line that is a sequence without a label (prediction)",
            ("text", "tokens", "features"),
            labelled=False,
        ),
    )
}
"""Maps the name of each format to the format."""

ENDINGS = {ending: format.name for format in FORMATS.values() for ending in format.endings}
"""Maps each file ending to the name of its format. ``.gz`` and ``.zst`` are removed before."""
TRAINING_FORMATS = tuple(name for name, format in FORMATS.items() if format.labelled)
"""Names of the formats whose files contain labels."""
IN_MEMORY = "table"
"""Name of the format of a table passed from Python. `FORMATS` doesn't contain it."""

if TYPE_CHECKING:
    DataFormat = str
    TrainingFormat = str
    InputFormat = str
else:
    _CHOICES = ("auto", *TRAINING_FORMATS)
    _INPUTS = tuple(FORMATS)
    DataFormat = Literal[_CHOICES]
    TrainingFormat = Literal[TRAINING_FORMATS]
    InputFormat = Literal[_INPUTS]

NO_DATA = re.compile(
    r"\..*|__MACOSX|Thumbs\.db|desktop\.ini|dataset_infos?\.json|"
    r"(?:(?i:readme)|LICEN[CS]E|COPYING)(?:\.(?:txt|md|rst|html))?|"
    r".*\.(?i:png|jpe?g|gif|bmp|ico|tiff?|pdf|docx?|pptx?|odt)"
)
"""Names in a folder that are never data: hidden ones, those of systems, pages and descriptions of
data, images, and documents of office programs."""
MEMORY = "memory:"
"""Prefix of the path by which a config refers to a table passed from Python."""
SAVED = ("state.json", "dataset_dict.json")
"""Files by which a folder of Hugging Face's ``save_to_disk`` is recognized.

The first file belongs to a folder of one data set, the second to a folder of splits.
"""


def columns_of_format(name: str) -> str:
    """Return how the columns of a format are identified: none, named or delimited.

    See `Format.columns`. Tables in memory have named columns.
    """
    if name == IN_MEMORY:
        return "named"
    return FORMATS[name].columns


def formats_with(columns: str) -> tuple[str, ...]:
    """Return the names of the training formats whose `Format.columns` equals `columns`."""
    return tuple(name for name in TRAINING_FORMATS if FORMATS[name].columns == columns)


def formats_holding(kind: str) -> tuple[str, ...]:
    """Return the names of the training formats that can hold sequences of a kind of data.kind."""
    return tuple(name for name in TRAINING_FORMATS if holds(name, kind))


def holds(name: str, kind: str) -> bool:
    """Return True if files of the format `name` can hold sequences of a kind.

    Tables in memory can hold every kind.
    """
    return name == IN_MEMORY or kind in FORMATS[name].kinds


def default_kind(name: str | None) -> str:
    """Return the default of data.kind for files of a format.

    It is "text" for a table in memory, and for an unknown format or None.
    """
    if name not in FORMATS:
        return "text"
    return FORMATS[name].kinds[0]


def resolve_format(path: str, format: str) -> str | None:
    """Return the name of the format of a data file or folder, or None if it is unknown.

    Args:
        path: Path of the file or folder, or `MEMORY` and the name of a table in memory. For such a
            table, `IN_MEMORY` is returned.
        format: Name of a format, which is returned; or ``"auto"`` to detect the format from the
            path's ending. A folder without a known ending is arrow if Hugging Face's
            ``save_to_disk`` wrote it. If it holds files of one format alone, it has this format.
            Any other such folder is txt.
    """
    if path.startswith(MEMORY):
        return IN_MEMORY
    if format != "auto":
        return format
    name = path.lower()
    known = ENDINGS.get(name[name.rfind(".") :])  # a folder may hold many files
    if known is not None and not name[name.rfind(os.sep) + 1 :].startswith("."):
        return known
    known = ENDINGS.get(os.path.splitext(uncompressed(name))[1])
    if known is not None or not os.path.isdir(path):
        return known
    if any(os.path.isfile(os.path.join(path, name)) for name in SAVED):
        return "arrow"
    return _format_of_files(path) or "txt"


def _format_of_files(folder: str) -> str | None:
    """Return the only format of the files in a folder, or None if it holds others, or folders."""
    found = set()
    try:
        for entry in os.scandir(folder):
            if not NO_DATA.fullmatch(entry.name):
                found.add(None if entry.is_dir() else resolve_format(entry.name, "auto"))
    except OSError:
        return None
    format = found.pop() if len(found) == 1 else None
    if format == "fasta":
        return None
    return format


def is_text_encoding(name: str) -> bool:
    """Return True if text of an encoding can be read.

    The characters that separate fields and lines must have the same bytes as in ASCII. Another
    allowed encoding is utf-16. For an unknown name, return False.
    """
    try:
        return name == "utf-16" or '\n,;"x'.encode(name) == b'\n,;"x'
    except (LookupError, ValueError):
        return False


def check_encoding(name: str | None) -> None:
    """Raise ConfigError unless the value of `--encoding` is None or passes `is_text_encoding`."""
    if name is not None and not is_text_encoding(name):
        raise ConfigError(f"--encoding: found {quote(name)}; expected a name such as cp1252 or gbk")


def names_of(value: object) -> list[str]:
    """Return the paths and patterns in a value of data.train, data.validation or data.test.

    The list is empty for a fraction, a fold or None.
    """
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return list(value)
    return []
