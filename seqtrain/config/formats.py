"""Which format a data file has, by its name, and what each format asks of the config."""

import os

from seqtrain.errors import ConfigError
from seqtrain.files.reading import uncompressed
from seqtrain.text import quote

MEMORY = "memory:"
"""Begins the path of a table that is given from Python."""
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".arff": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".ft": "fasttext",
    ".fasttext": "fasttext",
    ".txt": "txt",
    ".ts": "ts",
    ".npz": "npz",
    ".npy": "npz",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".fasta": "fasta",
    ".fa": "fasta",
}
"""Format of each file ending; .gz or .zst after it changes nothing."""
FIXED_COLUMNS = ("fasttext", "txt", "fasta", "ts", "npz")
"""Formats that fix where sequence and label stand, so that no column is named."""
FEATURE_FORMATS = ("csv", "tsv", "jsonl", "npz", "parquet", "arrow", "ts", "txt")
"""Formats that can hold feature vectors."""
WIDE_FORMATS = ("csv", "tsv")
"""Formats in which each column but the label's may be a time step of a series."""
TABLE_FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow")
"""Formats with named columns, whose rows may be time steps."""
OBJECT_FORMATS = ("jsonl", "parquet", "arrow", "memory")
"""Formats whose rows are objects with named fields."""
SAVED = ("state.json", "dataset_dict.json")
"""Files in a folder that Hugging Face's save_to_disk wrote: of one set, of several."""
NUMBER_FORMATS = ("npz", "ts")
"""Formats whose sequences are feature vectors unless the config says otherwise."""
ADVICE = {
    ".xlsx": 'write the sheet as csv: python -c "import pandas; '
    "pandas.read_excel('{path}').to_csv('{stem}.csv', index=False)\"",
    ".xls": "save the sheet as csv in the program that wrote it",
    ".bz2": "decompress it first: bunzip2 -k '{path}'",
    ".xz": "decompress it first: unxz -k '{path}'",
    ".zip": "unpack it first: unzip '{path}'",
    ".pkl": "a pickle may run code; write parquet, csv or npz where it was made",
}
"""What to do with files that can't be read as they are, by their ending."""


def advice(path: str) -> str | None:
    """Return how a file becomes one that can be read; None: nothing is known of its ending."""
    stem, ending = os.path.splitext(path)
    known = ADVICE.get(ending.lower())
    return None if known is None else known.format(path=path, stem=stem)


def resolve_format(path: str, format: str) -> str | None:
    """Return the format of a data file; None if it is auto and the path's ending names none."""
    if path.startswith(MEMORY):
        return "memory"
    if format != "auto":
        return format
    known = ENDINGS.get(os.path.splitext(uncompressed(path.lower()))[1])
    if known is not None or not os.path.isdir(path):
        return known
    return "arrow" if any(os.path.isfile(os.path.join(path, x)) for x in SAVED) else "txt"


def is_text_encoding(name: str) -> bool:
    """Whether Python knows an encoding by this name, in which ASCII is as in UTF-8; or utf-16."""
    try:
        return name == "utf-16" or '\n,;"x'.encode(name) == b'\n,;"x'
    except (LookupError, ValueError):
        return False


def check_encoding(name: str | None) -> None:
    """Refuse what `--encoding` names if no text can be read by it."""
    if name is not None and not is_text_encoding(name):
        raise ConfigError(f"--encoding: found {quote(name)}; expected a name such as cp1252 or gbk")


def holds(format: str, kind: str) -> bool:
    """Whether files of a format can hold sequences of a kind: text, tokens, features or steps."""
    if kind in ("features", "steps") and format != "memory":
        return format in (FEATURE_FORMATS if kind == "features" else TABLE_FORMATS)
    return format != "ts" and (kind, format) != ("text", "npz")


def names_of(named: object) -> list[str]:
    """Return the paths and patterns that data.train, validation or test gives: none of a number."""
    return [named] if isinstance(named, str) else list(named) if isinstance(named, list) else []
