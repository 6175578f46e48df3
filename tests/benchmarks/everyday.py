"""What does a first model cost, and how good is it? One table row per data set, all in one run.

    python tests/benchmarks/everyday.py [CONFIG]... [--seeds 0,1,2] [--set KEY=VALUE]... [--shipped]

Without CONFIG: all of configs/ whose data is there. Of a config the data section alone is used:
`seqtrain init` writes the config that is trained, unedited (--shipped: the given one is). Beside it
stands the best of linear models: SVMs on TF-IDF of the config's own tokens (1 and 2 together) and
of single characters or symbols; for series an SVM with an RBF kernel on summary statistics. Nothing
of these is tuned. Rows are Markdown: accuracy on validation and test (mean, and each seed), seconds
of processor and clock of one fit, peak memory, and accuracy and seconds of the linear model.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from common import fit, make_parser, seqtrain
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from seqtrain.config import load_config
from seqtrain.config.schema import DataConfig
from seqtrain.data.sources import read_options
from seqtrain.data.tokenizers import SYMBOLS, make_tokenizer
from tests.helpers.reading import read_examples

CONFIGS = Path(__file__).parents[2] / "configs"
COLUMNS = ("set", "validation", "test", "processor", "clock", "peak memory")
FLOOR = ("linear model", "seconds")
Scores = tuple[float, float]
"""Accuracy, and seconds to train and score."""


def proposed(data: DataConfig, target: Path) -> Path:
    """Let `seqtrain init` write a config for the same files."""
    files = [x for x in (data.train, data.validation) if isinstance(x, str)]
    options = list[str]()
    for name, value in (("--test", data.test), ("--label", data.label)):
        options += [name, value] if isinstance(value, str) else []
    for column in [data.sequence] if isinstance(data.sequence, str) else data.sequence or []:
        options += ["--sequence", str(column)]
    seqtrain("init", *files, *options, "--output", target)
    return target


def trained(config: Path, settings: list[str], folder: Path) -> dict[str, Any]:
    """Train one config and return the last line of its metrics, with `clock` and `processor`."""
    began, before = time.perf_counter(), os.times()
    line = fit(config, settings, folder, "--no-cache")[-1]
    processor = sum(os.times()[2:4]) - sum(before[2:4])
    return line | {"clock": time.perf_counter() - began, "processor": processor}


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


def linear_models(data: DataConfig) -> dict[str, Pipeline]:
    """Return the models that suit the kind of sequence, by name."""
    if data.kind == "features":
        summary = make_pipeline(FunctionTransformer(statistics), StandardScaler(), SVC())
        return {"statistics": summary}
    if data.kind == "tokens":
        return {"1 and 2 symbols": linear(SYMBOLS, 2), "1 to 6 symbols": linear(SYMBOLS, 6)}
    words = make_tokenizer("word", lowercase=data.lowercase)
    characters = make_tokenizer("char", lowercase=data.lowercase)
    return {"words": linear(words, 2), "characters": linear(characters, 5)}


def read(data: DataConfig, path: object) -> tuple[list[Any], list[str]]:
    """Return the sequences of a file, and their labels."""
    options = read_options(data, str(path))
    examples = [e for e in read_examples(str(path), options) if len(e.sequence)]
    return [example.sequence for example in examples], [str(e.label) for e in examples]


def best_floor(data: DataConfig) -> str:
    """Return name, accuracy on test and seconds of the best linear model."""
    train, labels = read(data, data.train)
    sequences, true = read(data, data.test)
    found: dict[str, Scores] = {}
    for name, model in linear_models(data).items():
        began = time.perf_counter()
        right = model.fit(train, labels).predict(sequences) == np.array(true)
        found[name] = float(right.mean()), time.perf_counter() - began
    name = max(found, key=lambda each: found[each][0])
    return f"{100 * found[name][0]:.1f} ({name}) | {found[name][1]:.0f}"


def shown(values: list[float]) -> str:
    """Write a mean and what it is of, in percent."""
    each = ", ".join(f"{100 * value:.1f}" for value in values)
    return f"{100 * mean(values):.1f} ({each})" if len(values) > 1 else each


def row(given: Any, path: Path) -> str:
    """Train one data set with each seed, and return its row of the table."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, data = Path(temporary), load_config(path, []).data
        config = path if given.shipped else proposed(data, folder / "init.yaml")
        ends = [
            trained(config, [*given.set, f"seed={seed}"], folder / f"run{seed}")
            for seed in given.seeds.split(",")
        ]
        used = load_config(config, given.set)
    cells = [
        path.stem,
        shown([end["best_value"] for end in ends]) if used.data.validation is not None else "",
        shown([end["test"]["accuracy"] for end in ends]) if "test" in ends[0] else "",
        f"{mean(end['processor'] for end in ends):.0f} s",
        f"{mean(end['clock'] for end in ends):.0f} s",
        f"{max(end['peak_memory_bytes'] for end in ends) / 1e6:,.0f} MB",
        best_floor(used.data) if isinstance(used.data.test, str) else " | ",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = make_parser(__doc__, config=False)
    parser.add_argument("configs", nargs="*", type=Path)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--shipped", action="store_true")
    given = parser.parse_args()
    print(f"| {' | '.join(COLUMNS + FLOOR)} |\n|{'---|' * len(COLUMNS + FLOOR)}")
    for path in given.configs or sorted(CONFIGS.glob("*.yaml")):
        train = load_config(path, []).data.train
        if given.configs or Path(str(train)).exists():
            print(row(given, path), flush=True)


if __name__ == "__main__":
    main()
