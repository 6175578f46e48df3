"""Accuracy of `init` and `fit` on tables with one row per time step, and of models without order.

    python tests/benchmarks/tables.py TRAIN TEST... [--seeds 0,1,2]
        [--init "--label COLUMN --id COLUMN"] [--set KEY=VALUE]...

For each pair of files, `seqtrain init` and `seqtrain fit` run once per seed, unedited. They are
compared with a linear SVM (C is chosen by three folds of train) and with scikit-learn's
gradient-boosted trees (at most 4,000). Both see the length, counts of the tokens of each column
(trees: the 300 most frequent tokens), and minimum, maximum, mean, standard deviation, first, last
and nine quantiles of each number column. The script prints accuracies and macro F1.
"""

from __future__ import annotations

import json
import shlex
import tempfile
import time
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
from seqtrain.data.sources import config_source
from tests.helpers.reading import read_examples

MOST_TOKENS, MOST_TREES = 300, 4000
QUANTILES = np.arange(1, 10) / 10


def read(config: Config, path: str) -> tuple[list[Any], list[str]]:
    """Read the sequences of a file and their labels."""
    rows = list(read_examples(config_source(config.data, path)))
    return [row.sequence for row in rows], [", ".join(row.labels or ()) for row in rows]


def tokens_of(steps: Any) -> Counter[tuple[int, str]]:
    return Counter((n, token) for n, column in enumerate(steps.tokens) for token in column)


def numbers_of(steps: Any) -> list[float]:
    """Return statistics of each number column of a sequence; zeros if all are missing."""
    found = [float(len(steps))]
    for column in steps.numbers.T:
        known = column[~np.isnan(column)]
        if len(known) == 0:
            found += [0.0] * (6 + len(QUANTILES))
            continue
        found += [known.min(), known.max(), known.mean(), known.std(), known[0], known[-1]]
        found += np.quantile(known, QUANTILES).tolist()
    return found


def features(train: list[Any], test: list[Any]) -> tuple[Any, Any, int]:
    """Return features of both, the most frequent tokens of train first, and how many tokens."""
    seen: Counter[tuple[int, str]] = Counter()
    for steps in train:
        seen.update(tokens_of(steps))
    known = {token: n for n, (token, _) in enumerate(seen.most_common())}
    both = []
    for split in (train, test):
        counts = sparse.lil_matrix((len(split), len(known)))
        for row, steps in enumerate(split):
            for token, count in tokens_of(steps).items():
                if token in known:
                    counts[row, known[token]] = np.log1p(count)
        numbers = np.array([numbers_of(steps) for steps in split])
        both.append(sparse.hstack([counts, numbers]).tocsr())
    return both[0], both[1], len(known)


def score(name: str, expected: list[str], predicted: Any, began: float) -> None:
    accuracy = float(np.mean(np.array(expected) == predicted))
    macro = f1_score(expected, predicted, average="macro")
    print(
        f"  {name:12} {accuracy:6.1%}  macro F1 {macro:6.1%}  {time.time() - began:5.0f} s",
        flush=True,
    )


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
            began, run = time.time(), Path(folder) / f"run-{seed}"
            ended = fit(path, [f"seed={seed}", *given.set], run)[-1]
            scores, took = json.loads((run / "test.json").read_text()), time.time() - began
            print(
                f"  seqtrain {seed}   {scores['accuracy']:6.1%}  macro F1 {scores['macro_f1']:6.1%}"
                f"  {took:5.0f} s  {ended['monitor']} before a refit {ended['best_value']:.1%}",
                flush=True,
            )
    learn, judge, tokens = features(sequences, tested)
    began, svm = time.time(), make_pipeline(MaxAbsScaler(), LinearSVC())
    search = GridSearchCV(svm, {"linearsvc__C": [0.01, 0.1, 1.0, 10.0]}, cv=3)
    score("linear SVM", expected, search.fit(learn, labels).predict(judge), began)
    began, rounds = time.time(), max(5, min(100, MOST_TREES // len(set(labels))))
    trees = HistGradientBoostingClassifier(random_state=0, max_iter=rounds)
    kept = [*range(min(MOST_TOKENS, tokens)), *range(tokens, learn.shape[1])]
    trees.fit(learn[:, kept].toarray(), labels)
    score("trees", expected, trees.predict(judge[:, kept].toarray()), began)


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
