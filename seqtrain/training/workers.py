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
_STOP_REQUESTED = threading.Event()
"""In a worker process: set after it was asked to stop."""


class WorkerPool:
    """Context manager with a pool of worker processes that train at the same time.

    Each worker has an equal share of torch's threads, at least one. With one job there is no
    worker, and the calling process does the work.

    - At the end of the `with` block, the pool waits for all calls.
    - If the block raises an error, the pool stops the workers.
    - If the calling process is killed, the workers stop.
    - If a worker is killed, the other workers stop, and futures without a result raise
      `BrokenProcessPool`. The next `submit` starts new workers.

    Workers ignore SIGINT and SIGHUP, which a terminal sends to all processes. The calling process
    must handle these signals and call `stop`.

    Args:
        jobs: Number of calls that run at the same time.
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
        """Run a function in a worker process, and return the future of its result.

        With one job, run the function in this process before returning, and raise its errors.

        Args:
            call: Function without arguments. The function and its result must be picklable.
        """
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
        """True if a worker process was killed.

        Futures may report this late, because CPython doesn't watch a worker that starts while it
        waits for another one.
        """
        return any(not process.is_alive() for process in self._processes)

    def stop(self) -> None:
        """Ask each worker to save its run and to stop, and wait until all workers have ended.

        Calls that haven't started are cancelled. Without workers, do nothing.
        """
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
            self._pool = ProcessPoolExecutor(self._jobs, context, _set_up, (theirs, threads))
        # A new process inherits the mask. A signal can't end it before `_set_up` has run.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            future = self._pool.submit(_run_or_end, call)
            self._processes = [*{*self._processes, *multiprocessing.active_children()}]
            return future
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _set_up(lifeline: Connection, threads: int) -> None:
    """Set up the signals and threads of this worker process.

    Args:
        lifeline: End of a pipe whose other end the parent holds. When the parent closes it or is
            killed, this process gets SIGTERM.
        threads: Number of threads for torch.
    """

    def watch() -> None:
        with suppress(EOFError, OSError):
            lifeline.recv()
        _STOP_REQUESTED.set()
        signal.raise_signal(signal.SIGTERM)

    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    threading.Thread(target=watch, daemon=True).start()
    torch.set_num_threads(threads)


def _run_or_end(call: Callable[[], T]) -> T:
    """Return the result of `call`, or end this worker process if it was asked to stop.

    If the call raises Interrupted, the process also ends. Other errors are raised.
    """
    try:
        return call()
    except Interrupted:
        _STOP_REQUESTED.set()
        raise
    finally:
        if _STOP_REQUESTED.is_set():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
