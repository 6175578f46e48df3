"""Signals that ask the program to stop: SIGINT (Ctrl-C), SIGTERM and SIGHUP.

During training, the first signal is recorded, and training stops after the current update
(`StopSignals`). Outside of training, SIGTERM and SIGHUP end the program at once
(`exit_on_signals`), as SIGINT does in any Python program. A second SIGINT ends the program within
half a second, even during a long call of C code (`exit_on_second_interrupt`).
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
"""Numbers of the signals that ask to stop. Windows has no SIGHUP."""
INTERRUPTED = 130
"""Exit code after SIGINT: 128 plus the number of the signal."""
GRACE = 0.5
"""Seconds that Python has to handle the second SIGINT and to clean up."""
WAKING = getattr(signal, "SIGURG", None)
"""Signal that interrupts system calls of the main thread, or None on Windows."""


class StopSignals:
    """Context manager that records the first of the signals SIGINT, SIGTERM and SIGHUP.

    The first signal doesn't end the program. A SIGINT after it raises KeyboardInterrupt. Signals
    that the program ignores, as under nohup, stay ignored. Outside of the main thread, no signal is
    recorded, because Python allows no handlers there.

    If the block ends without an error although a signal came, the handler from before the block is
    called. Otherwise a search that calls `fit` again and again would miss a signal that comes as
    training ends.

    Attributes:
        received: Number of the first signal, or None if no signal came.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._caught: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
                    self._previous[number] = signal.signal(number, self._record)
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        if self._caught is not None and kind is None:
            handler = self._previous[self._caught]
            if callable(handler):
                handler(self._caught, None)

    def request(self) -> None:
        """Ask to stop as SIGINT does, for a caller that wants the run to end."""
        self.received = self.received or signal.SIGINT

    def _record(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = self.received or number
        self._caught = self._caught or number


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Context manager in which SIGTERM and SIGHUP raise SystemExit with 128 plus their number.

    By default, these signals end a program without its cleanup. A signal that already has another
    handler is left alone. The earlier handlers are restored at the end of the block.

    The block must be entered in the main thread, because Python allows no handlers elsewhere.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    previous = {
        number: signal.signal(number, leave)
        for number in STOPPING
        if signal.getsignal(number) is signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def exit_on_second_interrupt() -> Iterator[None]:
    """Context manager in which a second SIGINT ends the process with exit code 130.

    It must be entered in the main thread.

    After the second SIGINT, the block has `GRACE` seconds to end. Then the process exits without
    any cleanup, even during a long call of C code. This is safe: files get their names when they
    are complete, and locks end with their process.

    A thread counts the signals that the system reports. Python's own handlers don't suffice,
    because they don't run during a call of C code, and handle two pending signals as one. It also
    interrupts system calls: a signal that comes right before a read would wait for the input.
    """
    receiver, sender = socket.socketpair()
    own = receiver, sender, threading.get_ident()
    counter = threading.Thread(target=_leave_at_second, args=own, daemon=True)
    with sender:
        with suppress(RuntimeError):  # the system has no more threads to give
            counter.start()
        sender.setblocking(False)
        previous = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        if WAKING is None:
            handler = None
        else:
            handler = signal.signal(WAKING, lambda number, frame: None)
        try:
            yield
        finally:
            signal.set_wakeup_fd(previous)
            if WAKING is not None:
                signal.signal(WAKING, handler or signal.SIG_DFL)


def _leave_at_second(receiver: socket.socket, sender: socket.socket, main: int) -> None:
    """Exit the process GRACE seconds after the second SIGINT, unless `sender` is closed by then.

    After any signal, wake the main thread every GRACE seconds.

    Args:
        receiver: Socket from which the numbers of the signals are read, until `sender` is closed.
        sender: Socket to which Python writes the number of each signal.
        main: Identifier of the main thread.
    """
    count = 0
    with receiver:
        while count < 2:
            try:
                numbers = receiver.recv(64)
            except TimeoutError:  # a signal came, and the block hasn't ended
                if WAKING is not None:
                    signal.pthread_kill(main, WAKING)
                continue
            if not numbers:
                return
            count += numbers.count(signal.SIGINT)
            receiver.settimeout(GRACE)
    time.sleep(GRACE)
    if sender.fileno() < 0:  # closed: Python has handled it
        return
    with suppress(OSError):  # not print: the interrupted thread may hold the lock of stderr
        os.write(2, b"\n" * sys.stderr.isatty() + b"seqtrain: interrupted\n")
    os._exit(INTERRUPTED)


def code_of_signal(error: BaseException) -> int | None:
    """Return the exit code if an error was raised after a signal, or None for other errors.

    A signal raises a KeyboardInterrupt, with the exit code 130, or a SystemExit, with its own exit
    code. The cleanup that follows may raise another error, whose `__context__` is the first
    exception.
    """
    context = error.__context__
    while context is not None:
        if isinstance(context, KeyboardInterrupt):
            return INTERRUPTED
        if isinstance(context, SystemExit) and isinstance(context.code, int):
            return context.code
        context = context.__context__
    return None
