"""A second Ctrl-C ends the program soon, also where native code keeps Python from answering."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

INTERRUPTED = 130
GRACE = 0.5
"""Seconds in which Python may answer the second SIGINT itself, and clean up."""


@contextmanager
def ended_by_second_interrupt() -> Iterator[None]:
    """Leave the process with 130 soon after a second SIGINT, whatever it is doing.

    Python answers signals between its own steps alone, and takes two that wait for one. The system
    tells of each as it comes, and a thread counts. To leave harms nothing: what is saved is put in
    its place whole, and locks end with their owner.
    """
    told, teller = socket.socketpair()
    over = threading.Event()
    counter = threading.Thread(target=_leave_at_second, args=(told, over), daemon=True)
    with told, teller:
        try:
            counter.start()
        except RuntimeError:  # the system has no more threads to give
            yield
            return
        teller.setblocking(False)
        previous = signal.set_wakeup_fd(teller.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(previous)
            over.set()
            teller.close()
            counter.join()


def _leave_at_second(told: socket.socket, over: threading.Event) -> None:
    """Count SIGINTs until the other end is closed."""
    count = 0
    while count < 2:
        numbers = told.recv(64)
        if not numbers:
            return
        count += numbers.count(signal.SIGINT)
    if over.wait(GRACE):
        return
    with suppress(OSError):  # not print: who is interrupted may hold its lock
        os.write(2, b"\n" * sys.stderr.isatty() + b"seqtrain: interrupted\n")
    os._exit(INTERRUPTED)
