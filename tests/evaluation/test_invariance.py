"""The sample that a check takes, and batches padded with other values."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.evaluation.invariance import (
    SAMPLE_LENGTH,
    SAMPLE_ROWS,
    SAMPLE_STEPS,
    sampled,
)
from tests.helpers.examples import examples
from tests.helpers.stores import store_of


@examples(40)
@given(st.lists(st.integers(1, 30_000), min_size=1, max_size=300), st.booleans())
def test_a_sample_keeps_its_limits_and_holds_the_extremes(lengths, first):
    rows = [np.full(length, 3) for length in lengths]
    found, cut = sampled(store_of(rows, lines=range(len(rows))), carried=first)
    steps, kept = found.lengths, np.minimum(lengths, SAMPLE_LENGTH)
    assert len(set(found.lines.tolist())) == len(found) <= SAMPLE_ROWS
    assert steps.tolist() == kept[found.lines].tolist()
    assert steps.sum() <= SAMPLE_STEPS
    assert cut == (np.array(lengths)[found.lines] > SAMPLE_LENGTH).sum()
    if first:
        assert found.lines.tolist() == list(range(len(found)))
        assert len(found) in (len(lengths), SAMPLE_ROWS) or (
            kept[: len(found) + 1].sum() > SAMPLE_STEPS
        )
    else:
        assert steps.max() == kept.max()
        assert len(found) == 1 or steps.min() == kept.min()
