"""Meaning of numbers in time steps: codes, or measurements of one or several quantities."""

from collections.abc import Sequence

import numpy as np

from seqtrain.proposal.columns import REPEATS, ColumnProfile
from seqtrain.proposal.naive_bayes import HELD_OUT, naive_bayes_error, token_ngrams

PROBED_SEQUENCES = 2000
"""Largest number of sequences on which codes and measurements are compared."""
RANGES = 16
"""Number of ranges of whole numbers in that comparison. Fewer distinct values aren't compared."""
CODES_BETTER, STANDARD_ERRORS = 0.9, 2
"""Whole numbers are codes if their error is below this share of the error of their ranges, and
lower by so many standard errors."""
SMOOTH = 0.57
"""Numbers are measurements if neighbours differ by fewer standard deviations on average."""
SPARSE = 20
"""Whole numbers that repeat can be codes if fewer than one in this many of their range occurs."""
MOST_CODES = 100
"""More distinct whole numbers are measurements if less than half of their range occurs."""
EXPLAINED = (0.5, 0.98)
"""Smallest and largest share of the variance of a number's ranks that an explaining token has."""
ROWS_PER_TOKEN = 20
"""Fewest rows with a number per distinct token for a token to explain the number."""


def are_codes(
    column: ColumnProfile, id: ColumnProfile, label: ColumnProfile, order: ColumnProfile | None
) -> bool:
    """Return True if the numbers of a step column are codes instead of measurements.

    Codes meet all of these conditions:

    - They are whole numbers.
    - They change abruptly between the rows of a sequence, or each sequence is sorted by them.
    - They look like codes, or tell the label as codes do.

    Numbers look like codes if they change abruptly, are sparse, repeat, and have equally many
    characters. They tell the label as codes do if naive Bayes makes clearly more errors on `RANGES`
    ranges of them.

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
    is_sorted = len(changes) > 0 and changes.min() > 0
    if column.has_no_labels or (is_smooth and not is_sorted):
        return False
    width, repeats = known[-1] - known[0], REPEATS * len(known) < len(values)
    have_equal_length = len({len(text) for text in {*texts.tolist()}}) == 1
    is_sparse = SPARSE * len(known) < width and len(known) <= MOST_CODES
    if is_sparse and repeats and have_equal_length and not is_smooth:
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


def token_that_explains(column: ColumnProfile, tokens: Sequence[ColumnProfile]) -> str | None:
    """Return the name of the token column on which the meaning of numbers depends, or None.

    The tokens of such a column explain a share of the variance of the numbers' ranks, within the
    limits `EXPLAINED`. Each distinct token has `ROWS_PER_TOKEN` numbers or more, on average. Of
    several such columns, the one with the largest share is returned.

    Args:
        column: The column of numbers.
        tokens: Columns of tokens from which one is chosen.
    """
    present = np.isfinite(column.times)
    ranks = np.unique(column.times[present], return_inverse=True)[1].astype(np.float64)
    found = {}
    for other in tokens:
        codes = other.codes[present]
        counts = np.bincount(codes)
        means = np.bincount(codes, ranks) / counts.clip(1)
        share = float(np.var(means[codes]) / max(np.var(ranks), 1e-9))
        is_frequent = len(codes) >= ROWS_PER_TOKEN * np.count_nonzero(counts)
        if is_frequent and EXPLAINED[0] <= share <= EXPLAINED[1]:
            found[share] = str(other.column)
    return found[max(found)] if found else None
