"""What many write to classify texts: pad, pack, nn.GRU, Adam, one epoch, then the test file.

    python tests/benchmarks/packed_script.py TRAIN TEST [--sequence text] [--label label]
                                             [--hidden 128] [--batches N]

TRAIN and TEST are .jsonl, .csv or .tsv with a header, also under .gz. Random batches of 64, the
20,000 most frequent words. Prints one JSON object: seconds of reading, of the training batches run
(N at most, of an epoch's `train_batches`) and of scoring the test file, and its accuracy.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

BATCH_SIZE, VOCAB_SIZE, PAD, UNKNOWN = 64, 20_000, 0, 1
Examples = list[tuple[Tensor, int]]


class Classifier(nn.Module):
    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB_SIZE, size, padding_idx=PAD)
        self.gru = nn.GRU(size, size, batch_first=True)
        self.head = nn.Linear(size, classes)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        vectors = self.embedding(ids)
        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        return self.head(self.gru(packed)[1][-1])


def read(path: str, sequence: str, label: str) -> list[tuple[list[str], str]]:
    """Return the words and the label of each row."""
    opener = gzip.open if path.endswith(".gz") else open
    csv.field_size_limit(1 << 30)
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        if ".jsonl" in path:
            rows = [json.loads(line) for line in file]
        else:
            tabs = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
            rows = list(csv.DictReader(file, **(tabs if ".tsv" in path else {})))
    words = re.compile(r"\w+|[^\w\s]")
    return [(words.findall(row[sequence].lower()), str(row[label])) for row in rows]


def batches(examples: Examples) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield padded ids, lengths and labels."""
    for start in range(0, len(examples), BATCH_SIZE):
        sequences, labels = zip(*examples[start : start + BATCH_SIZE], strict=True)
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        yield pad_sequence(sequences, batch_first=True), lengths, torch.tensor(labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--sequence", default="text")
    parser.add_argument("--label", default="label")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--batches", type=int, default=1_000_000)
    given = parser.parse_args()
    torch.manual_seed(0)
    times = [time.perf_counter()]
    train, test = (read(path, given.sequence, given.label) for path in (given.train, given.test))
    counts = Counter(word for words, _ in train for word in words)
    ids = {word: i + 2 for i, (word, _) in enumerate(counts.most_common(VOCAB_SIZE - 2))}
    classes = {label: i for i, label in enumerate(sorted({label for _, label in train}))}
    examples, tests = (
        [
            (torch.tensor([ids.get(w, UNKNOWN) for w in words] or [UNKNOWN]), classes[label])
            for words, label in rows
        ]
        for rows in (train, test)
    )
    order = torch.randperm(len(examples)).tolist()
    model = Classifier(given.hidden, len(classes))
    optimizer = torch.optim.Adam(model.parameters())
    times.append(time.perf_counter())
    done, correct = 0, 0
    for steps, lengths, labels in islice(batches([examples[i] for i in order]), given.batches):
        loss = nn.functional.cross_entropy(model(steps, lengths), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
    times.append(time.perf_counter())
    model.eval()
    with torch.no_grad():
        for steps, lengths, labels in batches(tests):
            correct += int((model(steps, lengths).argmax(1) == labels).sum())
    times.append(time.perf_counter())
    read_seconds, train_seconds, test_seconds = (b - a for a, b in pairwise(times))
    figures = {
        "read_seconds": read_seconds,
        "train_seconds": train_seconds,
        "batches": done,
        "train_batches": -(-len(examples) // BATCH_SIZE),
        "test_seconds": test_seconds,
        "accuracy": correct / len(tests),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
