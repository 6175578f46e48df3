"""A process of our own that works for this one, and ends with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from multiprocessing.connection import Connection, Pipe

from seqtrain.errors import RunError
from seqtrain.signals import STOPPING

PROGRAM = """\
import sys
sys.path[:] = sys.argv[3:]
from importlib import import_module
import_module(sys.argv[1]).serve(int(sys.argv[2]))
"""


def start_child(module: str, what: str) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a process, a session of its own: what a terminal sends reaches this one alone.

    Args:
        module: its `serve` is called with the number of its end of the connection.
        what: it is for, for the message.

    Returns:
        The process, and this end of the connection.

    Raises:
        RunError: the system can't start one.
    """
    connection, theirs = Pipe()
    # Until it has a session of its own, the new process would get the terminal's signals.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, module, str(theirs.fileno()), *map(str, sys.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    except OSError as error:
        raise RunError(f"a process for {what}: {error.strerror}") from None
    finally:
        theirs.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return process, connection
