"""`seqtrain check`: every way in a table, exit 0 where they agree and 3 where not."""

from typing import Any

import pytest
import torch

from seqtrain.engines.native.library import why_unavailable
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.batch import Batch

ENGINES = {"torch"} | (set() if why_unavailable() else {"native"})


def test_every_way_and_engine_agree(beside, cli):
    ended = cli("check", "run", "--json")
    result = ended.json
    assert result["passed"] is True
    assert result["num_examples"] == result["available"] == 20
    ways = [(row["way"], row["variant"]) for row in result["differences"]]
    assert len(set(ways)) == len(ways)
    names = {way for way, _ in ways}
    assert names >= {"alone", "batches of 2", "all in one batch", "batches of 16"}
    assert any(name.startswith("padded with") for name in names)
    assert {variant for _, variant in ways} == ENGINES
    assert len(ways) == len(names) * len(ENGINES)
    assert all(row["logits"] <= result["allowed"] for row in result["differences"])
    assert any(row["logits"] > 0 for row in result["differences"])
    table = cli("check", "run")
    assert table.out.startswith("passed: ")
    assert all(name in table.out for name in names | ENGINES)
    assert "20 sequences" in table.err


def test_a_file_without_labels(trained, tmp_path, cli):
    (tmp_path / "in.txt").write_text("rise the climb\nfall\n")
    ended = cli("check", trained / "run" / "best", "--data", tmp_path / "in.txt", "--json")
    assert ended.json["steps"] == 4


@pytest.mark.parametrize("leak", ["batch-mates", "padding"])
def test_answers_that_depend_on_the_batch_are_found(leak, beside, cli, monkeypatch):
    compute = ClassifierNetwork.branch_logits

    def leaky(
        self: ClassifierNetwork, batch: Batch, *rest: Any, **named: Any
    ) -> list[torch.Tensor]:
        rows, longest = batch.input_ids.shape
        (logits,) = compute(self, batch, *rest, **named)
        seen = longest if leak == "padding" else rows
        return [logits + torch.tensor([0.001 * seen, 0.0])]

    monkeypatch.setattr(ClassifierNetwork, "branch_logits", leaky)
    ended = cli("check", "run", code=3)
    assert "batch" in ended.problems[-1]
    assert cli("check", "run", "--json", code=3).json["passed"] is False
