"""Formats of lines: txt, fasttext, fasta, ts, and lines without labels for prediction."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from seqtrain.sequences.examples import BadRow, Example, Numbered
from seqtrain.sequences.readers.row_source import RowSource, without_end
from seqtrain.sequences.readers.sequences import features_from_columns
from seqtrain.text import quote

FASTA_WORDS = re.compile(r"[\s|=]+")
"""Separator of the words in the first line of a FASTA record."""
FASTTEXT_LABEL = re.compile(r"(?:^|(?<=[ \t]))__label__([^ \t]*)")


def read_txt(source: RowSource) -> Iterator[Example]:
    """Yield the examples of lines ``label<TAB>text``.

    In an unlabelled input, the label and the tab may be missing.
    """

    def parse(line: str) -> tuple[Any, ...]:
        label, tab, text = line.partition("\t")
        if tab:
            return source.sequence(text), source.labels(label)
        if source.labelled:
            raise BadRow("no tab; expected label<TAB>text")
        return source.sequence(line), None

    return source.examples(source.good(source.lines(), blank_rows=not source.labelled), parse)


def read_fasttext(source: RowSource) -> Iterator[Example]:
    """Yield the examples of lines ``__label__NAME text``.

    With data.label_separator, a line has any number of labels. In an unlabelled input, the label
    may be missing.
    """
    is_multi_label = source.schema.label_separator is not None

    def parse(text: str) -> tuple[Any, ...]:
        found = list(FASTTEXT_LABEL.finditer(text))
        names = [match[1] for match in found]
        if len(found) > 1 and not is_multi_label:
            advice = "expected exactly one, or set data.label_separator"
            raise BadRow(f"{len(found)} labels, {quote(', '.join(names))}; {advice}")
        if not found and (is_multi_label or not source.labelled):
            return source.sequence(text), source.labels("")
        if not found or FASTTEXT_LABEL.sub("", text[: found[-1].end()]).strip():
            raise BadRow("expected __label__NAME at the start of the line")
        text = text[found[-1].end() :].lstrip(" \t")
        return source.sequence(text), source.labels(names if is_multi_label else names[0])

    return source.examples(source.good(source.lines(), blank_rows=not source.labelled), parse)


def read_fasta(source: RowSource) -> Iterator[Example]:
    """Yield the examples of FASTA records: a line `>id label`, then lines of the sequence.

    The label is the last word of the record's first line. A blank, | or = precedes it. In an
    unlabelled input, it may be missing.
    """

    def parse(record: list[str]) -> tuple[Any, ...]:
        words = FASTA_WORDS.split(record[0].strip(" \t>|="))
        if record[0][:1] != ">" or (source.labelled and len(words) < 2):
            found = f"no label in {quote(record[0])}; expected a line such as >id label"
            raise BadRow(found if source.labelled else f"{found}, or >id")
        labels = (words[-1],) if len(words) > 1 else None
        return source.sequence("".join(record[1:])), labels

    return source.examples(source.good(_fasta_records(source)), parse)


def read_lines(source: RowSource) -> Iterator[Example]:
    """Yield one example without a label per line. An empty line is an empty sequence."""
    return _unlabelled(source, source.lines())


def read_whole(source: RowSource) -> Iterator[Example]:
    """Yield the whole file, without its last line end, as one example without a label."""
    text = without_end("".join(chain.from_iterable(source.blocks())))
    return _unlabelled(source, iter([(1, text)]))


def _unlabelled(source: RowSource, rows: Numbered) -> Iterator[Example]:
    return source.examples(source.good(rows), lambda text: (source.sequence(text), None))


def _fasta_records(source: RowSource) -> Numbered:
    """Yield each FASTA record as a pair: the number of its first line, and its lines.

    Blank lines and comments, which begin with `;`, are left out.
    """
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


def read_ts(source: RowSource) -> Iterator[Example]:
    """Yield the examples of a .ts file of the UCR and UEA archives.

    A header of lines `@key value` comes first. Each further line is a series: its channels,
    separated by `:`. The label follows as the last field if the header declares labels. `?` and NaN
    are missing values.
    """
    lines = (row for row in source.lines() if row[1][:1] not in ("#", "%"))
    has_labels, channels_of_first = _read_header(lines, source), 0

    def parse(text: str) -> tuple[Any, ...]:
        nonlocal channels_of_first
        channels = text.split(":")
        labels = source.labels(channels.pop().strip()) if has_labels else None
        if not channels:
            raise BadRow("expected channels, then a label, separated by ':'; found one of them")
        channels_of_first = channels_of_first or len(channels)
        if len(channels) != channels_of_first:
            expected = f"expected {channels_of_first}, as in the first row"
            raise BadRow(f"{len(channels)} channels; {expected}")
        return features_from_columns(channels), labels

    yield from source.examples(source.good(lines, blank_rows=False), parse)


def _read_header(lines: Numbered, source: RowSource) -> bool:
    """Read the header of a .ts file up to the line @data.

    Args:
        lines: Numbered lines of the file. The lines of the header are consumed.
        source: The file.

    Returns:
        True if the series have labels.

    Raises:
        DataError: If the header isn't valid, or lacks the labels that the input must have.
    """
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
