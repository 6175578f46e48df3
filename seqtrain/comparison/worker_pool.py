"""A process per variant, started side by side, of which one works at a time.

In a process of its own a variant's peak memory is its own, and a batch that would take minutes can
be ended. A fresh process loads torch and takes the task once, and forks the workers; the program
itself can't fork them, as it may have threads of torch's by then.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from seqtrain.comparison.speed import Turn, measured, rate
from seqtrain.comparison.task import Task
from seqtrain.errors import RunError
from seqtrain.processes.child import Child, start_child
from seqtrain.signals import answered_later

END = 2.0
"""Seconds to wait until all processes have ended, once the system was told to end them."""
LOOK = 0.5
"""Seconds between two looks at whether the process that starts all others still lives."""


@contextmanager
def worker_pool() -> Iterator[WorkerPool]:
    """Start a pool; when the block ends, however it does, no process is left.

    Raises:
        RunError: the system can't start one.
    """
    child: Child | None = None
    try:
        with answered_later():
            child = start_child("seqtrain.comparison.worker")
        yield WorkerPool(*child)
    finally:
        if child is not None:
            with answered_later(), child.connection:
                _end(*child)


def _end(process: subprocess.Popen[bytes], control: Connection) -> None:
    """End a pool's processes, and wait until the last has closed its end of the connection."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with suppress(EOFError, OSError):
        while control.poll(END):
            control.recv_bytes()


class WorkerPool:
    """The connection to the process that starts the workers; `worker_pool` makes one."""

    def __init__(self, process: subprocess.Popen[bytes], control: Connection) -> None:
        self._process = process
        self._control = control

    def start(self, names: Iterable[str], task: Task) -> dict[str, Worker]:
        """Return workers by the name of their variant.

        Raises:
            RunError: the process that starts them ended.
        """
        workers = {name: Worker(self, name) for name in names}
        self._checked(self._control.send, (task, list(workers)))
        return workers

    def ask(self, name: str, request: tuple[Any, ...], limit: float) -> tuple[Any, str]:
        """Return a worker's answer within so many seconds, or None and why there is none."""
        self._checked(self._control.send, (name, request, max(0.0, limit)))
        answer: tuple[Any, str] = self._checked(self._receive)
        return answer

    def _receive(self) -> Any:
        """Wait for an answer: where who gives it is killed, its workers still hold the other end.

        Raises:
            EOFError: it has ended.
        """
        while not self._control.poll(LOOK):
            if self._process.poll() is not None:
                raise EOFError
        return self._control.recv()

    def _checked(self, do: Any, *arguments: object) -> Any:
        try:
            return do(*arguments)
        except (EOFError, OSError):
            code = self._process.wait()
            raise RunError(f"the process that starts all others ended with code {code}") from None


class Worker:
    """A variant at work in a process of its own.

    Args:
        pool: that has the process.
        name: of the variant.

    Attributes:
        turns: taken in each mode, the first of which is one batch.
        failure: why it can't go on; empty while it can.
    """

    def __init__(self, pool: WorkerPool, name: str) -> None:
        self.name = name
        self.turns: dict[str, list[Turn]] = {"prediction": [], "training": []}
        self.failure = ""
        self._pool = pool

    def rate(self, mode: str) -> float:
        """Return the tokens per second measured so far; 0 where nothing was."""
        return rate(measured(self.turns[mode]))

    def measure(self, mode: str, seconds: float, limit: float) -> None:
        """Let it begin batches for so many seconds, one at least, as another turn."""
        turn = self.ask(mode, seconds, limit=limit)
        if turn is not None:
            self.turns[mode].append(turn)

    def ask(self, mode: str, *amount: float, limit: float) -> Any:
        """Return its answer, or None: after so many seconds it is ended, and `failure` says so."""
        answer, self.failure = self._pool.ask(self.name, (mode, *amount), limit)
        return answer
