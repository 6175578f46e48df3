"""Processes that work for this one, side by side, and end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TypeVar

from seqtrain.signals import STOPPING

T = TypeVar("T")


class Workers:
    """A pool of processes; for one job no process is started.

    Leaving the `with` block kills the processes. A signal from the terminal reaches this process
    alone. If one of them is killed, the futures under way raise `BrokenProcessPool`, and the next
    `submit` starts others.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._lifeline: Connection | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        if self._lifeline is not None:
            self._lifeline.close()
            self._lifeline = None
            self._pool.shutdown()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Make a call; where there is one job, it is over when this returns."""
        if self._jobs == 1:
            future: Future[T] = Future()
            future.set_result(call())
            return future
        try:
            return self._submit(call)
        except BrokenProcessPool:
            self.__exit__()
            return self._submit(call)

    def _submit(self, call: Callable[[], T]) -> Future[T]:
        pool = self._open()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)  # processes inherit it
        try:
            return pool.submit(call)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _open(self) -> ProcessPoolExecutor:
        if self._lifeline is None:
            theirs, self._lifeline = multiprocessing.Pipe(duplex=False)
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._jobs, context, _end_with, (theirs,))
        return self._pool


def _end_with(lifeline: Connection) -> None:
    def watch() -> None:
        with suppress(EOFError, OSError):
            lifeline.recv()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
