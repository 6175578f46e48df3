"""Where a process stands among those that a launcher started, as its environment says."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from seqtrain.errors import ConfigError

LAUNCHED = "SEQTRAIN_LAUNCHED"
"""Is set where `seqtrain fit --nproc-per-node` started the process, which then has its threads."""


@dataclass(frozen=True)
class Place:
    """A process's place, by the variables that torchrun sets.

    Attributes:
        rank: number of the process, from 0.
        size: number of all processes.
        local_rank, local_size: the same among those of its host.
        restarts: how often the launcher has started all of them again.
        launch: what tells this launch from others; None: no launcher restarts it.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    restarts: int = 0
    launch: str | None = None

    @classmethod
    def here(cls, variables: Mapping[str, str] = os.environ) -> Place:
        """Return the place of this process.

        Raises:
            ConfigError: a variable isn't what a launcher sets.
        """
        rank, size = _number(variables, "RANK", 0), _number(variables, "WORLD_SIZE", 1)
        if not rank < size:
            raise ConfigError(f"RANK: found {rank}; expected less than WORLD_SIZE, {size}")
        local, beside = _number(variables, "LOCAL_RANK", rank), "LOCAL_WORLD_SIZE"
        local_size = _number(variables, beside, size)
        if not local < local_size <= size:
            raise ConfigError(
                f"{beside}: found {local_size}; expected more than LOCAL_RANK, {local}, and no "
                f"more than WORLD_SIZE, {size}"
            )
        launch = variables.get("TORCHELASTIC_RUN_ID")
        return cls(
            rank,
            size,
            local,
            local_size,
            _number(variables, "TORCHELASTIC_RESTART_COUNT", 0),
            # The id of torchrun's static rendezvous is always "none"; its process id is its own.
            None if launch is None else f"{launch} {socket.gethostname()} {os.getppid()}",
        )


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_each(processes: int) -> int:
    """Return how many threads each process of a host gets."""
    return max(1, cores() // processes)


def _number(variables: Mapping[str, str], name: str, default: int) -> int:
    value = variables.get(name, "")
    if not value:
        return default
    if not (value.isascii() and value.isdigit()) or len(value) > 9:
        raise ConfigError(f"{name}: found {value[:40]!r}; expected a whole number from 0")
    return int(value)
