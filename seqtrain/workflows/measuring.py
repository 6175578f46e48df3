"""Candidates take turns, each in a process of its own.

In a process of its own a candidate's peak memory is its own, and a batch that would take minutes
can be ended. They start side by side, then one works at a time: as they take short turns, noise of
the machine hits all alike, so that ratios of their speeds can be trusted where the speeds
themselves can't.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from seqtrain.errors import SeqtrainError
from seqtrain.workflows.candidates import Candidate, PackedCandidate, make_candidate
from seqtrain.workflows.environment import peak_memory
from seqtrain.workflows.peak import synchronize
from seqtrain.workflows.task import Task

TURN = 0.25
"""Seconds of a turn, or one batch where that takes longer."""
PATIENCE = 10.0
"""Seconds that a candidate's first batch may take in any case."""
MARGIN = 1.5
"""How much longer than the longest so far a turn may take."""
START = 60.0
"""Seconds that a process may take until it is ready."""


class Turn(NamedTuple):
    """What was measured at once: some batches, their real tokens, and seconds."""

    batches: int
    tokens: int
    seconds: float


class Contender:
    """A candidate at work in a process of its own, which is ready after `begin`.

    Args:
        name: of the candidate.
        task: what to run it on.

    Attributes:
        logits: of the probe, (B, C); None where the process failed.
        turns: taken in each mode, the first of which is one batch.
        memory: the most that the process held beyond Python and the data, up to the end of each
            mode, in bytes; None where the system doesn't say.
        accuracies: on held-out sequences, one for each time it learned from the same examples.
        failure: why it can't go on; empty while it can.
    """

    def __init__(self, name: str, task: Task) -> None:
        context = _context()
        self.name = name
        self.turns: dict[str, list[Turn]] = {"prediction": [], "training": []}
        self.memory: dict[str, int | None] = {"prediction": None, "training": None}
        self.accuracies: list[float] = []
        self.failure = ""
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, name, task), daemon=True)
        self._process.start()
        theirs.close()
        self.logits: npt.NDArray[np.float32] | None = None

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

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._connection.close()

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
            self._process.join()
            self.failure = f"its process ended with code {self._process.exitcode}"
        self._process.kill()
        return None


def take_turns(
    contenders: Sequence[Contender], mode: str, deadline: float, between: Callable[[], None]
) -> None:
    """Measure candidates in turns until the time is up: always the one measured the shortest.

    Each gets one batch at first, and then the time left is shared evenly; one whose turn would
    hardly end before the deadline gets no more.

    Args:
        contenders: the candidates.
        mode: training or prediction.
        deadline: of time.monotonic(); only first batches may go beyond, by PATIENCE.
        between: is called before every turn.
    """
    for place, contender in enumerate(contenders):
        between()
        if not contender.failure:
            share = (deadline - time.monotonic()) / (len(contenders) - place)
            contender.measure(mode, 0.0, max(PATIENCE, share))
    running = [c for c in contenders if not c.failure]
    while running:
        between()
        contender = min(running, key=lambda c: sum(turn.seconds for turn in c.turns[mode]))
        left = deadline - time.monotonic()
        if MARGIN * max(turn.seconds for turn in contender.turns[mode]) < left:
            contender.measure(mode, min(TURN, left), left + PATIENCE)
            if not contender.failure:
                continue
        running.remove(contender)


def tokens_per_second(turns: Sequence[Turn]) -> float | None:
    """Return the speed over all turns but the first, which warms up (unless it is all there is)."""
    counted = turns[1:] or turns
    return sum(t.tokens for t in counted) / sum(t.seconds for t in counted) if counted else None


def _context() -> ForkServerContext | SpawnContext:
    """Return how processes start: as copies of one that has loaded torch, where the system can."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # torch loads the second itself, in a second, when the first optimizer is made.
    context.set_forkserver_preload([__name__, "torch._dynamo"])
    if threading.current_thread() is threading.main_thread():
        # What is ignored while it starts stays ignored there: Ctrl-C is for us to answer.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        forkserver.ensure_running()
        signal.signal(signal.SIGINT, handler)
    return context


def _serve(connection: Connection, name: str, task: Task) -> None:
    """Run in the candidate's process: send the probe's logits, then a turn for every request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started us ends us
    torch.set_num_threads(task.threads)
    held = peak_memory(task.device)
    try:
        candidate = make_candidate(name, task)
        connection.send(candidate.logits([task.probe]).numpy())
        work = {
            "prediction": _prediction(candidate, task),
            "training": _training(candidate, task),
        }
        while True:
            mode, amount = connection.recv()
            if mode == "accuracy":
                assert isinstance(candidate, PackedCandidate), "recipes share another's accuracy"
                connection.send(candidate.accuracy(*amount))
                continue
            turn = work[mode](amount)
            most = peak_memory(task.device)
            connection.send((turn, None if most is None or held is None else most - held))
    except SeqtrainError as error:
        connection.send(str(error))
    except (EOFError, BrokenPipeError):
        pass


def _training(candidate: Candidate, task: Task) -> Callable[[float], Turn]:
    """Return what makes updates, batch by batch, for some seconds."""
    batches = cycle(candidate.batches)

    def run(seconds: float) -> Turn:
        done, tokens, began = 0, 0, time.perf_counter()
        while not done or time.perf_counter() - began < seconds:
            rows = next(batches)
            candidate.learn(rows)
            done, tokens = done + 1, tokens + int(task.train.lengths[rows].sum())
        synchronize(task.device)
        return Turn(done, tokens, time.perf_counter() - began)

    return run


def _prediction(candidate: Candidate, task: Task) -> Callable[[float], Turn]:
    """Return what classifies as many batches at once as fit some seconds, for whole files do."""
    batches = cycle(candidate.batches)
    together = 1

    def run(seconds: float) -> Turn:
        nonlocal together
        rows = list(islice(batches, together))
        tokens = sum(int(task.train.lengths[batch].sum()) for batch in rows)
        began = time.perf_counter()
        candidate.logits(rows)
        synchronize(task.device)
        turn = Turn(len(rows), tokens, time.perf_counter() - began)
        if turn.seconds < seconds / 2:
            together = min(2 * together, len(candidate.batches))
        return turn

    return run
