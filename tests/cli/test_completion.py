"""What a shell is told of `--set`."""

from __future__ import annotations

import os
import subprocess
import sys

from seqtrain.cli.completion import complete_override


def test_keys_and_values_are_completed() -> None:
    assert complete_override("model.poo") == ["model.pooling="]
    assert {"model.rnn=gru", "model.rnn=lstm"} <= {*complete_override("model.rnn=")}
    assert complete_override("data.lowercase=t") == ["data.lowercase=true"]
    assert complete_override("training.monitor=acc") == ["training.monitor=accuracy"]
    assert "training." in complete_override("tr")[0]
    assert complete_override("model.no_such_key=") == []


def test_the_shell_is_told() -> None:
    told = {
        "_SEQTRAIN_COMPLETE": "complete_bash",
        "COMP_WORDS": "seqtrain fit c.yaml --set data.token",
        "COMP_CWORD": "4",
    }
    script = "from seqtrain.cli.main import program; program()(prog_name='seqtrain')"
    ended = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **told}, capture_output=True, text=True
    )
    assert ended.stdout.split() == ["data.tokenizer="]
