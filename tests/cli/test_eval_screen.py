"""The confusion matrix on a screen: what heads its columns, and in which order."""

from __future__ import annotations

import io

import torch
from rich.console import Console

from seqtrain.cli.output.score_screen import print_scores
from seqtrain.evaluation.metrics import Scores, score


def matrix_lines(labels: list[str]) -> list[list[str]]:
    """Return the words of each line of the matrix, for data where class i is answered i + 1."""
    count = len(labels)
    logits = torch.eye(count).roll(1, dims=1)
    scores = score(logits, torch.arange(count), torch.ones(count, dtype=torch.int64), labels)
    lines = shown(scores, 80, None).splitlines()
    start = next(i for i, line in enumerate(lines) if "predicted" in line)
    return [lines[start].split(), *(line.split() for line in lines[start + 2 : start + 2 + count])]


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


def scored(labels: list[str], wrong: int) -> Scores:
    """Return scores of one example per class, of which the first ones are taken for the last."""
    count = len(labels)
    answers = torch.arange(count).index_fill(0, torch.arange(wrong), count - 1)
    logits = torch.nn.functional.one_hot(answers, count).double() * 9
    return score(logits, torch.arange(count), torch.full((count,), 7), labels)


def shown(scores: Scores, width: int, most: int | None) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_scores(console, scores, "test", most)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_of_many_classes_the_worst_are_shown_and_the_mean() -> None:
    labels = [f"class{number}" for number in range(150)]
    text = shown(scored(labels, wrong=3), 80, most=20)
    assert "worst 10 classes" in text
    assert "all 150, mean" in text
    rows = [line.split()[0] for line in text.splitlines() if line.startswith(" class")]
    assert rows[:4] == ["class0", "class1", "class2", "class149"]
    assert len(rows) == 10 + 3  # and the most frequent mistakes
    every = shown(scored(labels, wrong=3), 80, most=None)
    assert sum(line.startswith(" class") for line in every.splitlines()) == 1 + 150 + 3


def test_a_class_without_examples_and_answers_counts_in_no_mean() -> None:
    labels = torch.tensor([0, 1, 0, 1])
    logits = torch.nn.functional.one_hot(labels, 3).double() * 9
    scores = score(logits, labels, torch.full((4,), 7), ["a", "b", "never"])
    (row,) = [line for line in shown(scores, 80, most=None).splitlines() if "mean" in line]
    assert row.split()[-4:] == ["100.00%", "100.00%", "100.00%", "4"]


def test_nothing_is_said_of_mistakes_where_there_are_none() -> None:
    text = shown(scored([f"class{number}" for number in range(30)], wrong=0), 80, most=20)
    assert "mistakes" not in text
    assert " 7 " in text  # one length, not "7 to 7"
    assert "7 to 7" not in text


def test_a_matrix_without_room_gives_way_to_the_mistakes() -> None:
    scores = scored([f"a long label {number}" for number in range(12)], wrong=2)
    assert "true \\ predicted" in shown(scores, 120, most=20)
    narrow = shown(scores, 50, most=20)
    assert "true \\ predicted" not in narrow
    assert "most frequent mistakes" in narrow
