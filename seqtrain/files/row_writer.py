"""Lines of csv and tsv files, written so that common readers return the same cells."""

from collections.abc import Sequence

BYTE_ORDER_MARK = "\ufeff"


def delimited_line(cells: Sequence[str], delimiter: str) -> str:
    """Return a row of csv or tsv, with its line break.

    A cell that holds the delimiter, a quote, or a line break is quoted as RFC 4180 describes. In
    tsv, one such cell makes all cells of its row quoted: seqtrain takes the quotes of a tsv row as
    quoting only if every cell has them, since many tsv files have quotes that belong to the text.
    pandas, polars and Python's csv read these rows in the same way.

    Args:
        cells: Texts of the row's cells.
        delimiter: "," for csv, or a tab for tsv.
    """
    special = (delimiter, '"', "\r", "\n", BYTE_ORDER_MARK)
    needs_quotes = [any(mark in cell for mark in special) for cell in cells]
    if len(cells) == 1 and not cells[0].strip():  # readers skip blank lines
        needs_quotes = [True]
    elif delimiter == "\t" and any(needs_quotes):
        needs_quotes = [True] * len(cells)
    written = [
        '"' + cell.replace('"', '""') + '"' if quoted else cell
        for cell, quoted in zip(cells, needs_quotes, strict=True)
    ]
    return delimiter.join(written) + "\n"
