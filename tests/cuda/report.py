"""All that a GPU should be asked, in one command: the tests, and how fast its kernels are.

    python tests/cuda/report.py REPORT.json [--device cuda] [--minutes 8]

Needs torch, pytest and seqtrain, and no network. Runs the tests of this folder on the device, then
measures training (forward, backward) of torch's recurrences over packed sequences and over padded
ones of like length, for hidden sizes of 128 to 1,024: real tokens/s, padding never counted. Writes
one JSON object; the exit code is that of the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

HERE = Path(__file__).parent
CELLS: dict[str, type[nn.RNNBase]] = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}
HIDDEN = (128, 256, 512, 1024)
BATCH = 64


def end(tests: subprocess.Popen[bytes]) -> None:
    """Interrupt pytest, so that it writes what it found so far; kill it where it doesn't end."""
    tests.send_signal(signal.SIGINT)
    try:
        tests.wait(10)
    except subprocess.TimeoutExpired:
        tests.kill()
        tests.wait()


def run_tests(device: str, seconds: float) -> dict[str, Any]:
    """Run the tests of this folder; return counts, failures and the slowest.

    Where the time is up, the exit code is 124, and the counts are of the tests until then.
    """
    results = Path(f"{os.getpid()}-tests.xml").resolve()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "cuda"]
    command += [str(HERE), f"--junitxml={results}"]
    began = time.monotonic()
    environment = {**os.environ, "SEQTRAIN_TEST_DEVICE": device}
    tests = subprocess.Popen(command, cwd=HERE.parent.parent, env=environment)
    try:
        code = tests.wait(seconds)
    except subprocess.TimeoutExpired:
        code = 124
        end(tests)
    found: dict[str, Any] = {"exit_code": code, "seconds": round(time.monotonic() - began, 1)}
    if not results.exists():
        return found
    cases = ElementTree.parse(results).getroot().iter("testcase")
    found |= {"passed": 0, "failures": {}, "skipped": {}, "slowest": {}}
    took = {}
    for case in cases:
        name = f"{case.get('classname')}::{case.get('name')}"
        took[name] = float(case.get("time") or 0)
        wrong = case.find("failure") if case.find("failure") is not None else case.find("error")
        skipped = case.find("skipped")
        if wrong is not None:
            found["failures"][name] = (wrong.get("message") or "")[:500]
        elif skipped is not None:
            found["skipped"][name] = skipped.get("message")
        else:
            found["passed"] += 1
    slowest = sorted(took, key=lambda name: -took[name])[:5]
    found["slowest"] = {name: round(took[name], 1) for name in slowest}
    results.unlink()
    return found


def make_batch(width: int, device: torch.device, *, alike: bool) -> tuple[Tensor, Tensor]:
    """Return padded vectors (B, T, W), longest first, and their lengths, mean about 200."""
    generator = np.random.default_rng(0)
    spread = 0.05 if alike else 0.6
    lengths = np.exp(generator.normal(np.log(170), spread, BATCH)).astype(np.int64) + 1
    ordered = torch.tensor(np.sort(lengths)[::-1].copy())
    return torch.randn(BATCH, int(ordered[0]), width, device=device), ordered


def tokens_per_second(step: Callable[[], object], tokens: int, device: torch.device) -> float:
    """Return the real tokens/s of a training step, repeated for a second after a warm-up."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    for _ in range(2):
        step()
    wait()
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < 1.0:
        step()
        wait()
        steps += 1
    return steps * tokens / (time.perf_counter() - began)


def measure_speed(device: torch.device, deadline: float) -> dict[str, dict[str, float]]:
    """Return the tokens/s of each cell and hidden size: packed, padded, padded of like length."""
    found: dict[str, dict[str, float]] = {}
    for name, cell in CELLS.items():
        for hidden in HIDDEN:
            if time.monotonic() > deadline:
                return found
            network = cell(hidden, hidden, batch_first=True).to(device)
            rates = {}
            for way, alike, packs in (
                ("packed", False, True),
                ("packed, like lengths", True, True),
                ("padded", False, False),
                ("padded, like lengths", True, False),
            ):
                inputs, lengths = make_batch(hidden, device, alike=alike)
                last = (lengths - 1).to(device)
                rows = torch.arange(BATCH, device=device)

                def step(
                    network: nn.RNNBase = network,
                    inputs: Tensor = inputs,
                    lengths: Tensor = lengths,
                    last: Tensor = last,
                    rows: Tensor = rows,
                    packs: bool = packs,
                ) -> None:
                    network.zero_grad()
                    if packs:
                        _, state = network(pack_padded_sequence(inputs, lengths, batch_first=True))
                        final = state[0] if isinstance(state, tuple) else state
                    else:
                        final = network(inputs)[0][rows, last]
                    final.square().mean().backward()

                rates[way] = round(tokens_per_second(step, int(lengths.sum()), device))
            found[f"{name} {hidden}"] = rates
            print(f"{name} {hidden}: {rates}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--device", default="cuda", choices=["cuda", "mps", "cpu"])
    parser.add_argument("--minutes", type=float, default=8.0, help="at most, about")
    given = parser.parse_args()
    began = time.monotonic()
    device = torch.device(given.device)
    on_cuda = given.device == "cuda" and torch.cuda.is_available()
    report: dict[str, Any] = {
        "device": given.device,
        "name": torch.cuda.get_device_name() if on_cuda else platform.processor(),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version() if on_cuda else None,
        "python": platform.python_version(),
    }
    report["tests"] = run_tests(given.device, 60 * given.minutes * 0.75)
    given.report.write_text(json.dumps(report, indent=2))  # whatever happens next
    if given.device == "cpu" or on_cuda or torch.backends.mps.is_available():
        report["tokens_per_second"] = measure_speed(device, began + 60 * given.minutes - 15)
    report["seconds"] = round(time.monotonic() - began, 1)
    given.report.write_text(json.dumps(report, indent=2))
    print(f"wrote {given.report} after {report['seconds']:.0f} s")
    sys.exit(report["tests"]["exit_code"])


if __name__ == "__main__":
    main()
