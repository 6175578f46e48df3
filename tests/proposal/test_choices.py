"""Choices of columns that tell what is lost, and commands that read the rest."""

import random
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import parse_config
from tests.proposal.test_forms import draw, sentence, write

__all__ = ["draw"]


def texts(draw: random.Random, rows: int = 80) -> list[list[Any]]:
    """Return rows of a text and its label, of two classes."""
    return [[sentence(draw, f"w{r % 2}"), "np"[r % 2]] for r in range(rows)]


@pytest.mark.parametrize("file", ["x.csv", "X_all.csv", "X_train.csv", "x_data.tsv"])
@pytest.mark.parametrize("folder", [False, True])
def test_a_column_named_label_counts_more_than_the_name_of_a_file(
    tmp_path, monkeypatch, draw, cli, file, folder
):
    monkeypatch.chdir(tmp_path)
    path = Path("own") / file
    write(path, ["text", "label"], texts(draw), "\t" if file.endswith("tsv") else ",")
    cli("init", "own" if folder else path, "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.sequence, data.label) == ("text", "label")


@pytest.mark.parametrize("file", ["dev.csv", "test.csv", "valid.csv", "test_data.csv"])
def test_a_file_named_like_a_split_is_train_where_it_is_alone(
    tmp_path, monkeypatch, draw, cli, file
):
    monkeypatch.chdir(tmp_path)
    write(Path(file), ["text", "label"], texts(draw))
    said = cli("init", file, "-o", "c.yaml").err
    assert f"init {file}" not in said
    assert parse_config(Path("c.yaml").read_text()).data.train == file
