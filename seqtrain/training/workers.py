"""Worker processes that train at the same time."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeVar

import torch

from seqtrain.errors import Interrupted
from seqtrain.signals import STOPPING

T = TypeVar("T")
_STOPPING = threading.Event()
"""Set in a worker that was asked to stop."""


class WorkerPool:
    """Pool of worker processes, which share torch's threads.

    With one job no process is started. Workers ignore signals from the terminal: the parent process
    gets them and calls `stop`. If the parent is killed, each worker stops in the same way. If a
    worker is killed, the others stop, running futures raise `BrokenProcessPool`, and the next
    `submit` starts a new pool.

    Args:
        jobs: Number of workers.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None
        self._lifeline: Connection | None = None
        self._processes: list[BaseProcess] = []

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None and self._pool is not None:
            self._pool.shutdown()
        self.stop()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Start a call in a worker process. With one job, make the call here before returning."""
        if self._jobs == 1:
            future: Future[T] = Future()
            future.set_result(call())
            return future
        try:
            return self._submit(call)
        except BrokenProcessPool:
            self.stop()
            return self._submit(call)

    @property
    def has_lost_worker(self) -> bool:
        """True if a worker was killed.

        Running futures may learn of it late: CPython doesn't watch a worker that starts while it
        waits for another one.
        """
        return any(not process.is_alive() for process in self._processes)

    def stop(self) -> None:
        """Make each worker save its run and stop; return when all have ended."""
        if self._pool is None or self._lifeline is None:
            return
        self._lifeline.close()
        self._pool.shutdown(cancel_futures=True)
        self._pool = self._lifeline = None
        self._processes = []

    def _submit(self, call: Callable[[], T]) -> Future[T]:
        if self._pool is None:
            theirs, self._lifeline = multiprocessing.Pipe(duplex=False)
            threads = max(1, torch.get_num_threads() // self._jobs)
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._jobs, context, _begin, (theirs, threads))
        # A new process inherits the mask. A signal can't end it before `_begin` has run.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            future = self._pool.submit(_run, call)
            self._processes = [*{*self._processes, *multiprocessing.active_children()}]
            return future
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _begin(lifeline: Connection, threads: int) -> None:
    """Prepare a worker: it gets SIGTERM when the other end of the pipe is closed."""

    def watch() -> None:
        with suppress(EOFError, OSError):
            lifeline.recv()
        _STOPPING.set()
        signal.raise_signal(signal.SIGTERM)

    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    threading.Thread(target=watch, daemon=True).start()
    torch.set_num_threads(threads)


def _run(call: Callable[[], T]) -> T:
    """Make a call. A worker that was asked to stop ends then: nobody waits for the result."""
    try:
        return call()
    except Interrupted:
        _STOPPING.set()
        raise
    finally:
        if _STOPPING.is_set():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
