"""A process that is watched while it reads foreign files: what it runs, opens and reaches."""

import os
import platform
import resource
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.helpers.program import FORKS

FORBIDDEN = (
    "os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen", "pty.spawn",
    "pickle.find_class", "socket.connect", "socket.bind",
)  # fmt: skip
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def watch(folder: Path, task: Callable[[Path], Any]) -> tuple[Any, list[str], int]:
    """Run a task; return its result, its forbidden actions, and its memory in bytes.

    Writing anywhere but in the folder is told.
    """
    ours, theirs = FORKS.Pipe()
    process = FORKS.Process(target=_watched, args=(theirs, folder, task))
    process.start()
    theirs.close()
    answer: tuple[Any, list[str], int] = ours.recv()
    process.join()
    assert process.exitcode == 0
    return answer


def _watched(told: Connection, folder: Path, task: Callable[[Path], Any]) -> None:
    offences: list[str] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in FORBIDDEN:
            offences.append(f"{event}{arguments!r}")
        elif event == "open" and isinstance(arguments[0], str) and arguments[2] & WRITING:
            path = os.path.realpath(arguments[0])
            if not path.startswith((str(folder), "/dev/null")):
                offences.append(f"open {path}")

    os.chdir(folder)
    platform.platform()  # asks `uname` once; a run notes it in its environment
    sys.addaudithook(hook)
    before = peak()
    answer = task(folder)
    told.send((answer, list(offences), peak() - before))


def peak() -> int:
    """Return the most memory this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
