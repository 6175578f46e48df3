"""A process begun anew, as it is outside of these tests, which fork theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from seqtrain.processes import child
from seqtrain.processes.child import start_child


def test_it_is_a_session_of_its_own_and_ends_with_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(child, "subprocess", subprocess)
    process, connection = start_child("seqtrain.api.training_process")
    assert isinstance(process, subprocess.Popen)
    assert os.getsid(process.pid) == process.pid
    if sys.platform == "linux":
        opened = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (0, 1)]
        assert opened == [os.devnull, os.devnull]
    process.send_signal(signal.SIGINT)
    connection.close()
    assert process.wait() == 0
