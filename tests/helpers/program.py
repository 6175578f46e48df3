"""The program in separate processes, forked from one that has already loaded torch."""

import faulthandler
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from tests.helpers.tiny import write_text_project

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.helpers.warmed"])
PATIENCE = 300
"""Seconds after which a process counts as hung: those in which this one runs too, for a machine may
be busy, or stop both for a while."""
POLLS = 500
"""Looks a second at what a process has done."""
KILLED = -signal.SIGKILL
UPDATE = "compute_gradients"
"""A function that each update calls once."""

CONFIG = """\
data: {train: train.tsv, validation: 0.2, test: test.tsv, sequence: text, label: label}
batching: {batch_size: 4}
model: {embedding_dim: 4, hidden_size: 4, dropout: 0.2}
training:
  {max_epochs: 2, patience: null, lr: 0.02, schedule: cosine, warmup: 0.1,
   checkpoint_every: {steps: 3}}
"""


def write_project(folder: Path) -> None:
    """Write a config and its data for a run that takes a fraction of a second."""
    write_text_project(folder)
    (folder / "c.yaml").write_text(CONFIG)


def signal_itself(function: str, call: int, *signals: tuple[int, int]) -> None:
    """Let this process send itself signals, some steps of the interpreter after a function's call.

    Each signal comes so many calls and returns, from 1, after the function's call of that number.
    """
    due, calls, steps = dict(signals), 0, 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls, steps
        if calls == call:
            steps += 1
            if steps in due:
                os.kill(os.getpid(), due[steps])
        elif event == "call" and frame.f_code.co_name == function:
            calls += 1

    sys.setprofile(count)


def run_program(folder: str, arguments: list[str], prepare: Callable[[], None] | None) -> None:
    """Run the program in this process, with its output in files."""
    os.chdir(folder)
    for name, descriptor in (("out", 1), ("err", 2)):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(f"{name}-{os.getpid()}", flags, 0o644), descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup and shells may ignore it
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    faulthandler.dump_traceback_later(PATIENCE / 2)  # where a process hangs, its stderr says
    from seqtrain.cli.main import run

    if prepare is not None:
        prepare()
    run(arguments)


def connect(streams: dict[int, str], environment: dict[str, str | None]) -> None:
    """Let this process read and write elsewhere, as one that a shell starts.

    Streams are paths of pipes or terminals by descriptor; a variable of None is unset.
    """
    for descriptor, path in streams.items():
        os.dup2(os.open(path, os.O_WRONLY if descriptor else os.O_RDONLY), descriptor)
    if 0 in streams:
        sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def children(program: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(x) for x in Path(f"/proc/{program}/task/{program}/children").read_text().split()]


class Running:
    """The program under way in a folder; `prepare` is called in its process before it begins."""

    def __init__(
        self, folder: Path, *arguments: str, prepare: Callable[[], None] | None = None
    ) -> None:
        self.folder = folder
        self.process: ForkServerProcess = FORKS.Process(
            target=run_program, args=(str(folder), list(arguments), prepare)
        )
        self.process.start()

    def end(self) -> int:
        """Wait for its end; return the exit code, or the negative signal that killed it."""
        for _ in range(PATIENCE):
            self.process.join(1)
            if self.process.exitcode is not None:
                break
        for name in ("out", "err"):
            path = self.folder / f"{name}-{self.process.pid}"
            if path.exists():
                setattr(self, name, path.read_text(errors="surrogateescape"))
                path.unlink()
        assert self.process.exitcode is not None, f"the program hangs: {self.err}"
        return self.process.exitcode

    out = err = ""

    def send(self, number: int) -> None:
        assert self.process.pid
        with suppress(ProcessLookupError):  # it has ended
            os.kill(self.process.pid, number)

    def wait_for(self, path: Path) -> None:
        """Wait until a file is there, or the program has ended."""
        for _ in range(PATIENCE * POLLS):
            if path.exists() or not self.process.is_alive():
                return
            time.sleep(1 / POLLS)
        raise AssertionError(f"no {path}")


@contextmanager
def started(*arguments: Any, **options: Any) -> Iterator[Running]:
    """Start the program; it is gone when the block is left."""
    running = Running(*arguments, **options)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.join()
        running.end()


@contextmanager
def conversing(
    folder: Path, *arguments: Any, connect: Callable[..., None] = connect
) -> Iterator[tuple[Running, BinaryIO, BinaryIO]]:
    """Start the program with its standard input and output piped: to be written, and read."""
    pipes = [folder / ".stdin", folder / ".stdout"]
    for pipe in pipes:
        os.mkfifo(pipe)
    prepare = partial(connect, dict(enumerate(map(str, pipes))), {})
    with (
        started(folder, *map(str, arguments), prepare=prepare) as running,
        open(pipes[0], "wb", buffering=0) as stdin,
        open(pipes[1], "rb") as stdout,
    ):
        yield running, stdin, stdout
    for pipe in pipes:
        pipe.unlink()


def ended(
    folder: Path, *arguments: Any, code: int = 0, prepare: Callable[[], None] | None = None
) -> Running:
    """Run the program to its end, which has this exit code."""
    with started(folder, *arguments, prepare=prepare) as running:
        found = running.end()
    assert found == code, (found, running.err)
    return running


def fit(folder: Path, run: str, *options: str, **how: Any) -> Running:
    """Train to the end, or resume a run that has started; `how` as for `ended`."""
    return ended(folder, *fit_arguments(folder, run, *options), **how)


def fit_arguments(folder: Path, run: str, *options: str) -> list[str]:
    """Return the arguments of fit: `--resume` if the run has started, else `--force`."""
    begun = (folder / run / "config.yaml").exists()
    how = "--resume" if begun else "--force"
    return ["fit", "c.yaml", "--run-dir", run, "--quiet", how, *options]


signals_within = partial(partial, signal_itself)
"""Make what `Running` takes as `prepare`, from the arguments of `signal_itself`."""
