"""`fit` with a section pretraining, and `reconstruct`."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from seqtrain.api.recorder import Recorder
from seqtrain.data import encoding
from seqtrain.signals import StopSignals
from seqtrain.training.token_prediction import TokenPrediction
from tests.helpers.tiny import Cli, listing, rows

AUTOENCODER = ("--set", "pretraining.objective=autoencoder", "--set", "pretraining.max_epochs=2")
TIMES = ("seconds", "tokens_per_second", "peak_memory_bytes")
RESULTS = (
    "best/model.safetensors",
    "last/model.safetensors",
    "pretrained/model.safetensors",
    "pretrained/decoder.safetensors",
    "test.json",
)


def metrics(run: str) -> list[dict[str, object]]:
    lines = Path(run, "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]


def test_training_starts_from_the_pretrained_weights(project: Path, cli: Cli) -> None:
    """With a rate that moves nothing, the model at the end has the encoder of the beginning."""
    still = ("--set", "training.lr=1e-30", "--set", "training.max_epochs=1")
    assert cli("fit", "c.yaml", "--run-dir", "plain", *still).code == 0
    assert cli("fit", "c.yaml", "--run-dir", "r", *AUTOENCODER, *still).code == 0
    plain, pretrained, trained = (
        load_file(f"{run}/model.safetensors") for run in ("plain/last", "r/pretrained", "r/last")
    )
    for name, weight in pretrained.items():
        assert torch.allclose(trained[name], weight, atol=1e-20)
        assert torch.allclose(weight, plain[name], atol=1e-20) == name.startswith("head")


def test_metrics_and_screen_tell_of_each_epoch(project: Path, cli: Cli) -> None:
    ended = cli("fit", "c.yaml", "--run-dir", "r", *AUTOENCODER)
    lines = [line for line in metrics("r") if line["event"] == "pretrain"]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert lines[0]["perplexity"] == pytest.approx(torch.tensor(lines[0]["loss"]).exp().item())
    assert lines[0]["validation"] is not None
    assert "pretraining 2: loss" in ended.err
    assert "to pretrain on: 32 sequences" in ended.err


def test_more_files_need_no_labels(project: Path, cli: Cli) -> None:
    texts = [text for text, _ in rows(15, seed=5)]
    (project / "more.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    (project / "more.tsv").write_text("".join(f"{line}\n" for line in ["text", *texts]))
    files = ("--set", "pretraining.data=[more.jsonl, more.tsv]")
    ended = cli("fit", "c.yaml", "--run-dir", "r", *AUTOENCODER, *files)
    assert ended.code == 0
    assert "to pretrain on: 62 sequences" in ended.err
    assert {"more.jsonl", "more.tsv"} <= json.loads(Path("r/environment.json").read_text())[
        "data"
    ].keys()


def test_words_of_further_files_are_known(project: Path, cli: Cli) -> None:
    (project / "more.tsv").write_text("text\nrise\nfall soar soar\n")
    keys = ("--set", "pretraining.data=[more.tsv]", "--set", "data.min_count=2")
    assert cli("fit", "c.yaml", "--run-dir", "r", *AUTOENCODER, *keys).code == 0
    tokens = json.loads(Path("r/best/vocabulary.json").read_text())["tokens"]
    assert "soar" in tokens
    labels = json.loads(Path("r/best/model.json").read_text())["preprocessing"]["labels"]
    assert labels == ["down", "up"]
    assert cli("eval", "r", "--split", "train").code == 0
    (project / "more.tsv").write_text("text\nrise\nrise rise soar soar\n")
    ended = cli("eval", "r", "--split", "train")
    assert ended.code == 2
    assert ended.problems[0].startswith("seqtrain: more.tsv: changed since the run: SHA-256 ")


def test_loss_beyond_measure_is_still_reported(project: Path, cli: Cli) -> None:
    keys = ("--set", "pretraining.lr=1000", "--set", "pretraining.max_epochs=20")
    ended = cli("fit", "c.yaml", "--run-dir", "r", *AUTOENCODER[:2], *keys)
    assert ended.code in (0, 3)
    losses = [line["loss"] for line in metrics("r") if line["event"] == "pretrain"]
    assert max(losses) > 710, "a loss whose perplexity is beyond a float's range"


@pytest.mark.parametrize("objective", ["autoencoder", "language_model"])
def test_stopped_after_every_step_it_ends_with_equal_bits(
    project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, objective: str
) -> None:
    keys = (*AUTOENCODER, "--set", f"pretraining.objective={objective}")
    cli("fit", "c.yaml", "--run-dir", "whole", *keys)

    told: list[str] = []
    patience = asked = 0
    answer = Recorder.answer

    def stop_soon(self: Recorder, signals: StopSignals) -> None:
        """Stopped when asked once more than in vain: where scoring is due, before its end."""
        nonlocal asked
        asked += 1
        signals.received = signal.SIGTERM if asked > patience else None
        answer(self, signals)

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "answer", stop_soon)
        resume: tuple[str, ...] = ()
        while (ended := cli("fit", "c.yaml", "--run-dir", "parts", *keys, *resume)).code == 143:
            told.append(ended.problems[-1].partition(", saved; go on with: ")[0])
            patience = patience + 1 if told[-1:] == told[-2:-1] else 0
            assert patience < 20
            asked = 0
            resume = ("--resume",)
    told = [*dict.fromkeys(told)]
    assert ended.code == 0
    assert told[:3] == [
        f"seqtrain: stopped by SIGTERM after pretraining step {n}" for n in (1, 2, 3)
    ]
    assert told[-1] == "seqtrain: stopped by SIGTERM after step 8"
    assert metrics("whole") == metrics("parts")
    for name in (*RESULTS, "last/training_state.safetensors"):
        if Path("whole", name).exists():
            assert Path("whole", name).read_bytes() == Path("parts", name).read_bytes()


def test_killed_after_pretraining_it_is_not_done_twice(
    project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("fit", "c.yaml", "--run-dir", "r", *AUTOENCODER, "--set", "training.max_epochs=1")
    with monkeypatch.context() as patch:
        patch.setattr(TokenPrediction, "losses", None)
        assert cli("fit", "c.yaml", "--run-dir", "r", *AUTOENCODER, "--resume").code == 0
    cli("fit", "c.yaml", "--run-dir", "whole", *AUTOENCODER)
    for name in RESULTS:
        assert Path("whole", name).read_bytes() == Path("r", name).read_bytes()


def test_further_files_are_encoded_once(
    project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "more.tsv").write_text("text\nrise\nfall zzz\n")
    keys = (*AUTOENCODER, "--set", "pretraining.data=more.tsv")
    assert cli("fit", "c.yaml", "--run-dir", "first", *keys).code == 0
    with monkeypatch.context() as patch:
        patch.setattr(encoding, "read_rows", None)
        assert cli("fit", "c.yaml", "--run-dir", "second", *keys).code == 0
    for name in RESULTS:
        assert Path("first", name).read_bytes() == Path("second", name).read_bytes()
    (project / "more.tsv").write_text("text\nrise\nfall zzz\nsink\n")
    ended = cli("fit", "c.yaml", "--run-dir", "third", *keys)
    assert "to pretrain on: 35 sequences" in ended.err


def test_reconstruct_writes_the_rows_before_a_bad_one(project: Path, cli: Cli) -> None:
    cli("fit", "c.yaml", "--run-dir", "r", *AUTOENCODER)
    for content, number in (("rise\nfall\n \nsink\n", 3), ("rise\nfall\nsink\n\0\n", 4)):
        (project / "bad.txt").write_text(content)
        ended = cli("reconstruct", "bad.txt", "--run", "r")
        assert ended.code == 2
        assert f"bad.txt:{number}" in ended.err
        assert len(ended.out.splitlines()) == number  # a header, and a row for each line before


def test_reconstruct_writes_a_row_for_each(project: Path, cli: Cli) -> None:
    cli("fit", "c.yaml", "--run-dir", "r", *AUTOENCODER)
    ended = cli("reconstruct", "-", "--run", "r", "--max-steps", "4", stdin="Rise zzz\nfall the\n")
    assert ended.code == 0
    header, *written = (line.split("\t") for line in ended.out.splitlines())
    assert header == ["agreement", "sequence", "reconstruction"]
    assert [row[1] for row in written] == ["rise <unk>", "fall the"]
    assert all(len(row[2].split()) <= 4 for row in written)
    ended = cli("reconstruct", "test.tsv", "--run", "r", "--format", "jsonl")
    found = [json.loads(line) for line in ended.out.splitlines()]
    assert [row["index"] for row in found] == list(range(20))
    for row in found:
        same = sum(a == b for a, b in zip(row["sequence"], row["reconstruction"], strict=False))
        longer = max(len(row["sequence"]), len(row["reconstruction"]))
        assert row["agreement"] == pytest.approx(same / longer, abs=1e-6)


def test_runs_without_a_decoder_are_refused(project: Path, cli: Cli, trained: Path) -> None:
    language_model = ("--set", "pretraining.objective=language_model")
    assert cli("fit", "c.yaml", "--run-dir", "r", *language_model).code == 0
    for run in ("r", trained / "run"):
        ended = cli("reconstruct", "test.tsv", "--run", run)
        assert (ended.code, ended.out) == (2, "")
        assert len(ended.problems) == 1
        assert "pretraining.objective: autoencoder" in ended.err


def test_a_damaged_decoder_is_refused(project: Path, cli: Cli) -> None:
    cli("fit", "c.yaml", "--run-dir", "r", *AUTOENCODER)
    path = Path("r/pretrained/decoder.safetensors")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    ended = cli("reconstruct", "test.tsv", "--run", "r")
    assert ended.code == 2
    assert "damaged" in ended.err


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            ["pretraining.objective=autoencoder", "data.kind=features"],
            "which has no tokens to predict",
        ),
        (
            [
                "pretraining.objective=language_model",
                "model.bidirectional=true",
                "model.num_layers=2",
            ],
            "the upper of 2 bidirectional layers see the token",
        ),
        (["pretraining.data=[test.tsv]"], "pretraining.objective is null"),
        (
            ["pretraining.objective=autoencoder", "pretraining.data=[test.foo]"],
            "found 'test.foo'; expected an ending",
        ),
        (["pretraining.objective=autoencoder", "pretraining.data=[absent.tsv]"], "looked for"),
        (["pretraining.objective=bert"], "expected autoencoder, language_model or null"),
        (["pretraining.objective=autoencoder", "pretraining.data=[]"], "a list of file paths"),
        (["pretraining.data=more.tsv"], "pretraining.objective is null"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_written(
    project: Path, cli: Cli, keys: list[str], problem: str
) -> None:
    before = listing(project)
    ended = cli("fit", "c.yaml", *(word for key in keys for word in ("--set", key)))
    assert ended.code == 2
    assert any("pretraining." in line and problem in line for line in ended.problems)
    assert listing(project) == before


def test_bad_rows_of_further_files_are_named(project: Path, cli: Cli) -> None:
    (project / "more.tsv").write_text("text\nrise\n \nfall\n")
    before = listing(project)
    more = ("--set", "pretraining.data=[more.tsv]")
    ended = cli("fit", "c.yaml", *AUTOENCODER, *more, "--quiet")
    assert ended.code == 2
    assert "more.tsv:3" in ended.err
    assert listing(project) == before
