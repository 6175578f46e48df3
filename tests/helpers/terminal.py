"""A terminal of a given width, to see what a person sees of a screen."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyte
import pytest

ERASED = re.compile(r"[^\n]*\r\n[^\n]*\r\x1b\[1A\x1b\[2K")
"""A line that is erased after it was written; a bar may come in between."""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Screen of a terminal with a number of columns."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.written = ""

    def lines(self) -> list[str]:
        """Return the lines as a terminal emulator shows them, empty ones left out."""
        height = sum(1 + len(line) // self.width for line in self.written.split("\n"))
        screen = pyte.Screen(self.width, height)
        stream = pyte.Stream(screen)
        stream.feed(self.written)
        return [line.rstrip() for line in screen.display if line.strip()]

    def logical_lines(self) -> list[str]:
        """Return the lines as they were written, before the terminal wraps them.

        Lines that were erased afterwards are left out.
        """
        text, count = ERASED.subn("", self.written)
        while count:
            text, count = ERASED.subn("", text)
        return [CONTROL.sub("", line).rstrip() for line in text.split("\r\n")]


@contextmanager
def terminal(width: int) -> Iterator[Terminal]:
    """Connect standard output and error to a terminal, and yield its screen."""
    shown = Terminal(width)
    controller, device = pty.openpty()
    fcntl.ioctl(device, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    blocks: list[bytes] = []

    def read() -> None:
        try:
            while block := os.read(controller, 4096):
                blocks.append(block)
        except OSError:  # the last writer closed it
            pass

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with open(device, "w", encoding="utf-8") as stream, pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            patch.setattr(sys, "stdout", stream)
            patch.setattr(sys, "stderr", stream)
            yield shown
    finally:
        reader.join()
        os.close(controller)
        shown.written = b"".join(blocks).decode()
