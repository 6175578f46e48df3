"""Scores on a screen: the confusion matrix, many classes, and what `--all` adds."""

import io

import pytest
import torch
from rich.console import Console

from seqtrain.cli.screens.scores import note_comparisons, print_scores
from seqtrain.evaluation.scores import Scores
from seqtrain.evaluation.scoring import score


def scored(labels: list[str], wrong: int) -> Scores:
    """Return scores of one example per class, of which the first ones are taken for the last."""
    count = len(labels)
    predicted = torch.arange(count).index_fill(0, torch.arange(wrong), count - 1)
    logits = torch.nn.functional.one_hot(predicted, count).double() * 9
    return score(logits, torch.arange(count), torch.full((count,), 7), labels)


def shown(scores: Scores, width: int = 80, *, every: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    print_scores(console, scores, "test", every=every)
    return console.file.getvalue().splitlines()


def test_numbers_stand_in_their_order_and_head_their_columns():
    labels = sorted(str(number) for number in range(11))  # as the model has them: 0, 1, 10, 2
    rows = [line.split() for line in shown(scored(labels, wrong=2))]
    start = next(i for i, row in enumerate(rows) if "predicted" in row)
    assert rows[start] == ["label", "\\", "predicted", *map(str, range(11))]
    matrix = rows[start + 2 : start + 13]
    assert [row[0] for row in matrix] == [str(number) for number in range(11)]
    assert matrix[1][1 + 9] == "1"  # "9" is the model's last class


def test_the_matrix_gives_way_to_a_list_where_there_is_no_room():
    scores = scored(["negative review", "neutral review", "positive review"], wrong=1)
    assert "label \\ predicted" in "\n".join(shown(scores, 80))
    narrow = "\n".join(shown(scores, 50))
    assert "label \\ predicted" not in narrow
    assert "confused: label" in narrow


def test_of_many_classes_the_worst_are_shown_and_the_mean():
    scores = scored([f"class{number}" for number in range(150)], wrong=3)
    lines = shown(scores)
    rows = [line.split()[0] for line in lines if line.startswith(" class")]
    assert rows[:4] == ["class0", "class1", "class2", "class149"]
    assert len(rows) == 10 + 3  # and the most frequent mistakes
    assert any("mean of 150" in line for line in lines)
    assert sum("───" in line for line in lines) == 3
    assert lines[-1].startswith("calibration error ")
    every = shown(scores, every=True)
    assert sum(line.startswith(" class") for line in every) == 1 + 150 + 3
    assert any("most confident" in line for line in every)
    assert ["7", "7", "150", "98.00%"] in [line.split() for line in every]  # of all lengths


def test_rows_of_labels_that_the_model_lacks_stand_in_both_tables():
    logits = torch.nn.functional.one_hot(torch.tensor([0, 1, 1, 1]), 2).double() * 9
    labels = torch.tensor([0, 1, -1, -1])
    lines = shown(score(logits, labels, torch.full((4,), 7), ["no", "yes"]))
    rows = [line.split() for line in lines]
    starts = [row[:6] for row in rows]
    assert ["(unknown", "0.00%", "0.00%", "0.00%", "-", "-"] in starts
    assert ["mean", "of", "3", "44.44%", "66.67%", "50.00%"] in starts
    assert ["(unknown", "label)", "·", "2"] in rows


@pytest.mark.parametrize(
    ("monitor", "is_enough"), [("accuracy", True), ("macro_f1", False), ("loss", True)]
)
def test_branches_are_judged_by_the_monitored_metric(monitor, is_enough, capsys):
    labels, lengths = torch.tensor([0] * 8 + [1, 1]), torch.full((10,), 7)
    decided = torch.tensor([0] * 7 + [1, 1, 0])  # eight of ten are right, with one of the rare
    whole = score(torch.eye(2)[decided] * 9, labels, lengths, ["no", "yes"])
    branch = score(torch.eye(2)[[0] * 10] * 9, labels, lengths, ["no", "yes"])
    assert whole.accuracy == branch.accuracy
    note_comparisons(whole, {"ngrams": branch}, monitor)
    assert ("enough alone" in capsys.readouterr().err) == is_enough
