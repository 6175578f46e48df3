"""Accuracy, macro F1 and cost of the first model on public data sets, with usual floors.

    python tests/benchmarks/everyday.py [CONFIG]... [--seeds 0,1,2] [--set KEY=VALUE]... [--shipped]
        [--rows N | --per-class N] [--pretrained FOLDER] [--no-floors]

Without CONFIG, all configs in configs/ are used whose data exist. Only the data section of a config
counts: `seqtrain init` writes the config that is trained, unedited. With --shipped, the config
itself is trained. With --pretrained, `init` proposes `model.pretrained` with a local folder.

With --rows or --per-class, each seed learns that many random rows of train, of all classes or of
each class, and `init` writes a config for them. This is for texts.

Floors are models that users would otherwise pick, with their usual settings. None is tuned.

- Texts: a linear SVM on TF-IDF of words and pairs of words, and one of 2 to 5 characters within
  words. Symbols: of up to 2, and of up to 3 symbols in a row. If the largest class has more than
  `UNEVEN` times as many rows as the smallest one, classes are balanced.
- Series: MiniRocket and Hydra of the library aeon, if it is installed. Series of unequal lengths
  are interpolated to the longest of train. An SVM with an RBF kernel on summary statistics, too.

Rows are Markdown: validation (by the metric that chose the epoch), accuracy, macro F1 and log loss
on test (mean, and each seed), accuracy of each branch alone, seconds of processor and clock of
`init` and one fit, and the peak memory of the fit. Then follow accuracy, macro F1 and processor
seconds of each floor. For tables with a row per time step see tables.py.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from common import fit, make_parser, seqtrain
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from seqtrain.config import load_config
from seqtrain.config.schema import DataConfig
from seqtrain.sequences.sources import config_source
from seqtrain.sequences.tokenizers import SYMBOLS, make_tokenizer
from tests.helpers.reading import read_examples

CONFIGS = Path(__file__).parents[2] / "configs"
COLUMNS = (
    *("set", "validation", "test", "macro F1", "log loss", "branches alone"),
    *("processor", "clock", "peak memory", "floors: accuracy / macro F1, processor"),
)
UNEVEN = 10
"""Ratio of the largest class to the smallest one above which users balance the classes."""


def proposed(data: DataConfig, target: Path, pretrained: str | None) -> Path:
    """Return the config that `seqtrain init` writes for the same files."""
    files = [x for x in (data.train, data.validation) if isinstance(x, str)]
    options = list[str]()
    for name, value in (("--test", data.test), ("--label", data.label)):
        options += [name, value] if isinstance(value, str) else []
    for column in data.sequence if isinstance(data.sequence, list) else [data.sequence]:
        options += ["--sequence", str(column)] if column is not None else []
    options += ["--pretrained", pretrained] if pretrained else []
    seqtrain("init", *files, *options, "--output", target)
    return target


def part_of(data: DataConfig, folder: Path, seed: int, rows: int, per_class: int) -> DataConfig:
    """Write random rows of train, and test, as JSON lines; return a config's section for them.

    Args:
        data: Section with the whole files. Files of validation aren't used.
        folder: Folder to write to.
        seed: Seed of the choice.
        rows: Number of rows, or 0 for all.
        per_class: Largest number of rows of each class, or 0 for all.
    """
    numbers = dict[str, int]()
    chosen = []
    examples = list(zip(*read(data, data.train), strict=True))
    random.Random(seed).shuffle(examples)
    for text, label in examples:
        numbers[label] = numbers.get(label, 0) + 1
        if not per_class or numbers[label] <= per_class:
            chosen.append((text, label))
    parts = {"train": chosen[: rows or None], "test": zip(*read(data, data.test), strict=True)}
    for name, part in parts.items():
        lines = [json.dumps({"text": text, "label": label}) for text, label in part]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    names = {name: str(folder / f"{name}.jsonl") for name in parts}
    columns = {"sequence": "text", "label": "label", "validation": None, "format": "auto"}
    return data.model_copy(update=names | columns)


def trained(data: DataConfig, seed: int, arguments: Any, folder: Path) -> dict[str, Any]:
    """Return the last line of the metrics of `init` and `fit`, with what they cost.

    Besides the line has `clock`, `processor`, `parts` (scores of branches) and `config`.
    """
    folder.mkdir()
    if arguments.rows or arguments.per_class:
        data = part_of(data, folder, seed, arguments.rows, arguments.per_class)
    began, before = time.perf_counter(), os.times()
    config = arguments.shipped or proposed(data, folder / "init.yaml", arguments.pretrained)
    line = fit(config, [*arguments.set, f"seed={seed}"], folder / "run")[-1]
    line["processor"] = sum(os.times()[2:4]) - sum(before[2:4])
    line["clock"] = time.perf_counter() - began
    command = [sys.executable, "-m", "seqtrain", "eval", str(folder / "run"), "--all", "--json"]
    evaluated = subprocess.run(command, capture_output=True, text=True, check="test" in line)
    line["parts"] = json.loads(evaluated.stdout or "{}").get("parts", {})
    return line | {"config": load_config(config, arguments.set)}


def linear(weights: str | None, **options: Any) -> Pipeline:
    """Return TF-IDF with some options, and a linear SVM with some class weights."""
    values = TfidfVectorizer(lowercase=False, sublinear_tf=True, **options)
    return make_pipeline(values, LinearSVC(class_weight=weights))


def statistics(series: list[np.ndarray]) -> np.ndarray:
    """Return mean, deviation, least, largest, first and last value of each channel, and lengths."""
    rows = []
    for values in series:
        known = np.nan_to_num(values)
        parts = known.mean(0), known.std(0), known.min(0), known.max(0), known[0], known[-1]
        rows.append(np.concatenate((*parts, [len(values)])))
    return np.array(rows)


def interpolated(length: int) -> Callable[[list[np.ndarray]], np.ndarray]:
    """Return a function that interpolates series to one length, (rows, channels, length)."""

    def resized(series: list[np.ndarray]) -> np.ndarray:
        rows = []
        for values in series:
            at = np.linspace(0, len(values) - 1, length)
            columns = np.nan_to_num(values).T
            rows.append([np.interp(at, np.arange(len(values)), column) for column in columns])
        return np.array(rows)

    return resized


def series_floors(length: int) -> Iterator[tuple[str, Pipeline]]:
    """Yield the floors for series whose longest one has this length, by name."""
    yield "statistics", make_pipeline(FunctionTransformer(statistics), StandardScaler(), SVC())
    try:
        from aeon.classification.convolution_based import HydraClassifier, MiniRocketClassifier
    except ImportError:
        return
    for name, kind in (("MiniRocket", MiniRocketClassifier), ("Hydra", HydraClassifier)):
        model = kind(random_state=0)
        yield name, make_pipeline(FunctionTransformer(interpolated(length)), model)


def floors(data: DataConfig, train: list[Any], labels: list[str]) -> Iterator[tuple[str, Pipeline]]:
    """Yield the floors that suit the kind of sequence, by name."""
    if data.kind == "features":
        yield from series_floors(max(map(len, train)))
        return
    counts = Counter(labels).values()
    weights = "balanced" if max(counts) > UNEVEN * min(counts) else None
    split = make_tokenizer("word", lowercase=data.lowercase) if data.kind == "text" else SYMBOLS
    words = {"tokenizer": split, "token_pattern": None}
    yield "words" if data.kind == "text" else "pairs", linear(weights, ngram_range=(1, 2), **words)
    if data.kind == "text":
        yield "characters", linear(weights, analyzer="char_wb", ngram_range=(2, 5))
    else:
        yield "triples", linear(weights, ngram_range=(1, 3), **words)


def read(data: DataConfig, path: object) -> tuple[list[Any], list[str]]:
    """Return the sequences of a file, in lower case where the config says so, and their labels."""
    examples = [e for e in read_examples(config_source(data, str(path))) if len(e.sequence)]
    sequences: list[Any] = [example.sequence for example in examples]
    if data.kind == "text" and data.lowercase:
        sequences = [sequence.lower() for sequence in sequences]
    return sequences, [", ".join(e.labels or ()) for e in examples]


def scored_floors(data: DataConfig) -> str:
    """Return name, accuracy and macro F1 on test, and processor seconds of each floor."""
    train, labels = read(data, data.train)
    sequences, true = read(data, data.test)
    found = []
    for name, model in floors(data, train, labels):
        began = time.process_time()
        predicted = model.fit(train, np.array(labels)).predict(sequences)
        took = time.process_time() - began
        accuracy = 100 * float(np.mean(predicted == np.array(true)))
        macro = 100 * f1_score(true, predicted, average="macro")
        found.append(f"{name} {accuracy:.1f} / {macro:.1f}, {took:.0f} s")
    return "; ".join(found)


def shown(values: list[float]) -> str:
    """Write a mean and what it is of, in percent."""
    each = ", ".join(f"{100 * value:.1f}" for value in values)
    return f"{100 * mean(values):.1f} ({each})" if len(values) > 1 else each


def row(arguments: Any, path: Path) -> str:
    """Train one data set with each seed, and return its row of the table."""
    arguments.shipped = path if arguments.shipped else None
    data, seeds = load_config(path, []).data, map(int, arguments.seeds.split(","))
    with tempfile.TemporaryDirectory() as temporary:
        ends = [trained(data, seed, arguments, Path(temporary) / str(seed)) for seed in seeds]
        used = ends[0]["config"].data
        has_test = "test" in ends[0]
        floors_shown = ""
        if isinstance(used.test, str) and used.kind != "steps" and not arguments.no_floors:
            floors_shown = scored_floors(used)
    branches = [
        f"{name} {shown([end['parts'][name]['accuracy'] for end in ends])}"
        for name in ends[0]["parts"]
    ]
    cells = [
        path.stem,
        shown([end["best_value"] for end in ends]) if used.validation is not None else "",
        shown([end["test"]["accuracy"] for end in ends]) if has_test else "",
        shown([end["test"]["macro_f1"] for end in ends]) if has_test else "",
        f"{mean(end['test']['loss'] for end in ends):.3f}" if has_test else "",
        "; ".join(branches),
        f"{mean(end['processor'] for end in ends):.0f} s",
        f"{mean(end['clock'] for end in ends):.0f} s",
        f"{max(end['peak_memory_bytes'] for end in ends) / 1e6:,.0f} MB",
        floors_shown,
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = make_parser(__doc__, config=False)
    parser.add_argument("configs", nargs="*", type=Path)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--shipped", action="store_true")
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--per-class", type=int, default=0)
    parser.add_argument("--pretrained", metavar="FOLDER")
    parser.add_argument("--no-floors", action="store_true")
    arguments = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for path in arguments.configs or sorted(CONFIGS.glob("*.yaml")):
        train = load_config(path, []).data.train
        if arguments.configs or Path(str(train)).exists():
            print(row(arguments, path), flush=True)


if __name__ == "__main__":
    main()
