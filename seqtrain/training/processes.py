"""Processes that train one model together, started by torchrun: sums, broadcasts, stop signals.

Each process computes a share of every batch, and gradients are summed. Everything that is decided
or written is decided by rank 0. If a process is lost, the others find the connection closed, and
end. A single process uses the same class: its sums are the tensors themselves.

U touched rows of a table, E size of a row.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import safetensors.torch
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from seqtrain.errors import ConfigError, Interrupted, RunError
from seqtrain.signals import STOPPING, StopSignals
from seqtrain.text import listed

TIMEOUT = "SEQTRAIN_TIMEOUT"
"""Environment variable with the number of seconds after which an incomplete sum fails."""
DEFAULT_TIMEOUT = 1800
LONGEST_WAIT = timedelta(days=7)
"""Timeout of a broadcast. Rank 0 may read data or solve for hours."""
Items = TypeVar("Items", list[Any], Tensor)


@dataclass
class Processes:
    """The processes that train one model together.

    All processes must call the methods that communicate together, in the same order. Each of these
    raises RunError if a process is lost.

    Attributes:
        rank: Number of this process, from 0. Rank 0 prints and writes.
        size: Number of processes.
        local_rank: Number of this process on its host.
        local_size: Number of processes on this host.
        restarts: Number of times that the launcher has restarted all processes.
        may_restart: True if the launcher restarts the processes after a failure.
        launch: Text that identifies the launch, or None without a launcher.
        signals: Receiver of signals that ask this process to stop.
        agreed: Number of the signal of which several processes know, or None.
        patient: Process group with a timeout of a week, to wait for rank 0.
        sums_on_host: True if tensors on a GPU are copied to the CPU to be summed (without NCCL).
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    restarts: int = 0
    may_restart: bool = False
    launch: str | None = None
    signals: StopSignals = field(default_factory=StopSignals, compare=False)
    agreed: int | None = field(default=None, compare=False)
    patient: dist.ProcessGroup | None = field(default=None, compare=False)
    sums_on_host: bool = field(default=False, compare=False)

    @property
    def is_first(self) -> bool:
        """True for rank 0, the process that prints and writes."""
        return self.rank == 0

    @property
    def stop_signal(self) -> int | None:
        """Number of the signal that asked to stop, or None until all processes know of it."""
        if self.size == 1:
            return self.signals.received
        return self.agreed

    def raise_if_stopped(self) -> None:
        """Raise Interrupted if a signal asked to stop."""
        if self.stop_signal is not None:
            raise Interrupted(self.stop_signal)

    def command(self) -> str:
        """Return the command, for messages, that starts seqtrain in as many processes."""
        if self.size == 1:
            return "seqtrain"
        if self.size == self.local_size:
            return f"torchrun --nproc-per-node {self.size} -m seqtrain"
        return "torchrun (as before) -m seqtrain"

    def lines(self, *lines: str) -> tuple[str, ...]:
        """Return the lines of an error message on rank 0, and no lines on other ranks.

        Only rank 0 prints the error, so it is printed once.
        """
        if self.is_first:
            return lines
        return ()

    def share(self, items: Items) -> Items:
        """Return the items for this process. Of N processes, each gets every N-th item."""
        return items[self.rank :: self.size]

    def sum(self, *tensors: Tensor) -> list[Tensor]:
        """Return the sums of tensors over all processes, with the same bits on every rank.

        All tensors must have the same type and device. Stop signals are exchanged in the same
        message, so that all processes stop after the same update.
        """
        if self.size == 1:
            return list(tensors)
        first = tensors[0]
        asked = first.new_tensor([number == self.signals.received for number in STOPPING])
        parts = [*tensors, asked.to(first.dtype)]
        flat = torch.cat([part.flatten() for part in parts])
        flat = flat.cpu() if self.sums_on_host else flat
        with self._lost_process_as_error():
            dist.all_reduce(flat)
        sums = flat.to(first.device).split_with_sizes([part.numel() for part in parts])
        for number, count in zip(STOPPING, sums[-1].tolist(), strict=True):
            if count and self.agreed is None:
                self.agreed = number
        return [total.view_as(tensor) for total, tensor in zip(sums, tensors, strict=False)]

    def broadcast(self, content: bytes = b"") -> bytes:
        """Wait for all processes, for hours if needed, and return the bytes that rank 0 passed.

        Args:
            content: The bytes on rank 0. On other ranks it is ignored.
        """
        if self.size == 1:
            return content
        length = torch.tensor(len(content) if self.is_first else 0, device="cpu")
        with self._lost_process_as_error():
            dist.all_reduce(length, group=self.patient)  # unlike a broadcast, it waits for all
            received = torch.empty(int(length), dtype=torch.uint8, device="cpu")
            if self.is_first and content:
                received = torch.frombuffer(bytearray(content), dtype=torch.uint8)
            if len(received):
                dist.broadcast(received, src=0, group=self.patient)
        return received.numpy().tobytes()

    def tensors_of_first(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return the tensors that rank 0 passed, by name.

        With a single process, this is `tensors` itself. With several processes, every rank
        gets copies on the CPU.

        Args:
            tensors: The tensors on rank 0, by name. On other ranks it is ignored.
        """
        if self.size == 1:
            return tensors
        content = b""
        if self.is_first:
            own = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
            content = safetensors.torch.save(own)
        return safetensors.torch.load(self.broadcast(content))

    def unlike_first(self, parts: Iterable[Any]) -> str:
        """Compare bytes between all processes.

        Args:
            parts: Bytes or arrays of this process.

        Returns:
            The ranks that differ from rank 0, such as "rank 1, rank 3", or an empty text.
        """
        if self.size == 1:
            return ""
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        own = torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint8)
        table = torch.zeros(self.size, len(own), dtype=torch.uint8, device="cpu")
        table[self.rank] = own
        (table,) = self.sum(table)
        unlike = (table != table[0]).any(1).nonzero().flatten().tolist()
        return listed([f"rank {rank}" for rank in unlike])

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """Run the body of a `with` statement on rank 0 first, and then on the other ranks.

        If the body fails on rank 0, the other processes end.
        """
        if not self.is_first:
            self.broadcast()
        yield
        if self.is_first:
            self.broadcast()

    @contextmanager
    def _lost_process_as_error(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise RunError(
                *self.lines(
                    f"another process is lost ({_first_line(error)}); what was saved stays valid: "
                    "continue with --resume"
                )
            ) from None


SINGLE = Processes()


def launched(variables: Mapping[str, str] = os.environ) -> Processes:
    """Return the processes that environment variables of torchrun describe. Don't connect them.

    Raises:
        ConfigError: If the value of a variable is invalid, or if two variables contradict each
            other.
    """
    rank = _number(variables, "RANK", 0)
    size = _number(variables, "WORLD_SIZE", 1)
    local_rank = _number(variables, "LOCAL_RANK", rank)
    local_size = _number(variables, "LOCAL_WORLD_SIZE", size)
    if not (rank < size and local_rank < local_size <= size):
        raise ConfigError(
            f"RANK {rank} of WORLD_SIZE {size}, LOCAL_RANK {local_rank} of LOCAL_WORLD_SIZE "
            f"{local_size}: these environment variables contradict each other; start seqtrain with "
            "torchrun, or unset them"
        )
    launch = variables.get("TORCHELASTIC_RUN_ID")
    if launch is not None:  # torchrun names all its launches alike; its process id differs
        launch = f"{launch} {socket.gethostname()} {os.getppid()}"
    restarts = _number(variables, "TORCHELASTIC_RESTART_COUNT", 0)
    may_restart = _number(variables, "TORCHELASTIC_MAX_RESTARTS", 0) > 0
    return Processes(rank, size, local_rank, local_size, restarts, may_restart, launch)


@contextmanager
def connected(device: torch.device) -> Iterator[tuple[Processes, torch.device]]:
    """Connect the processes that torchrun started, until the end of the `with` statement.

    Yields:
        The processes, and the device of this process. On CUDA, it is the GPU of the local rank.

    Raises:
        ConfigError: If the processes can't share the device, or weren't started by torchrun.
        RunError: If the processes don't find one another.
    """
    processes = launched()
    if processes.size == 1:
        yield processes, device
        return
    if device.type == "cuda":
        gpus = torch.cuda.device_count()
    else:
        gpus = processes.local_size
    if device.type == "mps" or processes.local_rank >= gpus:
        raise ConfigError(
            f"device {device}: {processes.local_size} processes can't share it; start one for "
            "each GPU, or take cpu"
        )
    options: dict[str, Any] = {}
    backend = "gloo"
    if device.type == "cuda":
        device = torch.device("cuda", processes.local_rank)
        torch.cuda.set_device(device)  # otherwise each process opens a context on the first GPU
        if dist.is_nccl_available():
            # Without it a lost process is noticed when the watchdog aborts, after the timeout.
            os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")
            backend = "cpu:gloo,cuda:nccl"
            options = {"device_id": device}
    processes.sums_on_host = backend == "gloo"
    wait = timedelta(seconds=_number(os.environ, TIMEOUT, DEFAULT_TIMEOUT))
    try:
        store, rank, size = next(rendezvous("env://", timeout=wait))
        # The launcher's store still holds what processes wrote before they were started again.
        store = PrefixStore(f"seqtrain/{processes.restarts}", store)
        options |= {"store": store, "rank": rank, "world_size": size, "timeout": wait}
        dist.init_process_group(backend, **options)
        processes.patient = dist.new_group(backend="gloo", timeout=LONGEST_WAIT)
        dist.barrier(processes.patient)
    except ValueError as error:
        raise ConfigError(f"{_first_line(error)}; expected what torchrun sets") from None
    except (RuntimeError, OSError) as error:
        raise RunError(
            f"the {processes.size} processes don't find one another: {_first_line(error)}"
        ) from None
    try:
        yield processes, device
    finally:
        dist.destroy_process_group()


def sum_gradients(
    processes: Processes, weights: Collection[Tensor], tables: Collection[Tensor], *others: Tensor
) -> list[Tensor]:
    """Sum the gradients of weights over all processes, in place.

    A gradient that is None counts as zeros, or stays None if all processes have None. With a single
    process, nothing changes.

    Args:
        processes: The processes that train together.
        weights: The weights that learn.
        tables: The weights among them with sparse gradients. Only rows that some process used are
            summed.
        *others: Further tensors to sum, at least one.

    Returns:
        The sums of `others`.
    """
    if processes.size == 1:
        return list(others)
    given = others[0].new_tensor([float(weight.grad is not None) for weight in weights])
    sparse = [weight for weight in weights if any(weight is table for table in tables)]
    given, *marked = processes.sum(given, *map(_marked, sparse))
    rows = {}
    for table, marks in zip(sparse, marked, strict=True):
        rows[table] = marks.nonzero().squeeze(1)
    gradients = [_dense(weight, rows.get(weight)) for weight in weights]
    sums = processes.sum(*gradients, *others)
    for weight, is_given, total in zip(weights, given.tolist(), sums, strict=False):
        if weight in rows:
            total = _sparse(weight, rows[weight], total)
        weight.grad = total if is_given else None
    return sums[len(gradients) :]


def _marked(table: Tensor) -> Tensor:
    """Return a tensor with 1 for each row of a table that has a gradient, and 0 else, (V,)."""
    marks = table.new_zeros(len(table))
    if table.grad is None:
        return marks
    return marks.index_fill_(0, table.grad._indices()[0], 1)


def _dense(weight: Tensor, rows: Tensor | None) -> Tensor:
    """Return a weight's gradient as a dense tensor, with zeros in place of None.

    Args:
        weight: The weight.
        rows: Indices of the rows to return, ascending, (U,), or None to return all rows.
    """
    gradient = weight.grad
    if rows is None:
        if gradient is None:
            return torch.zeros_like(weight)
        return gradient
    values = weight.new_zeros(len(rows), weight.shape[1])
    if gradient is not None:
        gradient = gradient.coalesce()
        values[torch.searchsorted(rows, gradient.indices()[0])] = gradient.values()
    return values


def _sparse(table: Tensor, rows: Tensor, values: Tensor) -> Tensor:
    """Return a sparse gradient of a table with these rows, ascending, (U,), and values, (U, E)."""
    return torch.sparse_coo_tensor(
        rows[None],
        values,
        table.shape,
        is_coalesced=True,
        check_invariants=False,
        device=table.device,
    )


def _number(variables: Mapping[str, str], name: str, default: int) -> int:
    value = variables.get(name) or str(default)
    if not (value.isascii() and value.isdigit()) or len(value) > 9:
        raise ConfigError(
            f"environment variable {name}: found {value[:40]!r}; expected a whole number from 0"
        )
    return int(value)


def _first_line(error: Exception) -> str:
    """Return the first sentence of torch's message, without the place in its source code.

    The result has at most 200 characters. If torch's message is empty, return the name of the
    error's class.
    """
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return re.sub(r"\[\S*/\S*\] ", "", line).split(". ")[0][:200]
