"""Starting several processes of the program: torchrun's own launcher, and what its end means."""

from __future__ import annotations

import logging
import os
import re
import socket
from typing import Any

from seqtrain.errors import ConfigError, RunError
from seqtrain.processes.place import LAUNCHED, threads_each

HOSTS = re.compile(r"[1-9][0-9]{0,4}(:[1-9][0-9]{0,4})?")
ENDPOINT = re.compile(r"[^\s:]+(:[0-9]{1,5})?|\[[0-9a-fA-F:]+\](:[0-9]{1,5})?")
RUN_ID = "seqtrain"
"""By which the hosts at one endpoint find one another."""
OWN_CODES = (2, 3, 130, 143, 129)
"""Codes that tell more than that another process ended, the most telling first."""


def launch(
    arguments: list[str], *, processes: int, hosts: str | None, endpoint: str | None, restarts: int
) -> int:
    """Run the program in several processes until all have ended.

    Args:
        arguments: of the program.
        processes: on this host.
        hosts: how many, or MIN:MAX; None: this one.
        endpoint: HOST:PORT of one of them, for several.
        restarts: how often all are started again where one is lost.

    Returns:
        The exit code: that of the processes; 128 + signal where one stopped the launcher.

    Raises:
        ConfigError: hosts or endpoint are wrong, or a launcher started this process already.
        RunError: a process was killed, or torchrun failed.
    """
    _check(hosts, endpoint)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads_each(processes)))
    os.environ[LAUNCHED] = "1"

    import torch.distributed.run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    options = [f"--nproc-per-node={processes}", f"--max-restarts={restarts}"]
    if endpoint is None:
        options.append("--standalone")
    else:
        options += [f"--nnodes={hosts}", "--rdzv-backend=c10d", f"--rdzv-id={RUN_ID}"]
        options.append(f"--rdzv-endpoint={endpoint}")
    for name in logging.root.manager.loggerDict:
        if name.startswith("torch.distributed"):
            # It would tell once more, in other words, what the processes say themselves.
            logging.getLogger(name).setLevel(logging.CRITICAL)
    torchrun: Any = torch.distributed.run  # it has no types
    try:
        torchrun.run(torchrun.parse_args([*options, "-m", "seqtrain", *arguments]))
    except SignalException as error:
        return 128 + int(error.sigval)
    except ChildFailedError as error:
        return _code({rank: failure.exitcode for rank, failure in error.failures.items()})
    except (RuntimeError, OSError) as error:
        said = str(error).splitlines()[0][:200]
        raise RunError(f"--rdzv-endpoint: the processes didn't start: {said}") from None
    return 0


def _check(hosts: str | None, endpoint: str | None) -> None:
    """Refuse wrong options before torch is loaded."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        raise ConfigError("--nproc-per-node: torchrun started this process; leave the option out")
    if hosts is not None and not HOSTS.fullmatch(hosts):
        raise ConfigError(f"--nnodes: found {hosts}; expected a number of hosts, or MIN:MAX")
    if hosts not in (None, "1") and endpoint is None:
        raise ConfigError(
            f"--nnodes: found {hosts}, but no --rdzv-endpoint; expected HOST:PORT of one of them"
        )
    if endpoint is not None and (hosts is None or not ENDPOINT.fullmatch(endpoint)):
        raise ConfigError(f"--rdzv-endpoint: found {endpoint}; expected HOST:PORT, with --nnodes")


def _code(codes: dict[int, int]) -> int:
    """Return the code that tells why processes ended; a negative one is a signal.

    Raises:
        RunError: one was killed, and no other says why.
    """
    killed = {rank: -code for rank, code in codes.items() if code < 0}
    if killed:
        names = ", ".join(f"rank {rank} by signal {n}" for rank, n in sorted(killed.items()))
        raise RunError(
            f"killed on {socket.gethostname()}: {names}; what was saved stays valid: go on with "
            "--resume"
        )
    return next((code for code in OWN_CODES if code in codes.values()), max(codes.values()))
