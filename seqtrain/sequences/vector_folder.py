"""Word vectors from the input embeddings of a local Hugging Face folder.

The vector of a word is the mean of the vectors of its pieces. Folders of model2vec and wordllama
have the same form: a table of vectors, and a tokenizer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seqtrain.errors import DataError
from seqtrain.sequences.pretrained import load_tokenizer
from seqtrain.tables.blocks import Array, Float32s
from seqtrain.text import display_name, listed, quote

EMBEDDINGS = re.compile(
    r"(^|\.)(word_embeddings\.weight|wte\.weight|embed_tokens\.weight|tok_embeddings\.weight"
    r"|shared\.weight|embedding\.weight|embeddings)$"
)
"""Names of the table of input embeddings: those of BERT, GPT-2, Llama, ModernBERT, T5, wordllama,
and model2vec."""
WORD_START = ("▁", "Ġ")
"""Characters that mark a piece at the beginning of a word, of SentencePiece and byte-level BPE."""


class VectorFolder:
    """A table of vectors of pieces, and the tokenizer that splits words into these pieces.

    Args:
        folder: Folder with a .safetensors file and a tokenizer's JSON file.

    Attributes:
        size: Number of numbers of a vector, E.

    Raises:
        ConfigError: If the package tokenizers isn't installed.
        DataError: If the folder lacks a file, or one isn't sound.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        tokenizer, weights = vector_files(self.folder)
        self._tokenizer = load_tokenizer(tokenizer, "model.vectors of a folder", "bpe")
        self._tokenizer.no_truncation()
        self._table = _load_table(weights)
        self.size = self._table.shape[1]
        added = self._tokenizer.get_added_tokens_decoder().values()
        self._special = {each.content for each in added}

    def vectors_of(self, words: Sequence[str]) -> Float32s:
        """Return the vector of each word, (K, E). It is NaN for a word of unknown pieces only."""
        vectors = np.full((len(words), self.size), np.nan, np.float32)
        encodings = self._tokenizer.encode_batch(list(words), add_special_tokens=False)
        for row, encoding in enumerate(encodings):
            pieces = zip(encoding.ids, encoding.tokens, strict=True)
            ids = [id for id, name in pieces if id < len(self._table) and name not in self._special]
            if ids:
                vectors[row] = self._table[ids].astype(np.float32).mean(axis=0)
        return vectors

    def words(self) -> list[str]:
        """Return the pieces that are whole words, in the order of the table.

        Tokenizers list frequent pieces first, more or less.
        """
        pieces = sorted(self._tokenizer.get_vocab().items(), key=lambda item: item[1])
        names = [name for name, _ in pieces if name not in self._special]
        marked = [name[1:] for name in names if name.startswith(WORD_START)]
        if marked:
            return marked
        return [name for name in names if name.isalnum()]  # "##ing" and "[CLS]" are no words


def vector_files(folder: Path) -> tuple[Path, Path]:
    """Return the files of a folder that are read: the tokenizer's and the table's.

    Raises:
        DataError: If one is missing.
    """
    tokenizer = _only(folder, "tokenizer.json", "*token*.json")
    return tokenizer, _only(folder, "model.safetensors", "*.safetensors")


def _only(folder: Path, name: str, pattern: str) -> Path:
    """Return the file of a name in a folder, or else the only file that fits a pattern.

    Raises:
        DataError: If there is no such file, or several without the usual name.
    """
    if (folder / name).is_file():
        return folder / name
    found = sorted(folder.glob(pattern))
    if len(found) == 1:
        return found[0]
    if found:
        held = f"found {listed([quote(each.name) for each in found])}"
    else:
        held = "found none"
    shown = display_name(str(folder))
    raise DataError(f"model.vectors: {shown} needs the file {name} (or one of {pattern}); {held}")


def _load_table(path: Path) -> Array:
    """Return the table of input embeddings of a safetensors file, (pieces, E).

    Raises:
        DataError: If the file isn't sound, or has no such table or several.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            names = [name for name in file.keys() if EMBEDDINGS.search(name)]  # noqa: SIM118
            if len(names) != 1:
                found = listed([quote(name) for name in names]) or "none"
                raise DataError(f"{path}: expected one table of input embeddings, found {found}")
            table = file.get_tensor(names[0])
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: not a safetensors file ({error})") from None
    if table.ndim != 2 or not table.is_floating_point() or not bool(table.isfinite().all()):
        raise DataError(f"{path}: {names[0]} is no table of finite numbers")
    vectors: Array = table.float().numpy()
    return vectors
