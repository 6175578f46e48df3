"""Formats txt (lines of `label<TAB>text`, or a folder whose names are the labels), fasttext, FASTA,
and ts of the time-series archives.

In prediction also lines without labels, and files that are a sequence each.
"""

import os
import re
import stat
from collections.abc import Iterator
from itertools import chain
from typing import Any, TypeAlias

from seqtrain.config.formats import ENDINGS, resolve_format
from seqtrain.data.examples import BadRow, Example, Numbered
from seqtrain.data.readers.opening import RowSource, without_end
from seqtrain.data.readers.sequences import features_from_columns
from seqtrain.errors import DataError
from seqtrain.files.reading import path_problem, uncompressed
from seqtrain.text import display_name, quote

UNLABELLED = ("unsup", "unlabelled", "unlabeled")
"""Folders that hold no class."""
Parts: TypeAlias = dict[str, tuple[str, str | None]]
"""The files of an input, with their formats, and the label that all rows of a file have."""
HEADER = re.compile(r"[\s|=]+")
"""Parts the words of a line that begins a record of FASTA."""
LABEL = re.compile(r"(?:^|(?<=[ \t]))__label__([^ \t]*)")


def read_txt(source: RowSource) -> Iterator[Example]:
    """Read lines of label, tab, text; in prediction a line without a tab is text alone."""

    def parse(line: str) -> tuple[Any, ...]:
        label, tab, text = line.partition("\t")
        if tab:
            return source.sequence(text), source.labels(label)
        if source.labelled:
            raise BadRow("no tab; expected label<TAB>text")
        return source.sequence(line), None

    return source.examples(source.good(source.lines(), blank_rows=not source.labelled), parse)


def read_fasttext(source: RowSource) -> Iterator[Example]:
    """Read lines of `__label__NAME text`; in prediction the label may be absent."""

    def parse(text: str) -> tuple[Any, ...]:
        found = list(LABEL.finditer(text))
        multi_label = source.options.label_separator is not None
        names = [match[1] for match in found]
        if len(found) > 1 and not multi_label:
            advice = "expected exactly one, or set data.label_separator"
            raise BadRow(f"{len(found)} labels, {quote(', '.join(names))}; {advice}")
        if not found and (multi_label or not source.labelled):
            return source.sequence(text), source.labels("")
        if not found or LABEL.sub("", text[: found[-1].end()]).strip():
            raise BadRow("expected __label__NAME at the start of the line")
        text = text[found[-1].end() :].lstrip(" \t")
        return source.sequence(text), source.labels(names if multi_label else names[0])

    return source.examples(source.good(source.lines(), blank_rows=not source.labelled), parse)


def read_fasta(source: RowSource) -> Iterator[Example]:
    """Read records: a line `>id label`, then lines of sequence.

    The label is the last word of that line, behind a blank, | or =; in prediction it may be absent.
    """

    def parse(record: list[str]) -> tuple[Any, ...]:
        words = HEADER.split(record[0].strip(" \t>|="))
        if record[0][:1] != ">" or (source.labelled and len(words) < 2):
            found = f"found {quote(record[0])}, expected a line such as >id label"
            raise BadRow(found if source.labelled else f"{found}, or >id")
        return source.sequence("".join(record[1:])), (words[-1],) if len(words) > 1 else None

    return source.examples(source.good(_records(source)), parse)


def read_unlabelled(source: RowSource) -> Iterator[Example]:
    """Read one sequence per line; an empty line is an empty sequence (prediction)."""
    if source.labelled:
        raise DataError("format lines holds no labels; it is for prediction alone")

    def parse(text: str) -> tuple[Any, ...]:
        if source.options.kind == "features" and text.startswith("{"):
            raise BadRow("found an object, expected a list of vectors; --input-format jsonl?")
        return source.sequence(text), None

    return source.examples(source.good(source.lines()), parse)


def read_whole(source: RowSource) -> Iterator[Example]:
    """Read a whole file as one sequence, without its last line end (prediction, or a class)."""
    text = without_end("".join(chain.from_iterable(source.blocks())))
    return source.examples(source.good(iter([(1, text)])), lambda row: (source.sequence(row), None))


def read_ts(source: RowSource) -> Iterator[Example]:
    """Read a header of `@key value`, then a series per line: channels, and the label, between `:`.

    `?` and NaN are missing values.
    """
    lines = (row for row in source.lines() if row[1][:1] not in ("#", "%"))
    has_labels, first = _read_ts_header(lines, source), list[int]()

    def parse(text: str) -> tuple[Any, ...]:
        channels = text.split(":")
        label = source.labels(channels.pop().strip()) if has_labels else None
        if not channels:
            raise BadRow("expected channels, then a label, parted by ':', found one of them")
        if not first:
            first.append(len(channels))
        if len(channels) != first[0]:
            raise BadRow(f"{len(channels)} channels; expected {first[0]}, as in the first row")
        return features_from_columns(channels), label

    yield from source.examples(source.good(lines, blank_rows=False), parse)


def list_folder(path: str) -> Parts:
    """Return the files of a folder, in the order of their names.

    It holds either a sub-folder per class, with a file per example (of FASTA an example per
    record), or a file `<class>.txt` (or `.txt.gz`, `.fasta`) per class, with an example per line.
    Hidden names, folders such as `unsup` and files named after a folder (aclImdb's urls_pos.txt)
    don't count.
    """
    entries, name = _entries(path), display_name(path)
    folders = [each for each, mode in entries if stat.S_ISDIR(mode)]
    classes = [each for each in folders if each not in UNLABELLED]
    files = [
        each
        for each, mode in entries
        if _class_of(each) and not any(folder in each for folder in folders)
    ]
    if not classes and not files:
        raise DataError(
            f"{name}: no rows; expected one sub-folder or one file <class>.txt per class"
            + _pattern_hint(path, [each for each, _ in entries])
        )
    if classes and files:
        raise DataError(
            f"{name}: holds both sub-folders and .txt files ({display_name(files[0])}); "
            "expected one kind"
        )
    if files:
        return {
            os.path.join(path, file): (_format_of(file, "lines"), _class_of(file)) for file in files
        }
    parts = ((label, file) for label in classes for file, _ in _entries(path, label))
    return {
        os.path.join(path, label, file): (_format_of(file, "whole"), label) for label, file in parts
    }


def whole_files(path: str) -> Parts:
    """Return a file, or each in a folder and the folders in it: a sequence each."""
    files = [*_files_below(path)] if os.path.isdir(path) else [path]
    if not files:
        raise DataError(f"{display_name(path)}: no files in it; expected a file per sequence")
    return {file: (_format_of(file, "whole"), None) for file in files}


def holds_whole_files(path: str) -> bool:
    """Tell whether the rows of a training file are files: those in the sub-folders of a folder."""
    return os.path.isdir(path) and any(stat.S_ISDIR(mode) for _, mode in _entries(path))


def _read_ts_header(lines: Numbered, source: RowSource) -> bool:
    """Read on to the line @data; return whether the series have labels."""
    line, has_labels, fail = 0, False, source.problems.fail
    for line, text in lines:
        key, first = [*text.lower().split(), "", ""][:2]
        if key == "@data":
            if source.labelled and not has_labels:
                fail(line, "no labels: expected '@classLabel true' before @data")
            return has_labels
        if key in ("@timestamps", "@targetlabel") and first == "true":
            fail(line, f"{key} true is not supported; expected plain values and classes")
        elif key == "@classlabel":
            has_labels = first == "true"
        elif key and not key.startswith("@"):
            fail(line, f"expected a header line @…, or @data; found {quote(text)}")
    if line:
        fail(line, "the file ends before a line @data")
    return False


def _records(source: RowSource) -> Numbered:
    """Yield the lines of each record of FASTA; blank lines and comments (`;`) are left out."""
    start, record = 0, list[str]()
    for line, text in source.lines():
        if text.startswith(">") and record:
            yield start, record
            start, record = line, [text]
        elif text.strip() and text[0] != ";":
            start = start if record else line
            record.append(text.strip())
    if record:
        yield start, record


def _files_below(folder: str) -> Iterator[str]:
    for name, mode in _entries(folder):
        path = os.path.join(folder, name)
        yield from _files_below(path) if stat.S_ISDIR(mode) else [path]


def _entries(*path: str) -> list[tuple[str, int]]:
    folder = os.path.join(*path)
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
        return [(name, os.stat(os.path.join(folder, name)).st_mode) for name in names]
    except OSError as error:
        raise path_problem(error.filename or folder, error, DataError) from None


def _class_of(name: str) -> str:
    stem, ending = os.path.splitext(uncompressed(name))
    return stem if ending == ".txt" or ENDINGS.get(ending) == "fasta" else ""


def _format_of(file: str, other: str) -> str:
    return "fasta" if resolve_format(file, "auto") == "fasta" else other


def _pattern_hint(path: str, names: list[str]) -> str:
    for name in names:
        if resolve_format(name, "auto") is not None:
            ending = name[len(os.path.splitext(uncompressed(name))[0]) :]
            pattern = display_name(os.path.join(path, "*" + ending))
            return f"; for its {ending} files give '{pattern}'"
    return ""
