"""The processes that a launcher started together, joined by torch.distributed.

Tensors go by its collectives (gloo on CPUs, NCCL on CUDA), JSON values by its store.
"""

from __future__ import annotations

import json
import math
import os
import queue
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from seqtrain.errors import ConfigError, RunError, SeqtrainError
from seqtrain.processes.group import Group
from seqtrain.processes.place import LAUNCHED, Place, threads_each
from seqtrain.text import quote

TIMEOUT = "SEQTRAIN_TIMEOUT"
"""Environment variable: seconds after which a process that doesn't answer counts as lost."""
DEFAULT_TIMEOUT = 1800
GRACE = 1.0
"""Seconds in which all who learn of a lost process say that they themselves are not."""
LEAVING = 10.0
"""Seconds in which others may read what was told last, before the first ends their store."""
POLL = 0.005
"""Seconds between two looks for what others say."""


class JoinedGroup(Group):
    """One process of several.

    Args:
        place: of this process.
        store: where JSON values are told.
        device: where this process computes.
    """

    def __init__(self, place: Place, store: Store, device: torch.device) -> None:
        super().__init__(place)
        self._store = store
        self._device = device
        self._turn = 0
        store.set(f"host/{self.rank}", socket.gethostname())

    def tell(self, value: Any, *, patiently: bool = False) -> list[Any]:
        """Tell all processes a JSON value, and wait for theirs."""
        self._turn += 1
        last = time.monotonic() + (math.inf if patiently else _timeout())
        keys = [f"turn/{self._turn}/{rank}" for rank in range(self.size)]
        with self._losses_named():
            self._store.set(keys[self.rank], json.dumps(value))
            while not self._store.check(keys):
                if time.monotonic() > last:
                    raise TimeoutError
                time.sleep(POLL)
            return [json.loads(self._store.get(key)) for key in keys]

    def sum(self, values: Tensor) -> Tensor:
        """Add up tensors of all processes, to the same bits in each."""
        with self._losses_named():
            dist.all_reduce(values)
        return values

    def send_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Give tensors the content that the first process's have."""
        with self._losses_named(), torch.no_grad():
            for tensor in tensors:
                content = tensor.detach().to(self._device).contiguous()
                if content.numel():
                    dist.broadcast(content, src=0)
                tensor.copy_(content)

    @contextmanager
    def together(self, *, patiently: bool = False) -> Iterator[None]:
        """Let all processes end with the errors that any of them has meanwhile."""
        own: SeqtrainError | None = None
        try:
            yield
        except SeqtrainError as error:
            own = error
        told = None if own is None else [own.exit_code, list(own.problems)]
        all_told = self.tell(told, patiently=patiently)
        failed = {rank: told for rank, told in enumerate(all_told) if told}
        if not failed:
            return
        code, lines = next(iter(failed.values()))
        if any(told != [code, lines] for told in failed.values()) or len(failed) < self.size:
            lines = [
                f"{self.names([rank])}: {line}" if rank else line
                for rank, (_, problems) in failed.items()
                for line in problems
            ]
        shown = own or SeqtrainError()
        shown.problems, shown.exit_code, shown.told = tuple(lines), code, not self.is_first
        raise shown

    def leave(self) -> None:
        """Say that this process reads no more; the first, which may hold the store, leaves last."""
        last = time.monotonic() + LEAVING
        others = [f"left/{rank}" for rank in range(1, self.size)]
        with suppress(RuntimeError):
            self._store.set(f"left/{self.rank}", "")
            while self.is_first and not self._store.check(others) and time.monotonic() < last:
                time.sleep(POLL)

    def names(self, ranks: Iterable[int]) -> str:
        """Say which processes these are, and where."""
        hosts = {rank: self._store.get(f"host/{rank}").decode() for rank in ranks}
        return ", ".join(f"rank {rank} on {host}" for rank, host in hosts.items())

    @contextmanager
    def _losses_named(self) -> Iterator[None]:
        """Turn what torch raises of a broken connection into a RunError that names the lost."""
        try:
            yield
        except (RuntimeError, TimeoutError) as error:
            raise self._loss(error) from None

    def _loss(self, error: Exception) -> RunError:
        """Find out who is lost: who learned of it says so, and who doesn't is.

        Closing our own connections wakes those who wait for this process.
        """
        with suppress(RuntimeError):
            dist.destroy_process_group()
        try:
            self._store.set(f"alive/{self.rank}", "")
            time.sleep(GRACE)
            alive = [r for r in range(self.size) if self._store.check([f"alive/{r}"])]
            lost = self.names(r for r in range(self.size) if r not in alive)
        except RuntimeError:  # the store has gone with the first process
            alive, lost = [self.rank], "rank 0"
        who = lost or f"a connection ({str(error)[:200]})"
        problem = RunError(
            f"lost: {who}; the others end too; what was saved stays valid: go on with --resume"
        )
        problem.told = self.rank != min(alive, default=self.rank)
        return problem


@contextmanager
def joined(place: Place, device: torch.device) -> Iterator[Group]:
    """Join the processes that a launcher started together with this one; leave them at the end.

    Args:
        place: of this process.
        device: where it computes.

    Raises:
        ConfigError: the environment isn't that of a launcher, or the device can't be shared.
        RunError: the processes don't find one another.
    """
    if device.type == "mps":
        raise ConfigError("device mps: one process alone trains on it; expected cpu or cuda")
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]
    if missing:
        raise ConfigError(f"{missing[0]}: not set, but WORLD_SIZE is {place.size}; start torchrun")
    port = os.environ["MASTER_PORT"]
    if not (re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 2**16):
        raise ConfigError(f"MASTER_PORT: found {quote(port)}; expected a number from 1 to 65535")
    wait = timedelta(seconds=_timeout())
    try:
        found, rank, size = _meet(wait)
        # The launcher's store may still hold what was told before all were started again.
        store = PrefixStore(f"seqtrain/{place.restarts}", found)
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=PrefixStore("collectives", store),
            rank=rank,
            world_size=size,
            timeout=wait,
        )
    except (RuntimeError, ValueError, OSError) as error:
        said = str(error).splitlines()[0][:200]
        raise RunError(
            f"rank {place.rank} doesn't find the {place.size} processes: {said}"
        ) from None
    group = JoinedGroup(place, PrefixStore("told", store), device)
    _set_threads(group)
    try:
        yield group
    finally:
        if dist.is_initialized():
            group.leave()
            dist.destroy_process_group()


def _meet(wait: timedelta) -> tuple[Store, int, int]:
    """Find the other processes; return the store that all share, and rank and number by torch.

    Raises:
        TimeoutError: what listens at the port says nothing, for which torch alone waits for ever.
    """
    answers: queue.Queue[Any] = queue.Queue()

    def look() -> None:
        try:
            answers.put(next(rendezvous("env://", timeout=wait)))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=look, daemon=True).start()
    try:
        answer = answers.get(timeout=wait.total_seconds() + GRACE)
    except queue.Empty:
        port = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise TimeoutError(f"{port} says nothing; does another program listen there?") from None
    if isinstance(answer, Exception):
        raise answer
    found: tuple[Store, int, int] = answer
    return found


def own_device(place: Place, device: torch.device) -> torch.device:
    """Return a process's own device: of a host's several GPUs the one with its number.

    Raises:
        ConfigError: the host has fewer GPUs than processes.
    """
    if device.type != "cuda" or place.size == 1:
        return device
    if place.local_rank >= torch.cuda.device_count():
        raise ConfigError(
            f"device {device}: {place.local_size} processes on a host with "
            f"{torch.cuda.device_count()} GPUs; start as many as there are, or take cpu"
        )
    return torch.device("cuda", place.local_rank)


def _set_threads(group: Group) -> None:
    """Share the cores among a host's processes: torchrun gives each one thread unless told."""
    threads = threads_each(group.place.local_size)
    if os.environ.get("OMP_NUM_THREADS") != "1" or LAUNCHED in os.environ or threads == 1:
        return
    torch.set_num_threads(threads)
    group.notes.append(f"{threads} threads in each process, where torchrun sets OMP_NUM_THREADS=1")


def _timeout() -> int:
    value = os.environ.get(TIMEOUT, "") or str(DEFAULT_TIMEOUT)
    if not (value.isascii() and value.isdigit() and 0 < int(value) < 10**7):
        raise ConfigError(f"{TIMEOUT}: found {value[:40]!r}; expected seconds, from 1")
    return int(value)
