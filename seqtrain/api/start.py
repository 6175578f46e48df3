"""What a run starts from, found and checked before its data is read."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from seqtrain.api.memory import check_model
from seqtrain.api.origin import Origin, lineage, read_origin
from seqtrain.api.restart import begun_before_restart
from seqtrain.api.resume_point import (
    ResumePoint,
    check_config_unchanged,
    read_resume_point,
)
from seqtrain.config import Config
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.sources import check_files, data_files
from seqtrain.errors import CheckpointError, ConfigError
from seqtrain.processes.group import Group
from seqtrain.processes.place import Place
from seqtrain.runs.destination import check_destination
from seqtrain.runs.finding import find
from seqtrain.runs.run_directory import RunDirectory

SMALLEST_INPUT = 2
"""Rows of the smallest embedding: what a model needs at least, known before any data is read."""


@dataclass(frozen=True)
class Request:
    """Where a caller wants a run, and how it begins.

    Attributes:
        directory, name, beside, init_from, resume, force: as for `fit`.
    """

    directory: Path | None
    name: str | None
    beside: Path | None
    init_from: str | Path | None
    resume: bool
    force: bool

    def after_restart(self, place: Place) -> Request:
        """Return what is wanted now where the launcher may have started this process again.

        Raises:
            ConfigError: a run can't begin from an old model and go on.
        """
        begun, wanted = begun_before_restart(self.directory, self.name, place), self
        if begun is not None:
            wanted = replace(
                self,
                directory=begun.path,
                init_from=None,
                resume=begun.has_checkpoint,
                force=not begun.has_checkpoint,
            )
        if wanted.resume and wanted.init_from is not None:
            raise ConfigError("--init-from: begins a run, and --resume goes on with one; give one")
        return wanted


@dataclass(frozen=True)
class Start:
    """What a run starts from.

    Attributes:
        origin: an old model; None: fresh weights, or the run's own.
        run: that goes on; None: a new one, or another process's.
        point: where it goes on.
        known: the preprocessing that it keeps; None: it is fitted on train.
        config: to read the data by.
    """

    origin: Origin | None
    run: RunDirectory | None
    point: ResumePoint | None
    known: Preprocessing | None
    config: Config


def find_start(held: ExitStack, config: Config, request: Request, group: Group) -> Start:
    """Find what a run starts from; a run that goes on is locked from here.

    Raises:
        ConfigError, DataError, CheckpointError: what was given is wrong; nothing was written.
    """
    origin, run, point = None, None, None
    with group.together():
        if request.init_from is not None:
            origin = read_origin(request.init_from, config)
        if group.is_first and request.resume:
            run = _run_to_resume(request, config)
            held.enter_context(run.lock())
            point = read_resume_point(run, config)
        elif group.is_first:
            check_destination(request.directory, "run", "--run-dir", force=request.force)
            if request.directory is not None:
                _refuse_data_inside(request.directory, config)
        check_files(config, request.beside)
        check_model(config.model, SMALLEST_INPUT, num_classes=2)
    with group.together():
        _check_same_origin(origin, group)
    known = None if origin is None else origin.model.preprocessing
    if request.resume:
        known = _known_before(run, point, config, group)
        if known is not None:  # it knows the words of the file of vectors already
            config = config.model_copy(update={"model": config.model.architecture})
    return Start(origin, run, point, known, config)


def _run_to_resume(request: Request, config: Config) -> RunDirectory:
    """Find the run to go on with, and refuse another config before any data is read."""
    if request.force:
        raise ConfigError("--force: replaces a run, and --resume goes on with it; give one of them")
    path = request.directory
    if path is not None and not os.path.exists(path):
        raise CheckpointError(
            f"{path}: no such run (looked for {os.path.abspath(path)}); to begin one there, leave "
            "out --resume"
        )
    run = find(path, request.name or "run")
    check_config_unchanged(config, run)
    return run


def _refuse_data_inside(directory: Path, config: Config) -> None:
    """Refuse a run directory that holds a data file: the run's own files could replace it."""
    for key, path in data_files(config):
        real = Path(os.path.realpath(path))  # unlike resolve(), also of a loop of links
        if real.is_relative_to(os.path.realpath(directory)):
            raise ConfigError(
                f"--run-dir: {directory} holds {key} ({real}); choose another directory"
            )


def _check_same_origin(origin: Origin | None, group: Group) -> None:
    """Refuse another old model than the first process read: it may be replaced meanwhile."""
    found = None if origin is None else origin.lineage[0]["weights_sha256"]
    if found != group.tell(found)[0]:
        raise CheckpointError(
            f"--init-from: weights of SHA-256 {found}, but rank 0 read others there; start again "
            "once nothing writes to it"
        )


def _known_before(
    run: RunDirectory | None, point: ResumePoint | None, config: Config, group: Group
) -> Preprocessing | None:
    """Return the preprocessing that a resumed run went on from: an old model's, or None."""
    grown = run is not None and bool(lineage(run))
    path = group.tell(str(run.path) if run is not None and grown else None)[0]
    if path is None:
        return None
    with group.together():
        point = point or read_resume_point(RunDirectory(Path(path)), config)
    return point.checkpoint.model.preprocessing
