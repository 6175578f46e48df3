"""What runs in the processes of `compare`: a nursery, and its children with a candidate each.

The nursery loads torch and takes the task once; a child, forked from it, begins at once. The
program itself can't fork them: it may have threads of torch's by now.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from itertools import cycle, islice
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import send_handle

import torch
import torch._dynamo  # the first optimizer would load it, in seconds

from seqtrain.errors import SeqtrainError
from seqtrain.workflows.candidates import Candidate, PackedCandidate, make_candidate
from seqtrain.workflows.environment import peak_memory
from seqtrain.workflows.measuring import Turn
from seqtrain.workflows.peak import synchronize
from seqtrain.workflows.task import Task


def nurse(descriptor: int) -> None:
    """Run in the nursery: fork a child for each name, end those that are named, and all at last.

    Args:
        descriptor: of the connection to the program; closed there, everything ends.
    """
    control = Connection(descriptor)
    children = {}
    try:
        task, names = control.recv()
        for name in names:
            ours, theirs = Pipe()
            target, arguments = _child, (control, ours, theirs, name, task)
            children[name] = multiprocessing.get_context("fork").Process(
                target=target, args=arguments, daemon=True
            )
            children[name].start()
            send_handle(control, theirs.fileno(), 0)
            ours.close()
            theirs.close()
        while True:
            child = children[control.recv()]
            child.kill()
            child.join()
            control.send(child.exitcode)
    except (EOFError, OSError):  # the program is done, or gone
        for child in children.values():
            child.kill()
        for child in children.values():
            child.join()
        os._exit(0)  # torch would be unloaded for a second


def _child(
    control: Connection, ours: Connection, theirs: Connection, name: str, task: Task
) -> None:
    """Run a candidate; only the two ends of its own connection may stay open."""
    control.close()
    theirs.close()
    try:
        _serve(ours, name, task)
    except SeqtrainError as error:
        ours.send(str(error))
    except (EOFError, BrokenPipeError):
        pass


def _serve(connection: Connection, name: str, task: Task) -> None:
    """Send the probe's logits, then a turn for every request."""
    torch.set_num_threads(task.threads)
    held = peak_memory(task.device)
    candidate = make_candidate(name, task)
    connection.send(candidate.logits([task.probe]).numpy())
    work = {"prediction": _prediction(candidate, task), "training": _training(candidate, task)}
    while True:
        mode, amount = connection.recv()
        if mode == "accuracy":
            assert isinstance(candidate, PackedCandidate), "recipes share another's accuracy"
            connection.send(candidate.accuracy(*amount))
            continue
        turn = work[mode](amount)
        most = peak_memory(task.device)
        connection.send((turn, None if most is None or held is None else most - held))


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
