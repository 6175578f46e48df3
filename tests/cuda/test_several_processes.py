"""Two processes with one device each learn what one process learns."""

import os
import subprocess
import sys

import pytest
import safetensors.torch
import torch

from tests.helpers.tiny import Cli, sets

KEYS = sets("model.ngrams=[1, 2]", "model.subwords=[3, 4]", "training.max_epochs=2")


def test_two_ranks_learn_as_one(project, on_cuda, cli: Cli):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two devices")
    fit = ("fit", "c.yaml", "--device", "cuda", "--quiet", *KEYS)
    cli(*fit, "--run-dir", "one")
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [*ranks, "-m", "seqtrain", *fit, "--run-dir", "two"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    one, two = (
        safetensors.torch.load_file(project / run / "best" / "model.safetensors")
        for run in ("one", "two")
    )
    assert one.keys() == two.keys()
    for name, weight in one.items():
        torch.testing.assert_close(two[name], weight, rtol=1e-3, atol=1e-4, msg=name)
