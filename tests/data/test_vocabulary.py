from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.data import vocabulary as module
from seqtrain.data.tokenizers import make_tokenizer
from seqtrain.data.vocabulary import (
    SPECIAL,
    UNK,
    FixedIndex,
    PieceIds,
    Vocabulary,
    fit_vocabulary,
    provisional_index,
)


def fit(tokens: list[str], *, min_count: int = 1, max_size: int = 100) -> tuple[Vocabulary, int]:
    """Fit as the data room does: provisional ids first; check that the final ids agree."""
    index = provisional_index()
    ids = np.array([index[token] for token in tokens], dtype=np.int32)
    counts = np.bincount(ids, minlength=len(index))
    vocabulary, final, eligible = fit_vocabulary(
        list(index), counts, min_count=min_count, max_size=max_size
    )
    assert final[ids].tolist() == [vocabulary.index[token] for token in tokens]
    return vocabulary, eligible


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "é", "<pad>", "<unk>", ""]), max_size=60)


@given(WORDS, st.integers(1, 4), st.integers(3, 9), st.randoms(use_true_random=False))
def test_the_most_frequent_tokens_stay_in_an_order_that_rows_do_not_change(
    tokens, min_count, max_size, chance
):
    vocabulary, eligible = fit(tokens, min_count=min_count, max_size=max_size)
    counts = Counter(token for token in tokens if token not in SPECIAL)
    expected = sorted(counts, key=lambda token: (-counts[token], token))
    expected = [token for token in expected if counts[token] >= min_count]
    assert vocabulary.tokens == (*SPECIAL, *expected[: max_size - 2])
    assert eligible == len(expected)
    shuffled = list(tokens)
    chance.shuffle(shuffled)
    assert fit(shuffled, min_count=min_count, max_size=max_size)[0] == vocabulary


LETTERS = st.lists(st.sampled_from([*"abΣ'. \u3000", "long" * 20]), max_size=9)
LINES = st.lists(LETTERS.map("".join), max_size=20)


@pytest.mark.parametrize("remembered", [0, 2, 1000])
@pytest.mark.parametrize("name", ["word", "whitespace", "char", "byte"])
def test_remembered_pieces_have_the_ids_of_their_tokens(monkeypatch, name, remembered):
    monkeypatch.setattr(module, "REMEMBERED_PIECES", remembered)
    tokenizer = make_tokenizer(name, lowercase=True)

    @given(LINES)
    def check(lines: list[str]) -> None:
        growing, expected = provisional_index(), provisional_index()
        piece_ids = PieceIds(tokenizer, growing)
        for line in lines:
            assert piece_ids.encode([line])[0].tolist() == [expected[t] for t in tokenizer(line)]
        assert growing == expected
        known = FixedIndex({"a": 2, "long": 3, ".": 4}, UNK)
        piece_ids = PieceIds(tokenizer, known)
        for line in [*lines, *lines]:
            assert piece_ids.encode([line])[0].tolist() == [known[t] for t in tokenizer(line)]
        assert len(piece_ids) <= remembered
        assert max(map(len, piece_ids), default=0) <= module.REMEMBERED_LENGTH

    check()
