"""Lines of csv and tsv files, written so that common readers return the same cells."""

from collections.abc import Sequence

BYTE_ORDER_MARK = "\ufeff"


def delimited_line(cells: Sequence[str], delimiter: str) -> str:
    """Return a row of csv or tsv, with its line break.

    If any cell holds the delimiter, a quote, or a line break, every cell of the row is quoted as
    RFC 4180 describes. Cells of other rows are written as they are. pandas, polars and Python's csv
    read both kinds of rows; so does seqtrain, which takes a tsv row as quoted only if all its cells
    are.

    Args:
        cells: Texts of the row's cells.
        delimiter: "," for csv, or a tab for tsv.
    """
    special = (delimiter, '"', "\r", "\n", BYTE_ORDER_MARK)
    is_blank = len(cells) == 1 and not cells[0].strip()  # readers skip blank lines
    if is_blank or any(mark in cell for cell in cells for mark in special):
        cells = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    return delimiter.join(cells) + "\n"
