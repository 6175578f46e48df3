"""Processes that train one model, started by torchrun: rank, size, all-reduce, broadcast.

A process that fails raises and ends; the others find the connection closed and end too.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from seqtrain.errors import ConfigError, RunError
from seqtrain.signals import STOPPING, StopSignals
from seqtrain.text import listed

TIMEOUT = "SEQTRAIN_TIMEOUT"
"""Environment variable: seconds after which a sum that isn't complete fails."""
DEFAULT_TIMEOUT = 1800
PATIENCE = timedelta(days=7)
"""How long a broadcast waits for the first process, which may read data for hours."""
LONGEST = 4096
"""Bytes that a process can give to `gather`."""
GO_ON = "what was saved stays valid: go on with --resume"


@dataclass
class Processes:
    """The processes that train together; this process alone where no launcher started it.

    Attributes:
        restarts, may_restart: how often the launcher has started all again, and whether it does.
        launch: what tells this launch from others; None: no launcher.
        patient: the same processes, where one may wait for hours; None: not connected.
        sums_on_host: True if tensors of a GPU are summed on the host, as without NCCL.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    restarts: int = 0
    may_restart: bool = False
    launch: str | None = None
    signals: StopSignals = field(default_factory=StopSignals, compare=False)
    patient: dist.ProcessGroup | None = None
    sums_on_host: bool = False
    _agreed: int | None = None

    @classmethod
    def launched(cls, variables: Mapping[str, str] = os.environ) -> Processes:
        """Return the processes that the environment names, not yet connected."""
        rank, size = _number(variables, "RANK", 0), _number(variables, "WORLD_SIZE", 1)
        local_rank = _number(variables, "LOCAL_RANK", rank)
        local_size = _number(variables, "LOCAL_WORLD_SIZE", size)
        if not (rank < size and local_rank < local_size <= size):
            here = f"RANK {rank} of WORLD_SIZE {size}, LOCAL_RANK {local_rank}"
            what = "no such process; expected what torchrun sets"
            raise ConfigError(f"{here} of LOCAL_WORLD_SIZE {local_size}: {what}")
        launch = variables.get("TORCHELASTIC_RUN_ID")
        if launch is not None:  # torchrun names all its launches alike; its process id differs
            launch = f"{launch} {socket.gethostname()} {os.getppid()}"
        restarts = _number(variables, "TORCHELASTIC_RESTART_COUNT", 0)
        may_restart = _number(variables, "TORCHELASTIC_MAX_RESTARTS", 0) > 0
        return cls(rank, size, local_rank, local_size, restarts, may_restart, launch)

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that prints and writes."""
        return self.rank == 0

    @property
    def stop_signal(self) -> int | None:
        """The signal that stops the run, once all processes know of it."""
        return self.signals.received if self.size == 1 else self._agreed

    def lines(self, *lines: str) -> tuple[str, ...]:
        """Return the lines of an error that all processes raise: the first alone prints them."""
        return lines if self.is_first else ()

    def sum(self, *tensors: Tensor) -> list[Tensor]:
        """All-reduce tensors of one type and device, to the same bits in each process.

        Signals travel along. As in all methods, a lost process is a RunError.
        """
        if self.size == 1:
            return list(tensors)
        asked = tensors[0].new_tensor([number == self.signals.received for number in STOPPING])
        flat = torch.cat([*(tensor.flatten() for tensor in tensors), asked.to(tensors[0].dtype)])
        device = flat.device
        flat = flat.cpu() if self.sums_on_host else flat
        with self._lost_is_an_error():
            dist.all_reduce(flat)
        flat = flat.to(device)
        *sums, asked = flat.split_with_sizes([*(t.numel() for t in tensors), len(STOPPING)])
        agreed = [number for number, n in zip(STOPPING, asked.tolist(), strict=True) if n]
        self._agreed = self._agreed or next(iter(agreed), None)
        return [total.view_as(tensor) for total, tensor in zip(sums, tensors, strict=True)]

    def broadcast(self, content: bytes = b"") -> bytes:
        """Wait for all processes, and return the bytes that the first one has."""
        if self.size == 1:
            return content
        length = torch.tensor(len(content) if self.is_first else 0, device="cpu")
        with self._lost_is_an_error():
            dist.all_reduce(length, group=self.patient)  # unlike a broadcast, it waits for all
            received = torch.empty(int(length), dtype=torch.uint8, device="cpu")
            if self.is_first and content:
                received = torch.frombuffer(bytearray(content), dtype=torch.uint8)
            if len(received):
                dist.broadcast(received, src=0, group=self.patient)
        return received.numpy().tobytes()

    def gather(self, content: bytes) -> list[bytes]:
        """Return the bytes of all processes, by rank: at most `LONGEST`, no zero among them."""
        table = torch.zeros(self.size, LONGEST, dtype=torch.uint8, device="cpu")
        row = torch.tensor(list(content), dtype=torch.uint8, device="cpu")
        table[self.rank, : len(row)] = row
        (table,) = self.sum(table)
        return [row.numpy().tobytes().rstrip(b"\0") for row in table]

    def unlike_first(self, parts: Iterable[Any]) -> str:
        """Say which processes have other bytes than rank 0 has; nothing where all are equal."""
        if self.size == 1:
            return ""
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        first, *others = self.gather(digest.hexdigest().encode())
        unlike = [f"rank {rank}" for rank, found in enumerate(others, 1) if found != first]
        return listed(unlike) if unlike else ""

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """Let the first process run the block before the others: they repeat no refusal of its."""
        if not self.is_first:
            self.broadcast()
        yield
        if self.is_first:
            self.broadcast()

    @contextmanager
    def _lost_is_an_error(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            lost = f"another process is lost ({_first_line(error)})"
            raise RunError(*self.lines(f"{lost}; {GO_ON}")) from None


ALONE = Processes()


@contextmanager
def connected(device: torch.device) -> Iterator[tuple[Processes, torch.device]]:
    """Connect this process with those that a launcher started beside it, until the block is left.

    Yields the processes, and this one's own device: the GPU of its local rank.
    """
    processes = Processes.launched()
    if processes.size == 1:
        yield processes, device
        return
    gpus = torch.cuda.device_count() if device.type == "cuda" else processes.local_size
    if device.type == "mps" or processes.local_rank >= gpus:
        shared = f"{processes.local_size} processes can't share it"
        raise ConfigError(f"device {device}: {shared}; start one for each GPU, or take cpu")
    options: dict[str, Any] = {}
    backend = "gloo"
    if device.type == "cuda":
        device = torch.device("cuda", processes.local_rank)
        torch.cuda.set_device(device)  # otherwise each process opens a context on the first GPU
        if dist.is_nccl_available():
            # Without it a lost process is noticed when the watchdog aborts, after the timeout.
            os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")
            backend, options = "cpu:gloo,cuda:nccl", {"device_id": device}
    processes.sums_on_host = backend == "gloo"
    wait = timedelta(seconds=_number(os.environ, TIMEOUT, DEFAULT_TIMEOUT))
    try:
        store, rank, size = next(rendezvous("env://", timeout=wait))
        # The launcher's store still holds what processes wrote before they were started again.
        store = PrefixStore(f"seqtrain/{processes.restarts}", store)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=wait, **options
        )
        processes.patient = dist.new_group(backend="gloo", timeout=PATIENCE)
        dist.barrier(processes.patient)
    except ValueError as error:
        raise ConfigError(f"{_first_line(error)}; expected what torchrun sets") from None
    except (RuntimeError, OSError) as error:
        problem = f"the {processes.size} processes don't find one another: {_first_line(error)}"
        raise RunError(problem) from None
    try:
        yield processes, device
    finally:
        dist.destroy_process_group()


def _number(variables: Mapping[str, str], name: str, default: int) -> int:
    value = variables.get(name) or str(default)
    if not (value.isascii() and value.isdigit()) or len(value) > 9:
        raise ConfigError(f"{name}: found {value[:40]!r}; expected a whole number from 0")
    return int(value)


def _first_line(error: Exception) -> str:
    """Return the first sentence of what torch says, without the place in its sources."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return re.sub(r"\[\S*/\S*\] ", "", line).split(". ")[0][:200]
