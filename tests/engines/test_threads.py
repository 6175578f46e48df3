"""Threads: a forked process computes, and torch's own threads have nothing to do in training."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from seqtrain.engines.native.library import why_unavailable
from tests.helpers.batches import classify
from tests.helpers.native_cases import Case
from tests.helpers.networks import make_network
from tests.helpers.program import FORKS

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
TRAINING = """
import os, torch
torch.ones(10**6).sum()  # torch starts its threads
others = {*os.listdir("/proc/self/task")} - {str(os.getpid())}
import seqtrain

def seconds():
    paths = [f"/proc/self/task/{one}/stat" for one in others]
    stats = [open(path).read().rpartition(")")[2].split() for path in paths]
    return sum(int(one[11]) + int(one[12]) for one in stats) / os.sysconf("SC_CLK_TCK")

rows = {"text": ["a b c d e f g h"[: 3 + i % 12] for i in range(200)], "label": ["x", "y"] * 100}
config = {
    "data": {"sequence": "text", "label": "label"},
    "model": {"hidden_size": 12, "embedding_dim": 10},
    "training": {"max_epochs": 8},
    "batching": {"batch_size": 8},
}
spent = []
listener = lambda event: spent.append(seconds())
seqtrain.fit(config, train=rows, run_dir="r", progress=False, listener=listener)
assert torch.get_num_threads() == 2
print(len(others), spent[-1] - spent[0])
"""


def compute_and_fork() -> None:
    torch.set_num_threads(2)
    model = make_network(hidden_size=64, pooling=["mean", "max"])
    packed = pack_sequence([torch.arange(1, 28).repeat(20)] * 40)
    with torch.inference_mode():
        expected = classify(model, packed)
        torch.ones(10**7).sum()
        child = os.fork()
        if child == 0:
            torch.ones(10**7).sum()
            os._exit(not torch.allclose(classify(model, packed), expected, atol=1e-5))
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            sys.exit(os.waitstatus_to_exitcode(status))
        time.sleep(0.05)
    os.kill(child, 9)
    sys.exit("the child hangs")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_is_forked_after_computing_computes():
    """However the network came to be: fitted, loaded or unpickled."""
    process = FORKS.Process(target=compute_and_fork)
    process.start()
    process.join()
    assert process.exitcode == 0


def compute_with_fewer_threads() -> None:
    case = Case([40, 31, 30, 9, 8, 7, 2], 33, 48, bidirectional=True, vectors=50)

    def gradients() -> list[torch.Tensor]:
        outputs, last = case.native()
        assert outputs is not None
        loss = outputs.square().sum() + last.square().sum()
        return [*torch.autograd.grad(loss, case.leaves())]

    torch.set_num_threads(1)
    gradients()
    torch.empty(2**23)  # freed memory, which later passes use again; stacks of threads can't
    torch.set_num_threads(3)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    unlimited = resource.getrlimit(resource.RLIMIT_AS)
    room = pages * os.sysconf("SC_PAGE_SIZE") + 2**20
    resource.setrlimit(resource.RLIMIT_AS, (room, unlimited[1]))
    before = len(os.listdir("/proc/self/task"))
    few = gradients()
    assert len(os.listdir("/proc/self/task")) == before
    resource.setrlimit(resource.RLIMIT_AS, unlimited)
    many = gradients()
    assert len(os.listdir("/proc/self/task")) == before + 2
    assert all(map(torch.equal, few, many))


@needs_proc
@pytest.mark.skipif(bool(why_unavailable()), reason="needs the native engine")
def test_results_have_the_same_bits_where_threads_cannot_start():
    """For lack of memory. A run that is resumed with more memory goes on exactly."""
    process = FORKS.Process(target=compute_with_fewer_threads)
    process.start()
    process.join()
    assert process.exitcode == 0


@needs_proc
def test_updates_leave_torchs_threads_alone_though_torch_was_imported_first(tmp_path):
    """Otherwise they spin, and an update takes fifty times as long on a busy machine."""
    environment = {
        name: x for name, x in os.environ.items() if not name.startswith(("GOMP", "OMP"))
    }
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRAINING],
        cwd=tmp_path,
        env={**environment, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    started, seconds = ended.stdout.split()[-2:]
    if started == "0":
        pytest.skip("torch starts no threads here")
    assert float(seconds) < 0.1
