"""`predict --steps` and `eval --steps`: a row per step, the last the plain answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.tiny import CONFIG, trained_folder

TEXTS = ["Rise the climb", "fall", "the sink, the drop", "never seen words"]


def steps_of(out: str, count: int) -> list[list[dict[str, Any]]]:
    """Return the rows of jsonl by the sequence that they are of."""
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["index"] for line in lines] == sorted(line["index"] for line in lines)
    return [[line for line in lines if line["index"] == index] for index in range(count)]


@pytest.fixture(scope="module")
def trained_both(tmp_path_factory) -> Path:
    """A run of a bidirectional model that reads the last three of more words."""
    settings = ("model.bidirectional=true", "data.max_length=3", "data.overlong=tail")
    return trained_folder(tmp_path_factory, CONFIG, *settings)


@pytest.mark.parametrize("model", ["trained", "trained_both"])
def test_a_row_a_step_and_the_last_is_the_plain_prediction(model, cli, request):
    run = ("--run", request.getfixturevalue(model) / "run")
    ended = cli("predict", "-", *run, "--steps", stdin="\n".join(TEXTS))
    sequences = steps_of(ended.out, len(TEXTS))
    last_words = slice(-3, None) if model == "trained_both" else slice(None)
    read = [["rise", "the", "climb"], ["fall"], ["the", "sink", ",", "the", "drop"]]
    assert [[row["token"] for row in steps] for steps in sequences[:3]] == [
        words[last_words] for words in read
    ]
    assert [[row["step"] for row in steps] for steps in sequences] == [
        list(range(1, len(steps) + 1)) for steps in sequences
    ]
    plain = cli("predict", "-", *run, "--format", "jsonl", stdin="\n".join(TEXTS))
    for line, steps in zip(plain.out.splitlines(), sequences, strict=True):
        expected, last = json.loads(line), steps[-1]
        assert last["label"] == expected["label"]
        assert last["probabilities"] == pytest.approx(expected["probabilities"], abs=3e-6)
    assert "1 of 4 sequences" in ended.err


def test_symbols_and_top_k(trained_tokens, cli):
    out = cli("predict", "-", "--run", trained_tokens / "run", "--steps", "--top-k", 1, stdin="a b")
    (steps,) = steps_of(out.out, 1)
    assert [row["token"] for row in steps] == ["a", "b"]
    assert all(list(row["probabilities"]) == [row["label"]] for row in steps)


def test_eval_scores_shares_of_each_sequence(beside, cli):
    plain = cli("eval", "run", "--json").json
    scores = cli("eval", "run", "--steps", "--json").json
    by_share = scores.pop("by_share")
    assert scores == plain
    assert [row["share"] for row in by_share] == [n / 10 for n in range(1, 11)]
    assert by_share[-1]["accuracy"] == plain["accuracy"]
    table = cli("eval", "run", "--steps").out
    assert all(f" {n}0% " in table for n in range(1, 11))
    assert "same label as at the end" in table
