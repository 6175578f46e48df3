"""Endless input in flat memory, and equal runs whatever the hash seed, for each thread count."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

import pytest

from tests.helpers.program import conversing, fit, fit_arguments
from tests.helpers.tiny import fingerprint

PROGRAM = [sys.executable, "-c", "from seqtrain.cli.main import run; run()"]
BLOCK = (b"rise the lift climb " * 25 + b"\n" + b"fall sink the drop " * 25 + b"\n") * 100
KINDS = (("rise the lift climb " * 25, "up"), ("fall sink the drop " * 25, "down"))
WORDS = 108
"""Words of a row of each of these kinds, its number included."""
MEMORY = 600 * 2**20
SEEDS = 5
ID = 4
"""Bytes of a token as it is kept."""


def memory(process: int) -> int:
    """Return the bytes that a process holds, without mapped files: the system can take these."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024


@pytest.mark.parametrize("size", [2**20, pytest.param(2 * 2**30, marks=pytest.mark.slow)])
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_is_flat_on_endless_input(project, size):
    fit(project, "r")
    held = []
    with conversing(project, "predict", "-", "--run", "r") as (program, rows, answers):
        assert program.process.pid
        read = threading.Thread(target=lambda: deque(answers, maxlen=0))
        read.start()
        written = 0
        while written < size:
            written += rows.write(BLOCK)
            held.append(memory(program.process.pid))
        rows.close()
        read.join()
        assert program.end() == 0
    peak, early = max(held), max(held[: 2 * len(held) // 3])
    assert peak < MEMORY
    assert peak < early * 1.05


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_fit_of_a_file_larger_than_its_memory(project, tmp_path):
    """Read, parted, fitted and encoded, until the first step can be made."""
    size = rows = 0
    with open(tmp_path / "large.tsv", "w") as file:
        file.write("text\tlabel\n")
        while size < 2**30:  # each row is another sequence, of few words
            number = " ".join(f"{digit}" for digit in f"{rows:08d}")
            text, label = KINDS[rows % 2]
            size += file.write(f"{number} {text}\t{label}\n")
            rows += 1
    run = project / "r"
    options = ["--set", f"data.train={tmp_path / 'large.tsv'}"]
    arguments = fit_arguments(project, "r", *options)
    peak = 0
    with subprocess.Popen([*PROGRAM, *arguments], cwd=project) as process:
        while not (run / "config.yaml").exists():
            peak = max(peak, memory(process.pid))
            time.sleep(0.02)
            assert process.poll() is None
        process.terminate()
        assert process.wait() == 143
    assert peak < MEMORY < rows * WORDS * ID


@pytest.mark.slow
def test_equal_runs_whatever_the_hash_seed(project):
    """Hash seeds are random by default, so a run that is repeated elsewhere shows the same."""
    digests: dict[int, set[str]] = {1: set(), 2: set()}
    for threads, found in digests.items():
        for seed in range(SEEDS):
            run = f"r{threads}-{seed}"
            environment = {"PYTHONHASHSEED": str(seed), "OMP_NUM_THREADS": str(threads)}
            command = [*PROGRAM, "fit", "c.yaml", "--run-dir", run, "--quiet"]
            subprocess.run(
                command,
                cwd=project,
                env={**os.environ, **environment},
                check=True,
                capture_output=True,
            )
            recorded = json.loads((project / run / "environment.json").read_text())
            assert recorded["threads"] == threads
            found.add(json.dumps(fingerprint(project / run)))
    assert [len(found) for found in digests.values()] == [1, 1]
