"""The confusion matrix on a screen: what heads its columns, and in which order."""

from __future__ import annotations

import io

import torch
from rich.console import Console

from seqtrain.cli.output.eval_screen import score_tables
from seqtrain.inference.metrics import score


def matrix_lines(labels: list[str]) -> list[list[str]]:
    """Return the words of each line of the matrix, for data where class i is answered i + 1."""
    count = len(labels)
    logits = torch.eye(count).roll(1, dims=1)
    scores = score(logits, torch.arange(count), torch.ones(count, dtype=torch.int64), labels)
    console = Console(file=io.StringIO(), width=80)
    console.print(list(score_tables(scores, "test"))[2])
    assert isinstance(console.file, io.StringIO)
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    return [line for line in lines if len(line) > 1]


def test_labels_that_are_numbers_stand_in_their_order_and_head_their_columns() -> None:
    labels = sorted(str(number) for number in range(11))  # as the model has them: 0, 1, 10, 2
    head, *rows = matrix_lines(labels)
    assert head == ["true", "\\", "predicted", *map(str, range(11))]
    assert [row[0] for row in rows] == [str(number) for number in range(11)]
    assert all(len(row) == 12 for row in rows)
    # "1" stands before "10" in the model, so 1 was answered 10
    assert rows[1][1 + 10] == "1"


def test_long_labels_are_lettered() -> None:
    head, first, second = matrix_lines(["negative review", "positive review"])
    assert head == ["true", "\\", "predicted", "A", "B"]
    assert first == ["A", "negative", "review", "·", "1"]
    assert second == ["B", "positive", "review", "1", "·"]
