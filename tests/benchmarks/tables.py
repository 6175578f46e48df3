"""Accuracy of `init` and `fit` on tables with one row per time step, and of models without order.

    python tests/benchmarks/tables.py TRAIN TEST... [--seeds 0,1,2]
        [--init "--label COLUMN --id COLUMN"] [--set KEY=VALUE]...

For each pair of files, `seqtrain init` and `seqtrain fit` run once per seed, unedited. They are
compared with a linear SVM (C is chosen by three folds of train) and with scikit-learn's
gradient-boosted trees (at most 4,000). Both see aggregates of each sequence: the length, counts of
the tokens of each column (trees: the 300 most frequent tokens), count, minimum, maximum, mean,
standard deviation, first, last and nine quantiles of each number column, and the row features.
The trees also see the statistics of numbers within the 60 most frequent tokens, if there is one
column of tokens, or if data.steps names it with `by`. The script prints accuracy, macro F1 and
processor seconds.
"""

from __future__ import annotations

import json
import resource
import shlex
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from common import fit, make_parser, seqtrain
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

from seqtrain.config import Config, load_config
from seqtrain.sequences.examples import Example, Steps
from seqtrain.sequences.sources import config_source
from tests.helpers.reading import read_examples

MOST_TOKENS, MOST_TREES, MOST_GROUPS = 300, 4000, 60
QUANTILES = np.arange(1, 10) / 10


def processor_seconds() -> float:
    """Return the processor time of this process and of the commands that it ran."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage)


def read(config: Config, path: str) -> tuple[list[Example], list[str]]:
    """Read the sequences of a file and their labels."""
    rows = [row for row in read_examples(config_source(config.data, path)) if not row.problem]
    return rows, [", ".join(row.labels or ()) for row in rows]


def steps_of(row: Example) -> Steps:
    """Return the time steps of a row of a table with a row per time step."""
    assert isinstance(row.sequence, Steps), "the config has data.steps"
    return row.sequence


def tokens_of(row: Example) -> Counter[tuple[int, str]]:
    """Return the counts of the tokens of each column of the steps, and of the row features."""
    columns = [*steps_of(row).tokens, *(row.static.tokens if row.static else ())]
    return Counter((n, token) for n, column in enumerate(columns) for token in column.cells())


def statistics(numbers: Any) -> list[float]:
    """Return statistics of each column of numbers (T, F); NaN if all are missing."""
    found = list[float]()
    for column in numbers.T:
        known = column[~np.isnan(column)]
        found.append(len(known))
        if len(known) == 0:
            found += [np.nan] * (6 + len(QUANTILES))
            continue
        found += [known.min(), known.max(), known.mean(), known.std(), known[0], known[-1]]
        found += np.quantile(known, QUANTILES).tolist()
    return found


def numbers_of(row: Example, column: int | None, groups: list[str]) -> list[float]:
    """Return the length, statistics of all numbers and within tokens, and the row features."""
    steps = steps_of(row)
    found = [float(len(steps)), *statistics(steps.numbers)]
    for token in groups if column is not None else ():
        is_token = [cell == token for cell in steps.tokens[column or 0].cells()]
        found += statistics(steps.numbers[is_token])
    return found + (row.static.numbers[0].tolist() if row.static else [])


def grouping_column(config: Config) -> int | None:
    """Return the token column within whose tokens numbers are aggregated, or None."""
    kinds: dict[str, Any] = dict(config.data.steps or {})
    tokens = [name for name, kind in kinds.items() if "token" in kind]
    named = [tokens.index(kind["by"]) for kind in kinds.values() if "by" in kind]
    has_numbers = len(tokens) < len(kinds)
    return named[0] if named else 0 if len(tokens) == 1 and has_numbers else None


def features(
    train: list[Example], test: list[Example], column: int | None
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return counts, numbers, and numbers within tokens as well, of train and test."""
    seen: Counter[tuple[int, str]] = Counter()
    for row in train:
        seen.update(tokens_of(row))
    known = {token: n for n, (token, _) in enumerate(seen.most_common())}
    groups = [token for number, token in known if number == column][:MOST_GROUPS]
    all_counts, plain, grouped = list[Any](), list[Any](), list[Any]()
    for rows in (train, test):
        counts = sparse.lil_matrix((len(rows), len(known)))
        for number, row in enumerate(rows):
            for token, count in tokens_of(row).items():
                if token in known:
                    counts[number, known[token]] = np.log1p(count)
        all_counts.append(counts.tocsr())
        plain.append(np.nan_to_num(np.array([numbers_of(row, None, []) for row in rows])))
        grouped.append(np.array([numbers_of(row, column, groups) for row in rows]))
    return all_counts, plain, grouped


def score(name: str, expected: list[str], predicted: Any, began: float) -> None:
    accuracy = float(np.mean(np.array(expected) == predicted))
    macro = f1_score(expected, predicted, average="macro")
    took = processor_seconds() - began
    print(f"  {name:12} {accuracy:6.1%}  macro F1 {macro:6.1%}  {took:5.0f} s", flush=True)


def measure(train: str, test: str, given: Any) -> None:
    """Measure one table by all models."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.yaml"
        seqtrain("init", train, "--test", test, "-o", path, *shlex.split(given.init))
        config = load_config(path)
        sequences, labels = read(config, train)
        tested, expected = read(config, test)
        majority = Counter(labels).most_common(1)[0][0]
        print(
            f"{train}: {len(sequences):,} and {len(tested):,} sequences, {len(set(labels))} "
            f"classes; the most frequent: {expected.count(majority) / len(expected):.1%}"
        )
        for seed in given.seeds.split(","):
            began, run = processor_seconds(), Path(folder) / f"run-{seed}"
            ended = fit(path, [f"seed={seed}", *given.set], run)[-1]
            took = processor_seconds() - began
            scores = json.loads((run / "test.json").read_text())
            print(
                f"  seqtrain {seed}   {scores['accuracy']:6.1%}  macro F1 {scores['macro_f1']:6.1%}"
                f"  {took:5.0f} s  {ended['monitor']} before a refit {ended['best_value']:.1%}",
                flush=True,
            )
    counts, plain, grouped = features(sequences, tested, grouping_column(config))
    learn, judge = (sparse.hstack(pair).tocsr() for pair in zip(counts, plain, strict=True))
    began, svm = processor_seconds(), make_pipeline(MaxAbsScaler(), LinearSVC())
    search = GridSearchCV(svm, {"linearsvc__C": [0.01, 0.1, 1.0, 10.0]}, cv=3)
    score("linear SVM", expected, search.fit(learn, labels).predict(judge), began)
    rounds = max(5, min(100, MOST_TREES // len(set(labels))))
    began = processor_seconds()
    trees = HistGradientBoostingClassifier(random_state=0, max_iter=rounds)
    learn, judge = (
        np.hstack([own[:, :MOST_TOKENS].toarray(), numbers])
        for own, numbers in zip(counts, grouped, strict=True)
    )
    seen = ~np.isnan(learn).all(axis=0)  # scikit-learn fails on a column without any number
    learn, judge = learn[:, seen], judge[:, seen]
    score("trees", expected, trees.fit(learn, labels).predict(judge), began)


def main() -> None:
    parser = make_parser(__doc__, config=False)
    parser.add_argument("files", nargs="+", metavar="TRAIN TEST")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--init", default="", help="options of init")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    for train, test in zip(given.files[::2], given.files[1::2], strict=True):
        measure(train, test, given)


if __name__ == "__main__":
    main()
