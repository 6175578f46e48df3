"""Signals: one Ctrl-C counts once, also where its answer has to wait."""

from __future__ import annotations

import signal
import socket

import pytest

from seqtrain.signals import answered_later


def test_a_signal_answered_later_is_reported_once() -> None:
    """The system reports each one; whoever counts them ends the program at the second."""
    told, teller = socket.socketpair()
    with told, teller:
        told.setblocking(False)
        teller.setblocking(False)
        previous = signal.set_wakeup_fd(teller.fileno())
        try:
            with pytest.raises(KeyboardInterrupt), answered_later():
                signal.raise_signal(signal.SIGINT)
        finally:
            signal.set_wakeup_fd(previous)
        assert told.recv(64) == bytes([signal.SIGINT])


def test_another_signal_waits_for_the_end_of_the_block() -> None:
    noted: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, frame: noted.append(number))
    try:
        with answered_later():
            signal.raise_signal(signal.SIGTERM)
            assert noted == []
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert noted == [signal.SIGTERM]
