"""Several processes of the program that train together, started as a launcher would."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tests.helpers.program import Running, fit_arguments, started

Prepare = Callable[[], None]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def take_place(variables: dict[str, str], prepare: Prepare | None) -> None:
    """Set what a launcher sets, and prepare the process."""
    os.environ |= variables
    if prepare is not None:
        prepare()


@contextmanager
def launched(
    folder: Path,
    size: int,
    *arguments: str,
    prepare: dict[int, Prepare] | None = None,
    restarts: int = 0,
    variables: dict[str, str] | None = None,
) -> Iterator[list[Running]]:
    """Start processes that train together; they are gone when the block is left.

    What `prepare` has for a rank is called in its process first; `restarts` were made before.
    """
    shared = {
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "TORCHELASTIC_RUN_ID": "tests",
        "TORCHELASTIC_RESTART_COUNT": str(restarts),
        **(variables or {}),
    }
    with ExitStack() as held:
        yield [
            held.enter_context(
                started(
                    folder,
                    *arguments,
                    prepare=partial(
                        take_place, {**shared, "RANK": str(rank)}, (prepare or {}).get(rank)
                    ),
                )
            )
            for rank in range(size)
        ]


def fit_together(
    folder: Path,
    run: str,
    size: int,
    *options: str,
    prepare: dict[int, Prepare] | None = None,
    code: int = 0,
) -> list[Running]:
    """Train, or go on with a run that has begun, until all processes have ended with a code.

    The first process alone prints.
    """
    with launched(folder, size, *fit_arguments(folder, run, *options), prepare=prepare) as ranks:
        codes = [rank.end() for rank in ranks]
        assert codes == [code] * size, [rank.err for rank in ranks]
    assert not any(rank.out or rank.err for rank in ranks[1:]), [rank.err for rank in ranks]
    return ranks
