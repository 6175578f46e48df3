"""Whole numbers in the rows of sequences: codes of something, or measurements."""

import numpy as np

from seqtrain.proposal.columns import REPEATS, ColumnProfile
from seqtrain.proposal.naive_bayes import HELD_OUT, naive_bayes_error, token_ngrams

PROBED_SEQUENCES = 2000
"""Sequences on which codes and measurements are compared, at most."""
RANGES = 16
"""Ranges that whole numbers are sorted into for that comparison. Fewer values are numbers."""
CODES_BETTER, STANDARD_ERRORS = 0.9, 2
"""Whole numbers are codes if their error is below this share of the error of their ranges, and
lower by so many standard errors."""
SMOOTH = 0.57
"""Numbers are measured if neighbours differ by less than this many standard deviations."""
SPARSE = 20
"""Whole numbers that repeat are codes if fewer than one in so many between them occurs."""
MOST_CODES = 100
"""More distinct whole numbers are measurements if they are dense and not named like codes."""


def are_codes(
    column: ColumnProfile, id: ColumnProfile, label: ColumnProfile, order: ColumnProfile | None
) -> bool:
    """Return True if the numbers of a column are codes of something.

    Codes differ from row to row. They are sparse and written with equal lengths, or they predict
    the label better than ranges of the numbers do.

    Args:
        column: The column, which holds numbers.
        id: Column of the sequence id.
        label: Column of the label.
        order: Column that sorts the rows of an id, or None if the file is in order.
    """
    by_id = np.lexsort((np.arange(len(id.codes)) if order is None else order.times, id.codes))
    by_id = by_id[np.isfinite(column.times[by_id])]
    ids, texts, values = id.codes[by_id], np.array(column.cells)[by_id], column.times[by_id]
    changes, known = np.diff(values), np.unique(values)
    changes = changes[(np.diff(ids) == 0) & (changes != 0)]
    is_smooth = not len(changes) or np.abs(changes).mean() < SMOOTH * values.std()
    if column.has_no_labels or is_smooth:
        return False
    width, repeats = known[-1] - known[0], REPEATS * len(known) < len(values)
    have_equal_length = len({len(text) for text in {*texts.tolist()}}) == 1
    is_sparse = SPARSE * len(known) < width and len(known) <= MOST_CODES
    if is_sparse and repeats and have_equal_length:
        return True
    if len(known) <= RANGES or (len(known) > MOST_CODES and 2 * len(known) < width):
        return False
    ranges = np.searchsorted(np.quantile(known, np.arange(1, RANGES) / RANGES), values).astype(str)
    label_of_id = {
        code: cell for code, cell in zip(id.codes.tolist(), label.cells, strict=True) if cell
    }
    rows = np.split(np.arange(len(ids)), np.flatnonzero(np.diff(ids)) + 1)
    # Neither the names of ids nor the order of rows may change what is learned.
    rows.sort(key=lambda row: " ".join(sorted(texts[row])))
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:PROBED_SEQUENCES]]
    labels = [label_of_id.get(ids[row[0]], "") for row in rows]
    by_code, by_range = (
        naive_bayes_error(
            token_ngrams([cells[row].tolist() for row in rows], 1),
            labels,
        )
        for cells in (texts, ranges)
    )
    margin = STANDARD_ERRORS * np.sqrt(by_range * (1 - by_range) / max(1, len(rows) / HELD_OUT))
    return bool(by_code < min(CODES_BETTER * by_range, by_range - margin))
