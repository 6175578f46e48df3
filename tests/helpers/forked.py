"""The processes that the program starts for itself, forked instead of begun anew.

A fresh one would load torch, in seconds. All else is as in `start_child`: a session and descriptors
of its own, and what `serve` does.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import time
import warnings
from importlib import import_module
from subprocess import DEVNULL
from types import SimpleNamespace
from typing import Any

import pytest

from seqtrain.processes import child

DESCRIPTORS = 65536


class Forked:
    """Takes the place of `subprocess.Popen` there."""

    def __init__(self, command: list[str], *, pass_fds: list[int], **options: Any) -> None:
        arguments = (command[3], *pass_fds, command[5:])
        self._process = multiprocessing.get_context("fork").Process(target=serve, args=arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads that do nothing
            self._process.start()
        self.pid, self.kill = self._process.ident or 0, self._process.kill
        while self._process.is_alive() and os.getsid(self.pid) != self.pid:
            time.sleep(0.001)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode


def serve(module: str, descriptor: int, path: list[str]) -> None:
    """What the process does; nothing of the one that it was forked from is closed by collection."""
    os.setsid()
    sys.setprofile(None)
    gc.freeze()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, DESCRIPTORS)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, "w" if number else "r", closefd=False) for number in range(3)
    )
    sys.path[:] = path
    import_module(module).serve(descriptor)


def fork_children(patch: pytest.MonkeyPatch) -> None:
    """Let `start_child` fork, until the patch is undone, where processes can."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return
    patch.setattr(child, "subprocess", SimpleNamespace(Popen=Forked, DEVNULL=DEVNULL))
