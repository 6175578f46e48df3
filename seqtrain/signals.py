"""Signals that ask the program to stop.

Training notes them and stops after the update (`StopSignals`). Elsewhere SIGTERM and SIGHUP end
the program at once (`ended_by_signals`), as SIGINT does by itself. A second SIGINT ends it soon,
whatever it is doing (`ended_by_second_interrupt`).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

STOPPING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
INTERRUPTED = 130
GRACE = 0.5
"""Seconds in which Python may handle the second SIGINT itself, and clean up."""


class StopSignals:
    """While entered, the first signal to stop is noted; a second SIGINT raises KeyboardInterrupt.

    Attributes:
        received: the signal's number, or None.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
                    self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = self.received or number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Leave with 128 + signal where nothing else handles it, as `StopSignals` does."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    previous = {
        number: signal.signal(number, leave)
        for number in STOPPING
        if signal.getsignal(number) is signal.SIG_DFL  # SIGINT has Python's own handler
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def ended_by_second_interrupt() -> Iterator[None]:
    """Leave the process with 130 soon after a second SIGINT, whatever it is doing.

    Python handles a signal only between two of its own steps, and takes two waiting ones for one.
    The system reports each as it comes, and a thread counts them. Leaving harms nothing: saved
    files are renamed into place when they are complete, and locks end with their owner.
    """
    receiver, sender = socket.socketpair()
    counter = threading.Thread(target=_leave_at_second, args=(receiver, sender), daemon=True)
    with sender:
        with suppress(RuntimeError):  # the system has no more threads to give
            counter.start()
        sender.setblocking(False)
        previous = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(previous)


def _leave_at_second(receiver: socket.socket, sender: socket.socket) -> None:
    """Count SIGINTs until the other end is closed."""
    count = 0
    with receiver:
        while count < 2:
            numbers = receiver.recv(64)
            if not numbers:
                return
            count += numbers.count(signal.SIGINT)
    time.sleep(GRACE)
    if sender.fileno() < 0:  # closed: Python has handled it
        return
    with suppress(OSError):  # not print: who is interrupted may hold its lock
        os.write(2, b"\n" * sys.stderr.isatty() + b"seqtrain: interrupted\n")
    os._exit(INTERRUPTED)


def code_of_signal(error: BaseException) -> int | None:
    """Return the exit code of a signal that came before an error; cleaning up half-way may fail."""
    context = error.__context__
    while context is not None:
        if isinstance(context, KeyboardInterrupt):
            return INTERRUPTED
        if isinstance(context, SystemExit) and isinstance(context.code, int):
            return context.code
        context = context.__context__
    return None
