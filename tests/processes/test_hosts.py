"""Two hosts: network namespaces with a cable between them, and a host name each."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.program import KILLED, fingerprint, fit_arguments, signals_within
from tests.helpers.together import fit_together, launched

pytestmark = pytest.mark.slow
NAMES = ("first-host", "second-host")
CABLE = ("seqtrain0", "seqtrain1")
NETWORK, HOST_NAME = 0x40000000, 0x04000000
"""CLONE_NEWNET and CLONE_NEWUTS of Linux."""
VARIABLES = {
    "MASTER_ADDR": "10.77.0.1",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "2",  # one thread each, as the process alone has
    "SEQTRAIN_TIMEOUT": "20",
}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def networks() -> Iterator[list[str]]:
    """Return the names of two namespaces, 10.77.0.1 and 10.77.0.2."""
    if shutil.which("ip") is None:
        pytest.skip("needs the command ip")
    names = [f"seqtrain-{os.getpid()}-{number}" for number in range(2)]
    with ExitStack() as held:
        for name in names:
            command = ["ip", "netns", "add", name]
            made = subprocess.run(command, check=False, capture_output=True, text=True)
            if made.returncode:
                pytest.skip(f"no network namespaces can be made here: {made.stderr.strip()}")
            held.callback(ip, "netns", "del", name)
        ends = [("netns", names[0], "type", "veth"), ("peer", "name", CABLE[1], "netns", names[1])]
        ip("link", "add", CABLE[0], *ends[0], *ends[1])
        for number, (name, end) in enumerate(zip(names, CABLE, strict=True), start=1):
            ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", end)
            ip("-n", name, "link", "set", end, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names


def move_to(network: str, number: int, then: Callable[[], None] | None = None) -> None:
    """Let this process be on a host."""
    system = ctypes.CDLL(None)
    with open(f"/run/netns/{network}") as file:
        assert system.setns(file.fileno(), NETWORK) == 0
    assert system.unshare(HOST_NAME) == 0
    socket.sethostname(NAMES[number])
    os.environ["GLOO_SOCKET_IFNAME"] = CABLE[number]
    if then is not None:
        then()


def moves(networks: list[str], then: Callable[[], None] | None = None) -> dict[int, partial[None]]:
    """Return what moves each rank to its host, and what the second does then."""
    first, second = networks
    return {0: partial(move_to, first, 0), 1: partial(move_to, second, 1, then)}


def test_two_hosts_train_what_two_processes_of_one_train(
    project: Path, networks: list[str]
) -> None:
    fit_together(project, "whole", 2)
    arguments, hosts = fit_arguments(project, "several"), moves(networks)
    with launched(project, 2, *arguments, prepare=dict(hosts), variables=VARIABLES) as ranks:
        assert [rank.end() for rank in ranks] == [0, 0], [rank.err for rank in ranks]
    assert fingerprint(project / "several") == fingerprint(project / "whole")


@pytest.mark.parametrize("how", ["killed", "unplugged"])
def test_a_lost_host_is_named_and_the_run_goes_on(
    project: Path, networks: list[str], how: str
) -> None:
    fit_together(project, "whole", 2)
    number = signal.SIGKILL if how == "killed" else signal.SIGSTOP
    hosts = moves(networks, signals_within("_shared_gradient", 15, (1, number)))
    arguments = fit_arguments(project, "several")
    variables = VARIABLES | {"SEQTRAIN_TIMEOUT": "5"}
    with launched(project, 2, *arguments, prepare=dict(hosts), variables=variables) as ranks:
        if how == "unplugged":
            ranks[0].wait_for(project / "several" / "previous")
            ip("-n", networks[1], "link", "set", CABLE[1], "down")
        assert ranks[0].end() == 3, ranks[0].err
        if how == "killed":
            assert ranks[1].end() == KILLED
    assert re.search(r"lost: rank 1 on second-host; .* go on with --resume", ranks[0].err)
    fit_together(project, "several", 2)
    assert fingerprint(project / "several") == fingerprint(project / "whole")
