"""Signals that ask the program to stop.

Training stops after the current update (`StopSignals`). Outside of training, SIGTERM and SIGHUP end
the program at once (`ended_by_signals`), as SIGINT does in any Python program. A second SIGINT ends
it within half a second (`ended_by_second_interrupt`).
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
"""Seconds that Python has to handle the second SIGINT and to clean up."""


class StopSignals:
    """Context manager that records the first signal to stop: SIGINT, SIGTERM or SIGHUP.

    A SIGINT after any of these signals raises KeyboardInterrupt. Outside of the main thread, and
    for signals that are ignored, nothing is set.

    Attributes:
        received: Number of the signal, or None before it came.
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
    """Exit with 128 + signal in the block, for signals that have the system's default handler.

    SIGINT has Python's own handler and isn't changed.
    """

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
    """Exit with 130 soon after a second SIGINT in the block, even during a long call of C code.

    Python handles a signal only between two instructions, and handles two pending ones as one. So a
    thread counts the signals that the system reports. The exit is safe: files get their names when
    they are complete, and locks end with their process.
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
    """Exit the process GRACE seconds after the second SIGINT, unless `sender` is closed by then.

    Args:
        receiver: Socket from which the signal numbers are read. It ends when `sender` is closed.
        sender: Socket to which Python writes the signal numbers.
    """
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
    """Return the exit code of a signal that an error followed, or None if there was none.

    An interrupted clean-up may raise errors of any kind.
    """
    context = error.__context__
    while context is not None:
        if isinstance(context, KeyboardInterrupt):
            return INTERRUPTED
        if isinstance(context, SystemExit) and isinstance(context.code, int):
            return context.code
        context = context.__context__
    return None
