"""Several runs at the same time, in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from multiprocessing.connection import wait
from typing import TypeAlias

from seqtrain.api.events import Run
from seqtrain.api.training_process import EpochReport, TrainingProcess, TrainingTask
from seqtrain.errors import Interrupted, SeqtrainError
from seqtrain.signals import StopSignals

PAUSE = 0.2
"""Seconds until signals are looked at again."""

Reporter: TypeAlias = Callable[[str, EpochReport | str], None]
"""Is told of each epoch and each warning, and of which run it is."""


def train_side_by_side(
    tasks: Mapping[str, TrainingTask], jobs: int, reporter: Reporter, how_to_go_on: str
) -> list[Run]:
    """Train runs, so many at a time; return them in the order of the tasks.

    Args:
        tasks: by the name of the run.
        jobs: processes at most.
        reporter: is told of each epoch and each warning.
        how_to_go_on: what to say where a signal stops them.

    Raises:
        SeqtrainError: one of them failed; the others were ended, and stay as they were saved.
        Interrupted: a signal came; every run is saved as its last epoch left it.
    """
    waiting, running, idle = list(tasks), dict[str, TrainingProcess](), list[TrainingProcess]()
    done: dict[str, Run] = {}
    with StopSignals() as signals:
        try:
            while len(done) < len(tasks):
                while waiting and len(running) < jobs:
                    name = waiting.pop(0)
                    running[name] = idle.pop() if idle else TrainingProcess()
                    running[name].send(tasks[name])
                ready = wait([worker.connection for worker in running.values()], PAUSE)
                if signals.received:
                    raise Interrupted(signals.received, how_to_go_on)
                for name, worker in list(running.items()):
                    if worker.connection not in ready:
                        continue
                    said = worker.receive()
                    if isinstance(said, EpochReport):
                        reporter(name, said)
                        worker.send(True)
                    elif isinstance(said, str):
                        reporter(name, said)
                    elif isinstance(said, SeqtrainError):
                        raise said
                    elif said is not None:
                        done[name] = said
                        idle.append(running.pop(name))
        finally:
            for worker in [*running.values(), *idle]:
                worker.end()
    return [done[name] for name in tasks]
