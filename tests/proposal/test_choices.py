"""Choices of columns that tell what is lost, and commands that read the rest."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import parse_config
from seqtrain.proposal import InitOptions, propose
from tests.proposal.test_forms import draw, name, sentence, write

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


MOMENTS = {
    "seconds": lambda at: f"2024-04-{1 + at // 6:02d} {(4 * at) % 24:02d}:{at:02d}:00",
    "am and pm": lambda at: f"04/{13 + at // 6:02d}/2024 {1 + 2 * (at % 6):02d}:{at:02d}:33 AM",
    "weeks": lambda at: f"Week {at + 1}",
    "quarters": lambda at: f"{2000 + at // 4}Q{1 + at % 4}",
    "Unix times": lambda at: str(1716069168000 + 7919000 * at**2),
}


@pytest.mark.parametrize("form", MOMENTS)
@pytest.mark.parametrize("has_names", [True, False])
def test_shuffled_rows_of_things_with_any_name_are_steps_in_time(tmp_path, draw, form, has_names):
    rows = []
    for thing in range(50):
        for at in draw.sample(range(40), 7):
            rows.append([f"S{thing}", MOMENTS[form](at), draw.choice("abc"), "uv"[thing % 2]])
    draw.shuffle(rows)
    names = [name(draw), {"weeks": "week"}.get(form, "charttime"), "event", "label"]
    path = write(tmp_path / "log.csv", names if has_names else [], rows)
    if form == "weeks" and not has_names:  # numbers after a word are no times without a name
        return
    data = parse_config(propose([path], InitOptions()).text).data
    places = names if has_names else [0, 1, 2, 3]
    assert (data.id, data.order, data.label) == (places[0], places[1], places[3])


def test_rows_of_frames_have_a_command_for_their_id(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = [
        [f"S{thing}", f"frame_{at}.jpg", draw.choice("abc"), "uv"[thing % 2]]
        for thing in range(40)
        for at in draw.sample(range(30), 7)
    ]
    draw.shuffle(rows)
    write(Path("log.csv"), ["clip_of", "frame", "event", "label"], rows)
    refused = cli("init", "log.csv", "-o", "c.yaml", code=2).err
    (option,) = re.findall(r"seqtrain init .* (--id \w+)", refused)
    said = cli("init", "log.csv", "-o", "c.yaml", *option.split()).err
    assert "scattered" in said
    assert parse_config(Path("c.yaml").read_text()).data.id == "clip_of"
