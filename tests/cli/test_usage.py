"""Usage: help, version, wrong options, and the `config` verb."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqtrain import __version__
from seqtrain.cli.main import COMMANDS
from seqtrain.cli.options import complete_override
from seqtrain.config import load_config
from tests.helpers.tiny import listing


@pytest.mark.parametrize("verb", [[], *([name] for name in COMMANDS)])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(cli, verb, option):
    ended = cli(*verb, option)
    assert "Usage: seqtrain" in ended.out
    assert ended.err == ""


def test_each_command_has_a_line_of_help(cli):
    lines = cli("--help").out.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    assert all(len(line) <= 80 for line in lines)


def test_no_arguments_show_the_help(cli):
    assert cli().out == cli("--help").out


def test_version(cli):
    assert cli("--version").out == f"seqtrain {__version__}\n"


def test_resolved_config_loads_back(project, cli):
    ended = cli("config", "c.yaml", "--set", "model.rnn=lstm")
    assert "# default" in ended.out
    (project / "again.yaml").write_text(ended.out)
    assert load_config("again.yaml") == load_config("c.yaml", ["model.rnn=lstm"])


def test_the_shell_completes_keys_and_values():
    assert {"model.rnn=gru", "model.rnn=lstm"} <= {*complete_override("model.rnn=")}
    assert complete_override("model.no_such_key=") == []
    given = {"COMP_WORDS": "seqtrain fit c.yaml --set data.token", "COMP_CWORD": "4"}
    script = "from seqtrain.cli.main import program; program()(prog_name='seqtrain')"
    environment = {**os.environ, **given, "_SEQTRAIN_COMPLETE": "complete_bash"}
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.stdout.split() == ["data.tokenizer="]


@pytest.mark.parametrize(
    ("packages", "words", "extra"),
    [
        (["tokenizers"], ["fit", "c.yaml", "--set", "data.tokenizer=bpe"], "bpe"),
        (["torch.utils.tensorboard"], ["fit", "c.yaml", "--log", "tensorboard"], "tensorboard"),
        (["pyarrow"], ["predict", "new.parquet", "r"], "parquet"),
        (["compression.zstd", "backports.zstd"], ["predict", "new.tsv.zst", "r"], "zstd"),
        (["onnxruntime"], ["export", "r", "new"], "export"),
        (["optuna"], ["tune", "c.yaml", "--run-dir", "new"], "tune"),
    ],
)
def test_a_package_that_is_missing_is_named_with_how_to_install_it(
    begun, cli, monkeypatch, packages, words, extra
):
    for name in ("new.parquet", "new.tsv.zst"):
        Path(name).write_bytes(b"\x28\xb5\x2f\xfd")
    for name in packages:
        monkeypatch.setitem(sys.modules, name, None)
    before = listing(begun)
    assert f"pip install 'seqtrain[{extra}]'" in cli(*words, code=2).err
    assert listing(begun) == before


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["fit", "c.yaml", "--rundir", "x"], "--run-dir"),
        (["fitt", "c.yaml"], "fit"),
        (["evalu"], "eval"),
        (["train", "c.yaml"], "seqtrain fit c.yaml"),
        (["score", "r"], "seqtrain eval r"),
        (["search", "c.yaml", "--trials", "3"], "seqtrain tune c.yaml --trials 3"),
        (["fit", "c.yaml", "--epochs", "3"], "--set training.max_epochs=3"),
        (["tune", "c.yaml", "--batch-size=4"], "--set batching.batch_size=4"),
        (["fit", "--weight-decay", "0.1", "c.yaml"], "--set training.weight_decay=0.1"),
        (["init", "a.csv", "--target", "y"], "--label"),
        (["init", "a.csv", "--label-separator", "|"], "--set data.label_separator=|"),
        (["predict", "a.csv", "--probs"], "--probabilities"),
    ],
)
def test_a_misspelt_command_or_option_gets_the_nearest_one(cli, words, meant):
    [problem] = cli(*words, code=2).problems
    assert meant in problem.replace(words[0], "", 1).split("see:")[0]
