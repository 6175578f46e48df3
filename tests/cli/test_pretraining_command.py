"""`fit` with a section pretraining, and `reconstruct`."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.helpers.tiny import CONFIG, metrics, trained_folder

AUTOENCODER = ("--set", "pretraining.objective=autoencoder", "--set", "pretraining.max_epochs=2")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory) -> Path:
    """A folder with `run`, pretrained as an autoencoder. Read only."""
    section = "pretraining: {objective: autoencoder, max_epochs: 2}\n"
    return trained_folder(tmp_path_factory, CONFIG + section)


def test_training_starts_from_the_pretrained_weights(project, cli):
    """With a rate that moves nothing, the model at the end has the encoder of the beginning."""
    still = ("--set", "training.lr=1e-30", "--set", "training.max_epochs=1")
    cli("fit", "c.yaml", "--run-dir", "plain", *still)
    ended = cli("fit", "c.yaml", "--run-dir", "r", *AUTOENCODER, *still)
    assert "pretraining 2: loss" in ended.err
    assert "pretraining: 32 sequences" in ended.err
    plain, pretrained, trained = (
        load_file(f"{run}/model.safetensors") for run in ("plain/last", "r/pretrained", "r/last")
    )
    for name, weight in pretrained.items():
        assert torch.allclose(trained[name], weight, atol=1e-20)
        assert torch.allclose(weight, plain[name], atol=1e-20) == name.startswith("head")
    lines = [line for line in metrics("r") if line["event"] == "pretrain"]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert lines[0]["validation"] is not None


def test_reconstruct_writes_a_row_for_each(pretrained, tmp_path, cli):
    run = ("--run", pretrained / "run")
    ended = cli("reconstruct", "-", *run, "--max-steps", "4", stdin="Rise zzz\nfall the\n")
    header, *written = (line.split("\t") for line in ended.out.splitlines())
    assert header == ["agreement", "sequence", "reconstruction"]
    assert [row[1] for row in written] == ["rise <unk>", "fall the"]
    assert all(len(row[2].split()) <= 4 for row in written)
    ended = cli("reconstruct", pretrained / "test.tsv", *run, "--format", "jsonl")
    found = [json.loads(line) for line in ended.out.splitlines()]
    assert [row["index"] for row in found] == list(range(20))
    for row in found:
        same = sum(a == b for a, b in zip(row["sequence"], row["reconstruction"], strict=False))
        longer = max(len(row["sequence"]), len(row["reconstruction"]))
        assert row["agreement"] == pytest.approx(same / longer, abs=1e-6)
    for content, number in (("rise\nfall\n \nsink\n", 3), ("rise\nfall\nsink\n\0\n", 4)):
        (tmp_path / "bad.txt").write_text(content)
        ended = cli("reconstruct", tmp_path / "bad.txt", *run, code=2)
        assert f"bad.txt:{number}" in ended.err
        assert len(ended.out.splitlines()) == number  # a header, and a row for each line before
