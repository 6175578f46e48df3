"""Write the firings data set: a kiln's log, whose class needs actions, temperatures and order.

In each firing three actions stand twice. Its class is the one that comes first while the kiln is
hot. All else is drawn alike for every class, so counts of actions and quantiles of temperatures say
nothing.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

HERE = Path(__file__).parent
SEED = 28
FIRINGS_PER_CLASS = {"train": 150, "validation": 30, "test": 50}
COLUMNS = ("firing", "kiln", "time", "action", "temperature", "class")
DECISIVE = ("vent", "salt", "draw")
"""Each stands twice in a firing: once while the kiln is hot, if its class says so."""
OTHERS = ("stoke", "stoke", "look", "look", "measure", "turn")
CLASSES = (*DECISIVE, "none")
SHORTEST, LONGEST = 14, 32
HOT, COLD = 900, 700
"""Degrees from which on the kiln is hot, and below which it is cold; between them nothing decisive
is done."""

Row = tuple[str, str, str, str, int, str]


def draw_temperatures(steps: int, rng: random.Random) -> list[int]:
    """Draw a curve that is hot two or three times, and cold between, at each of `steps` rows."""
    peaks = rng.choice((2, 3))
    corners = [rng.uniform(80, 500)]
    for _ in range(peaks):
        corners += [rng.uniform(1000, 1250), rng.uniform(300, 650)]
    curve = []
    for step in range(steps):
        at, share = divmod(step / (steps - 1) * (len(corners) - 1.001), 1)
        low, high = corners[int(at)], corners[int(at) + 1]
        curve.append(round(low + share * (high - low) + rng.gauss(0, 15)))
    return curve


def place(label: str, curve: Sequence[int], rng: random.Random) -> dict[int, str] | None:
    """Choose the rows of the decisive actions; None where the curve has too few of a sort."""
    hot = [step for step, degrees in enumerate(curve) if degrees >= HOT]
    cold = [step for step, degrees in enumerate(curve) if degrees < COLD]
    once, twice = (rng.sample(DECISIVE, 3) for _ in range(2))
    heated = 0 if label == "none" else 3
    if len(hot) < 3 or len(cold) < 6:
        return None
    if heated:
        once.remove(label)
        once.insert(0, label)
    chosen = dict(zip(sorted(rng.sample(hot, heated)), once[:heated], strict=True))
    rest = twice if heated else [*once, *twice]
    rng.shuffle(rest)
    return chosen | dict(zip(rng.sample(cold, 6 - heated), rest, strict=True))


def draw_firing(name: str, label: str, rng: random.Random) -> list[Row]:
    """Draw the rows of one firing."""
    decisive = None
    while decisive is None:
        curve = draw_temperatures(rng.randint(SHORTEST, LONGEST), rng)
        decisive = place(label, curve, rng)
    time = datetime(2024, 1, 1, 6) + timedelta(minutes=rng.randrange(300 * 24 * 60))
    rows: list[Row] = []
    kiln = rng.choice("ABC")
    for step, degrees in enumerate(curve):
        time += timedelta(minutes=rng.randint(5, 60))
        action = decisive.get(step) or rng.choice(OTHERS)
        rows.append((name, kiln, time.isoformat(" ", "minutes"), action, degrees, label))
    return rows


def make_splits() -> dict[str, list[list[Row]]]:
    """Draw all firings, as many of each class, shuffled; numbered through all splits."""
    rng, number = random.Random(SEED), 0
    splits: dict[str, list[list[Row]]] = {}
    for split, count in FIRINGS_PER_CLASS.items():
        labels = [label for label in CLASSES for _ in range(count)]
        rng.shuffle(labels)
        splits[split] = []
        for label in labels:
            number += 1
            splits[split].append(draw_firing(f"F{number:04}", label, rng))
    return splits


def write_splits(splits: dict[str, list[list[Row]]], folder: Path) -> None:
    """Write one csv file a split: a header, then a row per action."""
    for split, firings in splits.items():
        with open(folder / f"{split}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(row for firing in firings for row in firing)


def print_counts(splits: dict[str, list[list[Row]]]) -> None:
    """Print firings, rows and lengths of each split."""
    for split, firings in splits.items():
        lengths = sorted(map(len, firings))
        shown = [lengths[int(q * (len(lengths) - 1))] for q in (0, 0.25, 0.5, 0.75, 0.95, 1)]
        print(
            f"{split}: {len(firings)} firings, {sum(lengths)} rows, {len(CLASSES)} classes, "
            f"rows min/25/50/75/95/max {'/'.join(map(str, shown))}"
        )


def summarize(firings: Sequence[Sequence[Row]]) -> tuple[list[list[float]], list[str]]:
    """Describe each firing by its length, counts of actions and quantiles of temperatures."""
    features = []
    for firing in firings:
        actions, degrees = [row[3] for row in firing], sorted(row[4] for row in firing)
        counts = [actions.count(action) for action in (*DECISIVE, *sorted({*OTHERS}))]
        quantiles = [degrees[int(q * (len(degrees) - 1) / 8)] for q in range(9)]
        features.append([float(x) for x in (len(firing), *counts, *quantiles)])
    return features, [firing[0][5] for firing in firings]


def print_baselines(splits: dict[str, list[list[Row]]]) -> None:
    """Print the test accuracy of models of counts and quantiles (needs scikit-learn)."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    (train, labels), (test, expected) = (summarize(splits[name]) for name in ("train", "test"))
    for name, model in {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "gradient-boosted trees": HistGradientBoostingClassifier(random_state=0),
    }.items():
        accuracy = model.fit(train, labels).score(test, expected)
        print(f"{name} on counts and quantiles: {accuracy:.1%} of test right")


def main() -> None:
    """Write the three files and print what they hold."""
    parser = argparse.ArgumentParser(description="Write the firings data set.")
    parser.add_argument("--into", type=Path, default=HERE, help="folder to write to")
    parser.add_argument("--check", action="store_true", help="also print order-free baselines")
    arguments = parser.parse_args()
    splits = make_splits()
    write_splits(splits, arguments.into)
    print_counts(splits)
    if arguments.check:
        print_baselines(splits)


if __name__ == "__main__":
    main()
