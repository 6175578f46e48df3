"""Files of word vectors: their formats, what is kept of them, and what is wrong with them."""

from pathlib import Path

import numpy as np
import pytest

from seqtrain.config import config_from_mapping
from seqtrain.errors import ConfigError
from seqtrain.sequences.vocabulary import SPECIAL, Vocabulary
from seqtrain.sequences.word_vectors import read_vectors, with_width
from tests.helpers.packing import ENDINGS, pack

VOCABULARY = Vocabulary((*SPECIAL, "cat", "dog", "emu"))
VALUES = {"cat": [1.0, 2.5], "dog": [-3.0, 4e-2], "yak": [5.0, 6.0], "bee": [7.0, 8.0]}
ROWS = "cat 1 2.5\ndog -3 4e-2\nyak 5 6\nbee 7 8\n"
FORMATS = {
    "vec": "4 2\n" + ROWS,
    "blanks at line ends": "4 2\n" + ROWS.replace("\n", " \n"),
    "GloVe": ROWS,
    "tabs": ROWS.replace(" ", "\t"),
    "a tab after the word": "4 2\n" + ROWS.replace("cat ", "cat\t").replace("yak ", "yak\t"),
    "line ends of Windows, a mark at the start": "\ufeff4 2\r\n" + ROWS.replace("\n", "\r\n"),
    "two blanks": ROWS.replace(" 2.5", "  2.5").replace(" 6", "  6"),
    "no last line end": ROWS[:-1],
    "blank lines": "4 2\n\n" + ROWS + "\n \n",
    "words with blanks in them": "4 2\ncat 1 2.5\n. . . 1 1\ndog -3 4e-2\nat x@y.org 2 2\nyak 5 6\n"
    "bee 7 8\n",
    "a number and a mark as words": ROWS + "7 1 1\n\u00a0 1 2\n",
    "a number comes first": "1999 4 4\n" + ROWS,
}


def read(path: Path, *, keep: int = 0) -> tuple[dict[str, list[float]], list[str]]:
    """Return the vectors of a file by token, and the words that it adds."""
    vectors, more = read_vectors(
        str(path), VOCABULARY, keep=keep, is_token=lambda word: word.isalpha() and word.islower()
    )
    tokens = (*VOCABULARY.tokens, *more)
    assert vectors.values.dtype == np.float32
    found = {tokens[row]: vectors.values[i].tolist() for i, row in enumerate(vectors.rows)}
    return found, more


def expected(*words: str) -> dict[str, list[float]]:
    return {word: np.array(VALUES[word], dtype=np.float32).tolist() for word in words}


@pytest.mark.parametrize("ending", ["txt", *ENDINGS])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_the_same_vectors(form, ending, tmp_path):
    path, content = tmp_path / f"w.{ending}", FORMATS[form].encode()
    path.write_bytes(content if ending == "txt" else pack(content, ending))
    assert read(path) == (expected("cat", "dog"), [])
    assert read(path, keep=1) == (expected("cat", "dog", "yak"), ["yak"])
    assert read(path, keep=9) == (expected("cat", "dog", "yak", "bee"), ["yak", "bee"])


def test_of_equal_words_the_first_counts(tmp_path):
    (tmp_path / "w.vec").write_text("4 2\n" + ROWS + "cat 0 0\nyak 0 0\nnew 0 0\n")
    assert read(tmp_path / "w.vec", keep=1)[0] == expected("cat", "dog", "yak")


@pytest.mark.parametrize(("asked", "found"), [(None, 2), (2, 2), (3, None)])
def test_the_width_is_the_files(asked, found, tmp_path):
    (tmp_path / "w.vec").write_text(ROWS)
    config = config_from_mapping(
        {
            "data": {"train": "t.csv", "sequence": "s", "label": "l"},
            "model": {"vectors": str(tmp_path / "w.vec"), "embedding_dim": asked},
        }
    )
    if found is not None:
        assert with_width(config).model.embedding_dim == found
        return
    with pytest.raises(ConfigError) as refused:
        with_width(config)
    said = f"found 3, but the vectors of {tmp_path}/w.vec have 2 numbers; expected 2 or null"
    assert str(refused.value) == f"model.embedding_dim: {said}"
