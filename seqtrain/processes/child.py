"""A fresh Python process that works for this one, and the connection to it."""

from __future__ import annotations

import signal
import subprocess
import sys
from multiprocessing.connection import Connection, Pipe
from typing import NamedTuple

from seqtrain.errors import RunError
from seqtrain.signals import STOPPING

PROGRAM = """\
import sys
from importlib import import_module
sys.path[:] = sys.argv[3:]
import_module(sys.argv[1]).serve(int(sys.argv[2]))
"""


class Child(NamedTuple):
    """A process, and this program's end of the connection; whoever starts it ends both."""

    process: subprocess.Popen[bytes]
    connection: Connection


def start_child(module: str) -> Child:
    """Let a module's `serve` run in a process, given the descriptor of its connection.

    The process is a session of its own: what a terminal sends reaches this program alone. Where
    this one ends by force, the other sees its connection closed.

    Raises:
        RunError: the system can't start one.
    """
    if sys.platform == "win32":
        raise RunError("compare, tune and --jobs run on Linux and macOS")
    ours, theirs = Pipe()
    command = [sys.executable, "-c", PROGRAM, module, str(theirs.fileno()), *map(str, sys.path)]
    # Until it has a session of its own, the new process would get the terminal's signals.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise RunError(f"a process for {module}: {error.strerror}") from None
    finally:
        theirs.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return Child(process, ours)
