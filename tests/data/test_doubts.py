"""Data that is clearly read wrongly draws a line that names the key to change."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import Config, config_from_mapping
from seqtrain.data.dataset import prepare
from seqtrain.data.summary import summarize, warnings

Write = Callable[[str, str | list[tuple[str, str]]], str]
MakeConfig = Callable[..., Config]


def genes(count: int, seed: int) -> list[tuple[str, str]]:
    """Return texts without blanks; the letters tell the label."""
    draw = random.Random(seed)
    labels = [draw.choice(["at", "cg"]) for _ in range(count)]
    return [("".join(draw.choices(label.upper(), k=12)), label) for label in labels]


@pytest.fixture
def warned(write: Write, make_config: MakeConfig) -> Callable[..., list[str]]:
    def run(train: Any, validation: Any = None, **keys: Any) -> list[str]:
        if validation is not None:
            keys["validation"] = write("validation.tsv", validation)
        config = make_config(train=write("train.tsv", train), **keys)
        data = prepare(config, cache_folder=None)
        return warnings(data, summarize(data), config.data)

    return run


def test_texts_without_blanks_read_as_words(warned: Callable[..., list[str]]) -> None:
    line = warned(genes(60, 0), genes(20, 1))[-1]
    assert line.startswith("nearly all sequences are one token, and ")
    assert "% of validation's are unknown" in line
    assert "try data.tokenizer: char" in line
    lines = warned(genes(60, 0), genes(20, 1), tokenizer="char")
    assert not any("one token" in line for line in lines)
    assert any("occur once or twice" in line for line in warned(genes(60, 0)))


def test_single_known_words_are_fine(warned: Callable[..., list[str]]) -> None:
    words = [(word, "xy"[i % 2]) for i, word in enumerate("abcdef")] * 3
    assert warned(words, [("a", "x"), ("b", "y"), ("a b", "x")]) == [
        "validation: 2 sequences (66.7%) are in train too"
    ]


@pytest.mark.parametrize("compared", [2, 2**23])
def test_equal_sequences_under_several_labels(
    warned: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, compared: int
) -> None:
    monkeypatch.setattr("seqtrain.data.store.COMPARED", compared)
    rows = [("a b", "x"), ("c", "y"), (" A B", "y"), ("a b", "x"), ("d", "x"), ("d", "y")]
    (line,) = warned(rows, [("e f", "x"), ("g", "y")])
    assert line.startswith("train: 5 rows hold 2 sequences under several labels (lines ")
    assert "(lines 2 and 4, 6 and 7)" in line
    assert "data.label" in line


def test_validation_that_is_all_in_train(warned: Callable[..., list[str]]) -> None:
    rows = [("a b", "x"), ("c", "y"), ("d e", "y"), ("f", "x")]
    line = warned(rows, rows[:2])[0]
    assert line.startswith("validation: every sequence is in train too")
    assert "data.validation: 0.1" in line


def test_a_header_read_as_data(warned: Callable[..., list[str]]) -> None:
    rows = [(f"word{i} and more", "xy"[i % 2]) for i in range(40)]
    keys = {"sequence": 0, "label": 1}
    (line,) = [line for line in warned(rows, rows[:4], **keys) if "header" in line]
    assert line == (
        "train: no other row has the label of line 1, 'label'; if that line is a header, set "
        "data.header: true"
    )
    assert not any("header" in line for line in warned(rows, rows[:4], **keys, header=True))
    assert not any("header" in line for line in warned(rows, rows[:4]))


@pytest.mark.parametrize(
    ("scale", "keys", "said"),
    [
        (1, {}, True),
        (1, {"kind": "features"}, False),
        (1, {"kind": "tokens"}, False),
        (0.37, {}, False),
    ],
)
def test_whole_numbers_of_one_channel_that_may_be_symbols(
    tmp_path: Path, scale: float, keys: dict[str, str], said: bool
) -> None:
    ids = np.random.default_rng(0).integers(0, 900, size=200)
    values = ids if scale == 1 else ids * scale
    path = str(tmp_path / "ids.npz")
    np.savez(path, values=values, lengths=np.full(40, 5), labels=np.arange(40) % 2)
    config = config_from_mapping({"data": {"train": path, "validation": 0.2, **keys}})
    data = prepare(config, cache_folder=None)
    lines = [line for line in warnings(data, summarize(data), config.data) if "whole" in line]
    assert len(lines) == said
    if said:
        assert "whole numbers in one channel, read as features" in lines[0]
        assert lines[0].endswith("set data.kind: tokens")
