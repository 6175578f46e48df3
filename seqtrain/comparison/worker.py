"""What runs in the processes of `compare`: one that starts the others, and a worker per variant."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from itertools import cycle, islice
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import BaseProcess
from typing import Any

import torch
import torch._dynamo  # the first optimizer would load it, in seconds

from seqtrain.api.environment import peak_memory
from seqtrain.comparison.learners import SeqtrainLearner, make_learner, typical_first
from seqtrain.comparison.speed import Turn, synchronize
from seqtrain.comparison.task import Task
from seqtrain.comparison.variants import VARIANTS
from seqtrain.errors import SeqtrainError


def serve(descriptor: int) -> None:
    """Fork a worker per variant, and pass on what they are asked, one request at a time.

    Args:
        descriptor: of the connection to the program. When that is closed, all processes end.
    """
    control = Connection(descriptor)
    try:
        task, names = control.recv()
        workers = {name: _fork(name, task) for name in names}
        while True:
            name, request, limit = control.recv()
            control.send(_ask(*workers[name], control, request, limit))
    except (EOFError, OSError):  # the program is done, or gone
        os.killpg(0, signal.SIGKILL)


def _fork(name: str, task: Task) -> tuple[BaseProcess, Connection]:
    ours, theirs = Pipe()
    fork = multiprocessing.get_context("fork").Process
    process = fork(target=_work, args=(theirs, name, task), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _ask(
    process: BaseProcess, worker: Connection, control: Connection, request: Any, limit: float
) -> tuple[Any, str]:
    """Return a worker's answer, or None and why: then its process has ended."""
    try:
        worker.send(request)
        ready = wait([worker, control], limit)
        if worker in ready:
            answer: tuple[Any, str] = worker.recv()
            return answer
    except (EOFError, OSError):
        process.join()
        return None, f"its process ended with code {process.exitcode}"
    if ready:
        raise EOFError("the program is gone: it asks nothing else before it has its answer")
    process.kill()
    process.join()
    return None, f"cut: no answer within {limit:.0f} s"


def _work(connection: Connection, name: str, task: Task) -> None:
    """Build a variant, then answer requests: what to do, and how much."""
    try:
        torch.set_num_threads(task.threads)
        answers = _answers(name, task)
        while True:
            mode, *amount = connection.recv()
            connection.send((answers[mode](*amount), ""))
    except SeqtrainError as error:
        connection.send((None, str(error)))


def _answers(name: str, task: Task) -> dict[str, Callable[..., Any]]:
    """Return what answers each mode of request."""
    lengths, held = task.train.lengths, peak_memory(task.device)
    learner = make_learner(name, task)
    plan = typical_first(lengths, VARIANTS[name].config(task.config))
    to_learn, to_classify = cycle(plan), cycle(plan)
    together = 1

    def turn(batches: int, tokens: int, began: float) -> Turn:
        synchronize(task.device)
        seconds, most = time.perf_counter() - began, peak_memory(task.device)
        memory = None if most is None or held is None else most - held
        return Turn(batches, tokens, seconds, memory)

    def train(seconds: float) -> Turn:
        """Make updates for some seconds, one at least."""
        done, tokens, began = 0, 0, time.perf_counter()
        while not done or time.perf_counter() - began < seconds:
            rows = next(to_learn)
            learner.learn(rows)
            done, tokens = done + 1, tokens + int(lengths[rows].sum())
        return turn(done, tokens, began)

    def predict(seconds: float) -> Turn:
        """Classify as many batches at once as fit the seconds, as a whole file is."""
        nonlocal together
        batches = list(islice(to_classify, together))
        tokens = sum(int(lengths[rows].sum()) for rows in batches)
        began = time.perf_counter()
        learner.logits(batches)
        done = turn(len(batches), tokens, began)
        if done.seconds < seconds / 2:
            together = min(2 * together, len(plan))
        return done

    answers: dict[str, Callable[..., Any]] = {"training": train, "prediction": predict}
    answers["logits"] = lambda: learner.logits([task.probe]).numpy()
    if isinstance(learner, SeqtrainLearner):
        answers["accuracy"] = learner.accuracy
    return answers
