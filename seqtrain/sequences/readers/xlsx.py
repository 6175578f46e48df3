"""Format xlsx: the first sheet of a workbook, as Excel and LibreOffice write it."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from seqtrain.errors import ConfigError, DataError, SeqtrainError, missing_package
from seqtrain.sequences.examples import Example
from seqtrain.sequences.readers.named_cells import read_objects
from seqtrain.sequences.readers.opening import refuse_bomb
from seqtrain.sequences.readers.row_source import RowSource
from seqtrain.sequences.readers.sequences import plain
from seqtrain.sequences.readers.step_cells import Rows
from seqtrain.text import quote


def read_xlsx(source: RowSource) -> Iterator[Example | Rows]:
    """Yield the rows of the first sheet. Its first row that isn't blank names the columns.

    Blank rows and columns without a name are skipped. The line number of an example is the number
    of its row in the sheet, from 1.

    Raises:
        ConfigError: If openpyxl isn't installed.
        DataError: If the file isn't a sound workbook, or two columns have the same name.
    """
    name = source.problems.name
    try:
        import openpyxl
    except ImportError:
        (problem,) = missing_package("format xlsx", "openpyxl", "excel").problems
        raise ConfigError(f"{problem}; or save the sheet as csv") from None
    content = source.stream.read()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            sizes = sum(entry.file_size for entry in archive.infolist())
        refuse_bomb("the sheets", sizes, len(content))
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        rows = book.worksheets[0].iter_rows(values_only=True)
        line, names = next(
            ((i, x) for i, x in enumerate(rows, 1) if any(map(_has_value, x))), (0, ())
        )
        while names and not _has_value(names[-1]):
            names = names[:-1]
        titles = ["" if title is None else str(title) for title in names]
        twice = next((title for title in titles if title and titles.count(title) > 1), None)
        if twice is not None:
            source.problems.fail(line, f"column {quote(twice)} occurs twice in the first row")
        table = (
            (
                number,
                {title: plain(cell) for title, cell in zip(titles, row, strict=False) if title},
            )
            for number, row in enumerate(rows, line + 1)
            if any(map(_has_value, row))
        )
        yield from read_objects(source, table)
    except SeqtrainError:
        raise
    except Exception as error:  # openpyxl raises errors of many classes for a damaged file
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name}: not a sound xlsx file ({reason})") from None


def _has_value(cell: Any) -> bool:
    return cell is not None and cell != ""
