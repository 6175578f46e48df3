"""Trials of several searches, on one machine or many: each learns from all, by Optuna's storage."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from seqtrain.config import Config, render_config
from seqtrain.errors import ConfigError
from seqtrain.files.regular import open_regular
from seqtrain.tuning.proposal import distributions_of, import_optuna, told
from seqtrain.tuning.space import Space, changed, holds
from seqtrain.tuning.trials import Trial, checked

SEARCH, TRIAL = "search", "trial"
"""Keys of what Optuna keeps beside a trial: host and folder of its search, and its record."""

JOURNAL = b'{"op_code"'
"""What a file of Optuna's begins with."""


class SharedTrials:
    """The trials of all searches of one config, on the same data, in one storage.

    While the storage fails, a search goes on by its own trials.

    Args:
        place: a file that all machines see, or the URL of a database, as Optuna takes it.
        config: that is tuned.
        digests: SHA-256 of each data file.
        space: what may be tried.
        warn: is told when the storage fails.

    Attributes:
        place: as given, but for a user's name and password.

    Raises:
        ConfigError: the storage can't be opened.
    """

    def __init__(
        self,
        place: str,
        config: Config,
        digests: Mapping[str, str],
        space: Space,
        warn: Callable[[str], None],
    ) -> None:
        optuna = import_optuna()
        self._space, self._warn = space, warn
        self.place = _shown(place)
        anywhere = changed(config, {"training.device": "auto"})
        same = repr((render_config(anywhere), sorted(digests.values()), sorted(space.items())))
        name = f"seqtrain-{sha256(same.encode()).hexdigest()[:16]}"
        with _refused(place):
            self._study = optuna.create_study(
                study_name=name,
                storage=_opened(optuna, place),
                direction="maximize",
                load_if_exists=True,
            )
            self._found = self._read()

    def others(self, search: str) -> list[tuple[str, Trial]]:
        """Return the trials of the searches other than this, each with its search."""
        try:
            self._found = self._read()
        except Exception as error:
            self._complain(error)
        return [(name, trial) for name, trial in self._found if name != search]

    def add(self, search: str, trials: Iterable[Trial]) -> None:
        """Tell the other searches of this one's trials that are over; each is told once."""
        optuna = import_optuna()
        try:
            own = [trial for name, trial in self._read() if name == search]
            for trial in trials:
                if trial not in own:
                    said = told(optuna, trial, distributions_of(optuna, self._space))
                    said.user_attrs = {SEARCH: search, TRIAL: asdict(trial)}
                    self._study.add_trial(said)
        except Exception as error:
            self._complain(error)

    def _read(self) -> list[tuple[str, Trial]]:
        kept = [trial.user_attrs for trial in self._study.get_trials(deepcopy=False)]
        ours = [values for values in kept if SEARCH in values and TRIAL in values]
        found = []
        for values in ours:
            with suppress(ValueError):  # what no search wrote
                trial = checked(values[TRIAL])
                if holds(self._space, trial.settings):
                    found.append((str(values[SEARCH]), trial))
        return found

    def _complain(self, error: Exception) -> None:
        self._warn(
            f"--storage: {self.place}: {_first_line(error)}; this search goes on by its own "
            "trials meanwhile"
        )


def check_storage(place: str | None) -> None:
    """Refuse what can't be a storage, before any data is read; write nothing.

    Args:
        place: as `SharedTrials` takes it; None: none.

    Raises:
        ConfigError: as said.
    """
    if place is None:
        return
    with _refused(place):
        if "://" in place:
            _check_database(place)
        else:
            _check_writable(Path(place))
            _check_journal(Path(place))


def _check_database(url: str) -> None:
    """Refuse a database that doesn't answer, or SQLite's file where there can be none."""
    from sqlalchemy import NullPool, create_engine, inspect, make_url  # what Optuna opens it by

    parts = make_url(url)
    if parts.get_backend_name() == "sqlite" and parts.database not in (None, "", ":memory:"):
        file = Path(str(parts.database))
        _check_writable(file)
        if not file.exists():
            return
    inspect(create_engine(url, poolclass=NullPool)).get_table_names()


def _check_writable(file: Path) -> None:
    """Refuse a file that can't be made or changed, together with one beside it, its lock."""
    if not (file.parent.is_dir() and os.access(file.parent, os.W_OK | os.X_OK)):
        raise ValueError(f"{file.parent} is no folder that may be written to")
    if file.exists() and not os.access(file, os.W_OK):
        raise ValueError("it may not be written to")


@contextmanager
def _refused(place: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # of the database's own package: each has its own
        raise ConfigError(
            f"--storage: {_shown(place)} can't be used: {_first_line(error)}; name a file in a "
            "folder that exists, or a database's URL such as sqlite:///trials.db"
        ) from None


def _shown(place: str) -> str:
    """Return a storage without a user's name and password."""
    return re.sub(r"://[^/@]*@", "://…@", place)


def _opened(optuna: Any, place: str) -> Any:
    return optuna.storages.get_storage(place if "://" in place else _journal(optuna, Path(place)))


def name_of(directory: Path) -> str:
    """Return what other searches know a search by: its host and its folder."""
    return f"{socket.gethostname()}:{directory.resolve()}"


def _journal(optuna: Any, file: Path) -> Any:
    """Return the storage in a file, which needs no database and works on shared disks."""
    _check_journal(file)
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(file)))


def _check_journal(file: Path) -> None:
    """Refuse another file, to which Optuna would append all the same.

    Raises:
        ValueError, OSError: as said.
    """
    if file.exists():
        with os.fdopen(open_regular(file, follow=True), "rb") as existing:
            if existing.read(len(JOURNAL)) not in (b"", JOURNAL):
                raise ValueError("it is another file, not a storage of Optuna's")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
