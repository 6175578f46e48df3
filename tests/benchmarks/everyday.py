"""Cost and accuracy of the first model on public data sets, one table row each.

    python tests/benchmarks/everyday.py [CONFIG]... [--seeds 0,1,2] [--set KEY=VALUE]... [--shipped]

Without CONFIG, all configs in configs/ are used whose data exist. Only the data section of a config
counts: `seqtrain init` writes the config that is trained, unedited. With --shipped, the config
itself is trained.

The best linear model serves as a floor. For texts and symbols, it is an SVM on TF-IDF of tokens
(1 and 2) or of characters. For series, it is an SVM with an RBF kernel on summary statistics.
fastText takes part if it is installed. None of these is tuned.

Rows are Markdown: accuracy on validation and test (mean, and each seed), seconds of processor and
clock of one fit, peak memory, share of the recurrence's kernels in the time of updates, and
accuracy and seconds of the linear model. For tables with a row per time step see tables.py.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from common import fit, make_parser, seqtrain
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from seqtrain.api.fit import fit as fit_here
from seqtrain.config import load_config
from seqtrain.config.schema import DataConfig
from seqtrain.data.sources import config_source
from seqtrain.data.tokenizers import SYMBOLS, make_tokenizer
from seqtrain.model.engines.native.library import load_library
from seqtrain.training.learner import Learner
from tests.helpers.reading import read_examples

CONFIGS = Path(__file__).parents[2] / "configs"
COLUMNS = ("set", "validation", "test", "processor", "clock", "peak memory", "kernels")
FLOOR = ("linear model", "seconds")
Scores = tuple[float, float]
"""Accuracy, and seconds to train and score."""


def proposed(data: DataConfig, target: Path) -> Path:
    """Return the config that `seqtrain init` writes for the same files."""
    files = [x for x in (data.train, data.validation) if isinstance(x, str)]
    options = list[str]()
    for name, value in (("--test", data.test), ("--label", data.label)):
        options += [name, value] if isinstance(value, str) else []
    for column in data.sequence if isinstance(data.sequence, list) else [data.sequence]:
        options += ["--sequence", str(column)] if column is not None else []
    seqtrain("init", *files, *options, "--output", target)
    return target


def trained(config: Path, settings: list[str], folder: Path) -> dict[str, Any]:
    """Train one config and return the last line of its metrics, with `clock` and `processor`."""
    began, before = time.perf_counter(), os.times()
    line = fit(config, settings, folder, "--no-cache")[-1]
    processor = sum(os.times()[2:4]) - sum(before[2:4])
    return line | {"clock": time.perf_counter() - began, "processor": processor}


def share_of_kernels(config: Path, settings: list[str], folder: Path) -> float:
    """Return the share of the recurrence's kernels in the time of an epoch's updates."""
    once = load_config(config, [*settings, "training.max_epochs=1", "training.refit=false"])
    lowered = once.training.precision == "bfloat16"
    library = load_library().rounding if lowered else load_library()
    kernels = timed(library, "forward", "backward")
    updates = timed(Learner, "queue_update", "finish_update")
    with kernels as of_kernels, updates as of_updates:
        fit_here(once, run_dir=folder)
    return sum(of_kernels) / sum(of_updates)


@contextmanager
def timed(owner: Any, *names: str) -> Iterator[list[float]]:
    """Measure each call of some functions of a class or an object, in seconds of this thread."""
    found, before = list[float](), [getattr(owner, name) for name in names]

    def measured(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            began = time.thread_time()
            result = function(*arguments, **options)
            found.append(time.thread_time() - began)
            return result

        return run

    for name, function in zip(names, before, strict=True):
        setattr(owner, name, measured(function))
    yield found
    for name, function in zip(names, before, strict=True):
        setattr(owner, name, function)


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
    examples = [e for e in read_examples(config_source(data, str(path))) if len(e.sequence)]
    return [example.sequence for example in examples], [", ".join(e.labels or ()) for e in examples]


def fast_text(data: DataConfig) -> Scores | None:
    """Return what fastText scores, where it is installed and the data are words."""
    try:
        import fasttext
    except ImportError:
        return None
    if data.kind == "features":
        return None
    words = make_tokenizer("word", lowercase=data.lowercase) if data.kind != "tokens" else SYMBOLS
    began, classes = time.perf_counter(), dict[str, str]()
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        for sequence, label in zip(*read(data, data.train), strict=True):
            name = classes.setdefault(label, f"__label__{len(classes)}")
            file.write(f"{name} {' '.join(words(sequence))}\n")
        file.flush()
        model = fasttext.train_supervised(file.name, epoch=25, wordNgrams=2, verbose=0)
    sequences, labels = read(data, data.test)
    found = model.predict([" ".join(words(sequence)) for sequence in sequences])[0]
    right = [each[0] == classes.get(label) for each, label in zip(found, labels, strict=True)]
    return mean(right), time.perf_counter() - began


def best_floor(data: DataConfig) -> str:
    """Return name, accuracy on test and seconds of the best linear model."""
    train, labels = read(data, data.train)
    sequences, true = read(data, data.test)
    found: dict[str, Scores] = {}
    for name, model in linear_models(data).items():
        began = time.perf_counter()
        right = model.fit(train, labels).predict(sequences) == np.array(true)
        found[name] = float(right.mean()), time.perf_counter() - began
    if (scores := fast_text(data)) is not None:
        found["fastText"] = scores
    name = max(found, key=lambda each: found[each][0])
    return f"{100 * found[name][0]:.1f} ({name}) | {found[name][1]:.0f}"


def shown(values: list[float]) -> str:
    """Write a mean and what it is of, in percent."""
    each = ", ".join(f"{100 * value:.1f}" for value in values)
    return f"{100 * mean(values):.1f} ({each})" if len(values) > 1 else each


def row(arguments: Any, path: Path) -> str:
    """Train one data set with each seed, and return its row of the table."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, data = Path(temporary), load_config(path, []).data
        config = path if arguments.shipped else proposed(data, folder / "init.yaml")
        ends = [
            trained(config, [*arguments.set, f"seed={seed}"], folder / f"run{seed}")
            for seed in arguments.seeds.split(",")
        ]
        kernels = share_of_kernels(config, arguments.set, folder / "once")
        used = load_config(config, arguments.set)
        has_floor = isinstance(used.data.test, str) and used.data.kind != "steps"
    cells = [
        path.stem,
        shown([end["best_value"] for end in ends]) if used.data.validation is not None else "",
        shown([end["test"]["accuracy"] for end in ends]) if "test" in ends[0] else "",
        f"{mean(end['processor'] for end in ends):.0f} s",
        f"{mean(end['clock'] for end in ends):.0f} s",
        f"{max(end['peak_memory_bytes'] for end in ends) / 1e6:,.0f} MB",
        f"{100 * kernels:.0f} %",
        best_floor(used.data) if has_floor else " | ",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = make_parser(__doc__, config=False)
    parser.add_argument("configs", nargs="*", type=Path)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--shipped", action="store_true")
    arguments = parser.parse_args()
    print(f"| {' | '.join(COLUMNS + FLOOR)} |\n|{'---|' * len(COLUMNS + FLOOR)}")
    for path in arguments.configs or sorted(CONFIGS.glob("*.yaml")):
        train = load_config(path, []).data.train
        if arguments.configs or Path(str(train)).exists():
            print(row(arguments, path), flush=True)


if __name__ == "__main__":
    main()
