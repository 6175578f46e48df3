"""Write the orders data set: sentences whose class hangs on the order of their words alone.

Every sentence has a twin with exactly the same words in another order and another class, and
twins stand in the same split. So a model that ignores order is right on half the rows at most.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
WORDS = json.loads((HERE / "words.json").read_text(encoding="utf-8"))
PHRASES: dict[str, list[str]] = WORDS["phrases"]
SEED = 20
PAIRS_PER_KIND = {"train": 400, "validation": 50, "test": 50}
SHORTEST, LONGEST = 3, 60
SENTENCES_AROUND = [0] * 20 + [1] * 6 + [2] * 3 + [3, 4, 5, 6]
"""How many sentences that don't matter stand around an order: one entry is drawn a pair."""

Row = tuple[str, str]
"""Label and text."""


@dataclass(frozen=True)
class Kind:
    """One kind of order: two classes, told apart by which thing plays which part.

    Attributes:
        parts: what the parts <A> and <B> mean.
        labels: class where the first thing plays part <A>, class where the second does.
        things: phrases for the first thing, phrases for the second.
        requests: patterns that start with a verb, so that "could you" may stand before them.
        statements: patterns that stand alone.
        tails: what may follow either.
    """

    parts: str
    labels: list[str]
    things: list[list[str]]
    requests: list[str]
    statements: list[str]
    tails: list[str]


def fill(pattern: str, rng: random.Random, used: set[str]) -> str:
    """Replace each {slot} by one of its phrases, by an unused one as long as there is one."""

    def choose(slot: re.Match[str]) -> str:
        options = PHRASES[slot[1]]
        phrase = rng.choice([option for option in options if option not in used] or options)
        used.add(phrase)
        return fill(phrase, rng, used)

    return re.sub(r"\{(\w+)\}", choose, pattern)


def draw_pattern(kind: Kind, rng: random.Random) -> str:
    """Draw one order with its frame, its tail and the sentences around it; slots still open."""
    tail = rng.choice(kind.tails) if rng.random() < 0.3 else ""
    if rng.random() < 0.5:
        order = rng.choice(WORDS["frames"]).replace("{request}", rng.choice(kind.requests) + tail)
    else:
        order = rng.choice(WORDS["leads"]).replace(
            "{statement}", rng.choice(kind.statements) + tail
        )
    places = ["greeting", "before", "before", "after", "after", "thanks"]
    around = Counter(rng.choice(places) for _ in range(rng.choice(SENTENCES_AROUND)))
    sentences = (
        ["{greeting}"] * min(around["greeting"], 1)
        + ["{before}"] * around["before"]
        + [order]
        + ["{after}"] * around["after"]
        + ["{thanks}"] * min(around["thanks"], 1)
    )
    return " ".join(sentences)


def draw_twins(kind: Kind, rng: random.Random) -> tuple[Row, Row]:
    """Draw one text with the two things in either part: the same words, two classes."""
    used: set[str] = set()
    pattern = fill(draw_pattern(kind, rng), rng, used)
    first, second = (fill(rng.choice(phrases), rng, used) for phrases in kind.things)
    texts = (
        capitalize(pattern.replace("<A>", a).replace("<B>", b))
        for a, b in ((first, second), (second, first))
    )
    one, other = zip(kind.labels, texts, strict=True)
    return one, other


def capitalize(text: str) -> str:
    """Begin each sentence with a capital letter."""
    return re.sub(r"(^|[.?] )([a-z])", lambda start: start[1] + start[2].upper(), text)


def words(text: str) -> list[str]:
    """Split a text as the `word` tokenizer does, lower-cased, marks left out."""
    return re.findall(r"\w+", text.lower())


def make_splits() -> dict[str, list[Row]]:
    """Draw all rows: no text twice (case and marks aside), twins in one split, shuffled."""
    rng = random.Random(SEED)
    kinds = [Kind(**entry) for entry in WORDS["kinds"]]
    splits: dict[str, list[Row]] = {}
    seen: set[tuple[str, ...]] = set()
    for split, pairs in PAIRS_PER_KIND.items():
        rows: list[Row] = []
        for kind in kinds:
            wanted = len(rows) + 2 * pairs
            while len(rows) < wanted:
                twins = draw_twins(kind, rng)
                keys = {tuple(words(text)) for _, text in twins}
                fits = all(SHORTEST <= len(key) <= LONGEST for key in keys)
                if fits and len(keys) == 2 and not keys & seen:
                    seen |= keys
                    rows += twins
        rng.shuffle(rows)
        splits[split] = rows
    return splits


def write_splits(splits: dict[str, list[Row]], folder: Path) -> None:
    """Write one tab-separated file a split: a header, then a label and a text a line."""
    for split, rows in splits.items():
        lines = ["label\ttext", *(f"{label}\t{text}" for label, text in rows)]
        (folder / f"{split}.tsv").write_bytes(("\n".join(lines) + "\n").encode())


def order_free_ceiling(rows: list[Row]) -> float:
    """Compute the accuracy that no model of word counts can pass on these rows."""
    labels_of_bag: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for label, text in rows:
        labels_of_bag[tuple(sorted(words(text)))][label] += 1
    return sum(max(labels.values()) for labels in labels_of_bag.values()) / len(rows)


def print_counts(splits: dict[str, list[Row]]) -> None:
    """Print rows, lengths in words and the ceiling of each split."""
    for split, rows in splits.items():
        lengths = sorted(len(words(text)) for _, text in rows)
        shown = [lengths[int(q * (len(lengths) - 1))] for q in (0, 0.25, 0.5, 0.75, 0.95, 1)]
        print(
            f"{split}: {len(rows)} rows, {len({label for label, _ in rows})} classes, "
            f"words min/25/50/75/95/max {'/'.join(map(str, shown))}, "
            f"mean {sum(lengths) / len(lengths):.1f}, "
            f"order-free ceiling {order_free_ceiling(rows):.1%}"
        )


def print_baselines(splits: dict[str, list[Row]]) -> None:
    """Print the test accuracy of logistic regression on word counts (needs scikit-learn)."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    (train_labels, train), (test_labels, test) = (
        zip(*splits[split], strict=True) for split in ("train", "test")
    )
    pattern = r"\w+"
    for name, features in {
        "word counts": CountVectorizer(token_pattern=pattern),
        "tf-idf": TfidfVectorizer(token_pattern=pattern),
        "counts of words and word pairs": CountVectorizer(
            token_pattern=pattern, ngram_range=(1, 2)
        ),
    }.items():
        model = make_pipeline(features, LogisticRegression(max_iter=2000))
        accuracy = model.fit(train, train_labels).score(test, test_labels)
        print(f"logistic regression on {name}: {accuracy:.1%} of test right")


def main() -> None:
    """Write the three files and print what they hold."""
    parser = argparse.ArgumentParser(description="Write the orders data set.")
    parser.add_argument("--into", type=Path, default=HERE, help="folder to write to")
    parser.add_argument("--check", action="store_true", help="also print bag-of-words baselines")
    arguments = parser.parse_args()
    splits = make_splits()
    write_splits(splits, arguments.into)
    print_counts(splits)
    if arguments.check:
        print_baselines(splits)


if __name__ == "__main__":
    main()
