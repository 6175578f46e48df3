"""A process that trains run after run: a lack of memory ends it, and nothing else."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

from seqtrain.api.events import Run
from seqtrain.config import Config
from seqtrain.errors import RunError, SeqtrainError, ran_out_of_memory
from seqtrain.processes.child import start_child


@dataclass(frozen=True)
class TrainingTask:
    """What a process is to train.

    Attributes:
        config: of the run.
        run_dir: where.
        threads: for the processor; None: as many as torch takes.
        cache: whether encoded data is kept.
        finish, resume, force, init_from: as for `fit`.
    """

    config: Config
    run_dir: Path
    threads: int | None
    cache: bool = True
    finish: bool = True
    resume: bool = False
    force: bool = False
    init_from: str | Path | None = None


@dataclass(frozen=True)
class EpochReport:
    """What a process says after an epoch; it then waits to be told whether to go on.

    Attributes:
        epoch, epochs: its number, and how many the run has at most.
        value: the monitored value, as it is.
        rank: the same in the sense that greater is better.
        loss: of validation, in nats.
        is_best: whether no epoch before was better.
    """

    epoch: int
    epochs: int
    value: float
    rank: float
    loss: float | None
    is_best: bool


Said: TypeAlias = str | EpochReport | Run | SeqtrainError | None


class TrainingProcess:
    """A process, a session of its own: what a terminal sends reaches the program alone.

    Raises:
        RunError: the system can't start one.
    """

    def __init__(self) -> None:
        self._process, self.connection = start_child("seqtrain.api.training_process")

    def send(self, message: object) -> None:
        """Send a task, or whether to go on; a process that is gone is noticed by `receive`."""
        with suppress(OSError):
            self.connection.send(message)

    def receive(self) -> Said:
        """Return what it says: a warning, an epoch, the run, why it failed; None: given up."""
        try:
            answer: Said = self.connection.recv()
        except (EOFError, OSError):
            code = self._process.wait()
            if code == -getattr(signal, "SIGKILL", 9):
                return RunError("its process was killed, as the system does where memory runs out")
            return RunError(f"its process ended with code {code}")
        return answer

    @property
    def is_alive(self) -> bool:
        """Whether it can take another task."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process at once."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self.connection.close()


class _GivenUpError(Exception):
    """The run isn't to go on."""


def serve(descriptor: int) -> None:
    """Train until the other end is closed.

    Args:
        descriptor: of the connection.
    """
    import torch

    connection = Connection(descriptor)
    parent = os.getppid()
    while True:
        try:
            task: TrainingTask = connection.recv()
        except EOFError:
            return
        if task.threads is not None:
            torch.set_num_threads(task.threads)
        connection.send(_trained(task, connection, parent))


def _trained(task: TrainingTask, connection: Connection, parent: int) -> Run | SeqtrainError | None:
    """Train; return the run, or why it failed; None: it was given up."""
    from seqtrain.api.events import DataEvent, Event, StartEvent, WarningEvent
    from seqtrain.api.fit import fit
    from seqtrain.training.events import EpochEvent, UpdateEvent

    monitor, epochs = task.config.training.monitor, 0

    def listen(event: Event) -> None:
        nonlocal epochs
        for line in event.warnings if isinstance(event, DataEvent | StartEvent) else ():
            connection.send(line)
        if isinstance(event, WarningEvent):
            connection.send(event.line)
        if isinstance(event, StartEvent):
            epochs = event.epochs
        elif isinstance(event, UpdateEvent) and os.getppid() != parent:
            os._exit(1)  # nobody is left to answer to
        elif isinstance(event, EpochEvent) and event.validation is not None:
            scores = event.validation
            value, rank = getattr(scores, monitor), scores.monitored(monitor)
            connection.send(
                EpochReport(event.epoch, epochs, value, rank, scores.loss, event.is_best)
            )
            if not connection.recv():
                raise _GivenUpError

    try:
        return fit(
            task.config,
            run_dir=task.run_dir,
            cache=task.cache,
            finish=task.finish,
            resume=task.resume,
            force=task.force,
            init_from=task.init_from,
            listener=listen,
        )
    except _GivenUpError:
        return None
    except SeqtrainError as error:
        return error
    except Exception as error:
        if not ran_out_of_memory(error):
            raise
        return RunError("memory ran out")
