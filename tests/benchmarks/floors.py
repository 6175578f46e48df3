"""What do linear models score on the same files? The floors that a recurrent model should beat.

    python tests/benchmarks/floors.py CONFIG [--set KEY=VALUE]...

Text and tokens: TF-IDF of n-grams and a linear SVM, fitted on train; of the config's own tokens
(1 and 2 together), and of single characters or symbols (up to 5, up to 6). Features: an SVM with an
RBF kernel on summary statistics of each channel. Nothing is tuned. Prints the accuracy on
data.validation where it is a file, and on data.test.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import make_parser
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from seqtrain.config import load_config
from seqtrain.config.schema import DataConfig
from seqtrain.data.readers import read_examples
from seqtrain.data.sources import read_options
from seqtrain.data.tokenizers import SYMBOLS, make_tokenizer

LONG_NGRAMS = {"text": 5, "tokens": 6}


def linear(tokens: Callable[[Any], list[str]], longest: int) -> Pipeline:
    """Return TF-IDF of n-grams of 1 to `longest` tokens, and a linear SVM."""
    values = TfidfVectorizer(
        tokenizer=tokens,
        token_pattern=None,
        lowercase=False,
        ngram_range=(1, longest),
        sublinear_tf=True,
    )
    return make_pipeline(values, LinearSVC())


def statistics(series: list[np.ndarray]) -> np.ndarray:
    """Return mean, deviation, least, largest, first and last value of each channel, and lengths."""
    rows = []
    for values in series:
        known = np.nan_to_num(values)
        parts = known.mean(0), known.std(0), known.min(0), known.max(0), known[0], known[-1]
        rows.append(np.concatenate((*parts, [len(values)])))
    return np.array(rows)


def floors(data: DataConfig) -> dict[str, Pipeline]:
    """Return the models that suit the kind of sequence, by name."""
    if data.kind == "features":
        summary = make_pipeline(FunctionTransformer(statistics), StandardScaler(), SVC())
        return {"SVM (RBF) on summary statistics": summary}
    if data.kind == "tokens":
        return {
            "linear SVM, 1 and 2 symbols": linear(SYMBOLS, 2),
            "linear SVM, 1 to 6 symbols": linear(SYMBOLS, LONG_NGRAMS["tokens"]),
        }
    words = make_tokenizer("word", lowercase=data.lowercase)
    characters = make_tokenizer("char", lowercase=data.lowercase)
    return {
        "linear SVM, 1 and 2 words": linear(words, 2),
        "linear SVM, 1 to 5 characters": linear(characters, LONG_NGRAMS["text"]),
    }


def read(data: DataConfig, path: str) -> tuple[list[Any], list[str]]:
    """Return the sequences of a file, and their labels."""
    examples = [e for e in read_examples(path, read_options(data, path)) if len(e.sequence)]
    return [example.sequence for example in examples], [str(e.label) for e in examples]


def main() -> None:
    given = make_parser(__doc__).parse_args()
    data = load_config(given.config, given.set).data
    train, labels = read(data, data.train)
    named = {"validation": data.validation, "test": data.test}
    scored = {name: read(data, path) for name, path in named.items() if isinstance(path, str)}
    for name, model in floors(data).items():
        began = time.perf_counter()
        model.fit(train, labels)
        accuracies = {
            split: np.mean(model.predict(sequences) == np.array(true))
            for split, (sequences, true) in scored.items()
        }
        figures = ", ".join(f"{split} {100 * value:.1f} %" for split, value in accuracies.items())
        print(f"{name}: {figures} ({time.perf_counter() - began:.0f} s)")


if __name__ == "__main__":
    main()
