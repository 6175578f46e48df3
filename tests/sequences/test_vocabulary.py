from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.sequences.vocabulary import (
    SPECIAL,
    UNFITTED,
    UNK,
    TokenIndex,
    Vocabulary,
    fit_vocabulary,
)


def fit(tokens: list[str], *, min_count: int = 1, max_size: int = 100) -> Vocabulary:
    """Fit as the data room does: provisional ids first; check that the final ids agree."""
    index = TokenIndex(UNFITTED, len(tokens))
    ids = np.array(index.ids(tokens), dtype=np.int32)
    counts = np.bincount(ids, minlength=index.size)
    vocabulary, final = fit_vocabulary(index, counts, min_count=min_count, max_size=max_size)
    assert final[ids].tolist() == [vocabulary.index.get(token, UNK) for token in tokens]
    return vocabulary


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "é", "<pad>", "<unk>", ""]), max_size=60)


@given(WORDS, st.integers(1, 4), st.integers(3, 9), st.randoms(use_true_random=False))
def test_the_most_frequent_tokens_stay_in_an_order_that_rows_do_not_change(
    tokens, min_count, max_size, chance
):
    vocabulary = fit(tokens, min_count=min_count, max_size=max_size)
    counts = Counter(token for token in tokens if token not in SPECIAL)
    expected = sorted(counts, key=lambda token: (-counts[token], token))
    expected = [token for token in expected if counts[token] >= min_count]
    assert vocabulary.tokens == (*SPECIAL, *expected[: max_size - 2])
    shuffled = list(tokens)
    chance.shuffle(shuffled)
    assert fit(shuffled, min_count=min_count, max_size=max_size) == vocabulary
