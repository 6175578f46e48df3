"""Candidates take turns, each in a process of its own.

In a process of its own a candidate's peak memory is its own, and a batch that would take minutes
can be ended. They start side by side, then one works at a time: as they take short turns, noise of
the machine hits all alike, so that ratios of their speeds can be trusted where the speeds
themselves can't.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import recv_handle
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seqtrain.errors import RunError
from seqtrain.signals import STOPPING, StopSignals
from seqtrain.workflows.task import Task

TURN = 0.15
"""Seconds of a turn, or one batch where that takes longer."""
PATIENCE = 10.0
"""Seconds that a candidate's first batch may take in any case."""
MARGIN = 1.5
"""How much longer than the longest so far a turn may take."""
START = 60.0
"""Seconds that a process may take until it is ready."""
GOODBYE = 2.0
"""Seconds that the nursery has to end its children, before the system ends all of them."""
PROGRAM = """\
import sys
sys.path[:] = sys.argv[2:]
from seqtrain.workflows.workers import nurse
nurse(int(sys.argv[1]))
"""


class Turn(NamedTuple):
    """What was measured at once: some batches, their real tokens, and seconds."""

    batches: int
    tokens: int
    seconds: float


class Nursery:
    """Starts contenders; enter it so that no process is left, however the block ends.

    All its processes are a group of their own, so what a terminal sends reaches none of them. Where
    this one ends by force, they see its connections closed, and end too.
    """

    def __init__(self) -> None:
        self._ready = False
        self._process: subprocess.Popen[bytes] | None = None
        self._control, self._theirs = Pipe()

    def __enter__(self) -> Nursery:
        if not hasattr(os, "fork"):
            raise RunError("this system can't fork processes; compare runs on Linux and macOS")
        descriptor = self._theirs.fileno()
        # Until it has a group of its own, the new process would note our signals, and tell of them
        # where ours are told; it never answers any itself.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            with _signals_wait():
                self._process = subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, str(descriptor), *map(str, sys.path)],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[descriptor],
                    start_new_session=True,
                )
                self._theirs.close()
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        except BaseException:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self.end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def start(self, names: Iterable[str], task: Task) -> dict[str, Contender]:
        """Return contenders by name, each with the probe's logits.

        Args:
            names: of their ways.
            task: what to run them on.

        Raises:
            RunError: the process that starts them ended.
        """
        names = list(names)
        try:
            self._control.send((task, names))
            connections = {name: Connection(recv_handle(self._control)) for name in names}
        except (EOFError, OSError):
            raise self._lost() from None
        self._ready = True
        contenders = {name: Contender(connections[name], self._end_one, name) for name in names}
        for contender in contenders.values():
            contender.begin()
        return contenders

    def end(self) -> None:
        """End all processes, also where a signal comes meanwhile."""
        try:
            self._end_all()
        finally:  # the signal may have come before it could wait
            self._end_all()

    def _end_all(self) -> None:
        with _signals_wait():
            self._control.close()
            if self._process is None:
                return
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(GOODBYE if self._ready else 0.0)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _end_one(self, name: str) -> int:
        """End a contender's process; return its exit code, or the negative signal."""
        try:
            self._control.send(name)
            code: int = self._control.recv()
        except (EOFError, OSError):
            raise self._lost() from None
        return code

    def _lost(self) -> RunError:
        code = None if self._process is None else self._process.wait()
        return RunError(f"the process that starts all others ended with code {code}")


class Contender:
    """A candidate at work in a process of its own, which is ready after `begin`.

    Args:
        connection: to its process.
        end: ends that process, and returns its exit code.
        name: of the candidate.

    Attributes:
        logits: of the probe, (B, C); None where the process failed.
        turns: taken in each mode, the first of which is one batch.
        memory: the most that the process held beyond Python and the data, up to the end of each
            mode, in bytes; None where the system doesn't say.
        accuracies: on held-out sequences, one for each time it learned from the same examples.
        failure: why it can't go on; empty while it can.
    """

    def __init__(self, connection: Connection, end: Callable[[str], int], name: str) -> None:
        self.name = name
        self.turns: dict[str, list[Turn]] = {"prediction": [], "training": []}
        self.memory: dict[str, int | None] = {"prediction": None, "training": None}
        self.accuracies: list[float] = []
        self.failure = ""
        self.logits: npt.NDArray[np.float32] | None = None
        self._connection = connection
        self._end = end

    def begin(self) -> None:
        """Wait until the process is ready and has the probe's logits."""
        self.logits = self._answer(START)

    def measure(self, mode: str, seconds: float, limit: float) -> None:
        """Let it work.

        Args:
            mode: training or prediction.
            seconds: batches are begun for so long; 0: one batch.
            limit: seconds after which it is ended.
        """
        answer = self._answer(limit, (mode, seconds))
        if answer is not None:
            turn, self.memory[mode] = answer
            self.turns[mode].append(turn)

    def learn(self, examples: int, limit: float) -> None:
        """Let it learn anew from so many examples, with another seed each time.

        Args:
            examples: of train.
            limit: seconds after which it is ended.
        """
        accuracy = self._answer(limit, ("accuracy", (examples, len(self.accuracies))))
        if accuracy is not None:
            self.accuracies.append(accuracy)

    def _answer(self, limit: float, request: tuple[str, Any] | None = None) -> Any:
        """Ask and wait for an answer; without one the process is ended, and `failure` says why."""
        try:
            if request is not None:
                self._connection.send(request)
            if self._connection.poll(max(0.0, limit)):
                answer = self._connection.recv()
                if not isinstance(answer, str):
                    return answer
                self.failure = answer
            else:
                self.failure = f"cut: no answer within {limit:.0f} s"
        except (EOFError, OSError):
            self.failure = ""
        code = self._end(self.name)
        self.failure = self.failure or f"its process ended with code {code}"
        return None


def take_turns(
    contenders: Sequence[Contender],
    mode: str,
    deadline: float,
    before: Callable[[Contender], None] = lambda contender: None,
) -> None:
    """Measure candidates in turns until the time is up: always the one measured the shortest.

    Each gets one batch at first, and another if that took less than a turn, as it only warms up.
    Then the time left is shared evenly; one whose turn would hardly end before the deadline gets no
    more.

    Args:
        contenders: the candidates.
        mode: training or prediction.
        deadline: of time.monotonic(); only first batches may go beyond, by PATIENCE.
        before: is called before every turn.
    """
    for place, contender in enumerate(contenders):
        share = (deadline - time.monotonic()) / (len(contenders) - place)
        for _ in range(2):
            taken = contender.turns[mode]
            if not contender.failure and not (taken and taken[-1].seconds > TURN):
                before(contender)
                contender.measure(mode, 0.0, max(PATIENCE, share))
    running = [c for c in contenders if not c.failure]
    while running:
        contender = min(running, key=lambda c: sum(turn.seconds for turn in c.turns[mode]))
        left = deadline - time.monotonic()
        if MARGIN * max(turn.seconds for turn in contender.turns[mode]) < left:
            before(contender)
            contender.measure(mode, min(TURN, left), left + PATIENCE)
            if not contender.failure:
                continue
        running.remove(contender)


def measured(turns: Sequence[Turn]) -> Sequence[Turn]:
    """Return all turns but the first, which warms up (unless it is all there is)."""
    return turns[1:] or turns


def speed(turns: Sequence[Turn]) -> float:
    """Return the tokens a second of some turns; 0 where there are none."""
    return sum(t.tokens for t in turns) / sum(t.seconds for t in turns) if turns else 0.0


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Let signals that end the program wait until the block has ended."""
    with StopSignals() as signals:
        yield
    if signals.received is not None:
        signal.raise_signal(signals.received)
