"""Run directories: their files, how they are found, and several of them as an ensemble."""

import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue, field_validator

from seqtrain.config import Config, load_config
from seqtrain.errors import CheckpointError, ConfigError, RunError, parameter
from seqtrain.files.reading import json_of, nearest_file, path_problems, read_file
from seqtrain.files.saved import SavedObject
from seqtrain.files.writing import complete_folder
from seqtrain.text import nearest

RUNS = Path("runs")
"""Folder of the runs for which no directory is named."""
CONFIG, ENVIRONMENT, METRICS_FILE = "config.yaml", "environment.json", "metrics.jsonl"
TEST, VALIDATION = "test.json", "validation.json"
"""Files with scores of the best epoch's calibrated model: on test, and on validation before any
refit."""
BEST, LAST_CHECKPOINT, PREVIOUS, PRETRAINED = "best", "last", "previous", "pretrained"
ENSEMBLE, TRIALS = "ensemble.json", "trials"
FOLDERS = (BEST, LAST_CHECKPOINT, PREVIOUS, PRETRAINED)
FILES = (CONFIG, ENVIRONMENT, METRICS_FILE, TEST, VALIDATION, ENSEMBLE)
MEMBER = re.compile(r"(seed|fold)-[0-9]{1,19}")
"""Pattern of the name of a repeat's directory, such as "seed-1" or "fold-3"."""
MOST_RUNS = 1000
"""Largest number of runs that an ensemble may have."""
TIME = "%Y%m%d-%H%M%S"
"""Format of the time in the name of a run directory."""
WRITTEN_TIME = re.compile("-[0-9]{8}-[0-9]{6}(?:-[0-9]+)?$")
"""Time at the end of the name of a run directory, and a number if there are several."""
DIGITS = 12
"""Number of digits of a digest that messages show."""


class RunEnvironment(SavedObject):
    """Content of environment.json: software, machine, processes and data of a run.

    Attributes:
        seqtrain, python, torch, numpy: Versions.
        platform, cpu_capability, cpu_count: Operating system and processor.
        native: Vector instructions of the native engine, or None without it.
        processes, threads: Number of processes, and of threads of each.
        device, device_name: Device that computed, and its name if it is a GPU.
        time: Time at which the run started.
        data: Maps the path of each data file to its SHA-256.
        held_out: Maps each split that was held out of train to a digest of its rows.
        launch: Text that identifies the launch of several processes.
        vectors: Coverage of the word vectors.
        lineage: Run and SHA-256 of the weights that training started from.
    """

    seqtrain: str
    python: str = ""
    torch: str = ""
    numpy: str = ""
    platform: str = ""
    cpu_capability: str = ""
    cpu_count: int | None = None
    native: str | None = None
    processes: int = 1
    threads: int = 1
    device: str = "cpu"
    device_name: str | None = None
    time: str = ""
    data: dict[str, str]
    held_out: dict[str, str] = Field(default_factory=dict)
    launch: str | None = None
    vectors: dict[str, JsonValue] = Field(default_factory=dict)
    lineage: list[dict[str, str]] = Field(default_factory=list)


class Ensemble(SavedObject):
    """Content of ensemble.json: the runs that predict together.

    Attributes:
        format_version: Version of the file.
        members: Names of the directories of the runs, each once.
    """

    format_version: Literal[1] = 1
    members: list[str] = Field(min_length=2, max_length=MOST_RUNS)

    @field_validator("members")
    @classmethod
    def check_names(cls, names: list[str]) -> list[str]:
        """Raise ValueError unless the names are different and of the form of `MEMBER`."""
        if not all(map(MEMBER.fullmatch, names)) or len(set(names)) < len(names):
            raise ValueError("expected different names such as seed-1 or fold-3")
        return names


class RunDirectory:
    """The directory of one run. None of its files needs to exist.

    Attributes:
        path: The directory.
        best: Path of the model folder of the best epoch, or of the refit.
        last: Path of the newest checkpoint.
        previous: Path of the checkpoint before `last`. If `last` is intact, `previous` is removed
            when the run ends.
        pretrained: Path of the model folder that is written at the end of pretraining.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.best = path / BEST
        self.last = path / LAST_CHECKPOINT
        self.previous = path / PREVIOUS
        self.pretrained = path / PRETRAINED

    def append_metrics(self, event: dict[str, Any]) -> int:
        """Append an event to metrics.jsonl, as one line of JSON, and flush it to the disk.

        Returns:
            The length of the file afterwards, in bytes.

        Raises:
            RunError: If the line can't be written. Earlier lines are unchanged.
            ValueError: If the event contains NaN or infinity.
        """
        line = (json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n").encode()
        path = self.path / METRICS_FILE
        problems = path_problems(path, RunError, "the lines before are untouched")
        with problems, open(path, "ab", buffering=0) as file:
            length = os.fstat(file.fileno()).st_size
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            except OSError:
                file.truncate(length)
                raise
        return length + len(line)

    def metrics(self, event: str | None = None) -> list[dict[str, Any]]:
        """Return the complete lines of metrics.jsonl as dicts, or an empty list without the file.

        A last line without a line break is left out, because a run may be writing it.

        Args:
            event: Kind of the lines to return, such as "epoch", or None for all lines.

        Raises:
            CheckpointError: If the file can't be read or is damaged.
        """
        path = self.path / METRICS_FILE
        if self.holds(METRICS_FILE):
            lines = read_file(path).split(b"\n")
        else:
            lines = [b""]
        found = []
        for number, line in enumerate(lines[:-1], start=1):  # a run may be writing the last one
            value = json_of(f"{path}:{number}", line)
            if not isinstance(value, dict) or not isinstance(value.get("event"), str):
                raise CheckpointError(f"{path}:{number}: damaged: expected an object with an event")
            if event in (None, value["event"]):
                found.append(value)
        return found

    def cut_metrics(self, length: int, *, only_check: bool = False) -> None:
        """Cut metrics.jsonl to the length that it had when a checkpoint was written.

        Args:
            length: The length in bytes.
            only_check: If True, only check the length, and change nothing.

        Raises:
            CheckpointError: If the file is shorter than `length`, or can't be opened. A missing
                file has the length 0.
        """
        path = self.path / METRICS_FILE
        size = 0
        if self.holds(METRICS_FILE):
            with path_problems(path), open(path, "r+b") as file:
                size = os.fstat(file.fileno()).st_size
                if size > length and not only_check:
                    file.truncate(length)
        if size < length:
            raise CheckpointError(
                f"{path}: truncated: found {size} bytes, expected at least {length}; "
                f"restore it from a copy, or begin a new run with {parameter('force', True)}"
            )

    def holds(self, name: str) -> bool:
        """Return True if there is such a directory, with a file or folder of this name in it.

        Raises:
            CheckpointError: If the directory can't be read.
        """
        with path_problems(self.path):
            return self.path.is_dir() and name in os.listdir(self.path)

    def config(self) -> Config:
        """Return the config that the run was trained with.

        Raises:
            CheckpointError: If the directory has no config.yaml.
            ConfigError: If config.yaml isn't valid.
        """
        if not self.holds(CONFIG):
            raise CheckpointError(
                f"{self.path}: no {CONFIG} in it, so it is no run; name another directory"
            )
        return load_config(self.path / CONFIG)

    def environment(self) -> dict[str, Any]:
        """Return the content of environment.json, by the names in `RunEnvironment`.

        Raises:
            CheckpointError: If the file is missing or damaged.
        """
        return RunEnvironment.read(self.path / ENVIRONMENT).model_dump(exclude_unset=True)


def changed_data(recorded: Mapping[str, Any], digests: Mapping[str, str]) -> list[str]:
    """Return an error message for each data file that changed since a run read it.

    Args:
        recorded: Maps the path of each file that the run read to its SHA-256 then.
        digests: Maps paths of files to their SHA-256 now. Paths that the run didn't read are
            ignored.
    """
    both = [(path, now, str(recorded[path])) for path, now in digests.items() if path in recorded]
    return [
        f"{path}: changed since the run: SHA-256 {now[:DIGITS]}…, then {then[:DIGITS]}…"
        for path, now, then in both
        if now != then
    ]


def default_path(name: str) -> Path:
    """Return the default directory of a new run: runs/<name>-<time>."""
    return RUNS / f"{name}-{time.strftime(TIME)}"


def make(path: Path | None, config_name: str) -> RunDirectory:
    """Create the directory of a new run, with its parents, and return it.

    Args:
        path: The directory, which may exist, or None for a new directory runs/<config name>-<time>.
        config_name: Name of the config. It is only used without a path.

    Raises:
        ConfigError: If the directory can't be created.
    """
    wanted = path or default_path(config_name)
    taken = [FileExistsError] if path is None else []
    advice = f"choose another {parameter('run_dir')}"
    for number in count(1):
        if number == 1:
            chosen = wanted
        else:
            chosen = wanted.with_name(f"{wanted.name}-{number}")
        with path_problems(chosen, ConfigError, advice), suppress(*taken):
            chosen.mkdir(parents=True, exist_ok=path is not None)
            break
    return RunDirectory(chosen)


def find(path: Path | None, name: str | None = None) -> RunDirectory:
    """Return an existing run directory by its path, or the newest one.

    Args:
        path: Path of the run directory, with or without "runs/" before it, or None for the newest
            run. Its content isn't checked.
        name: Name of the config whose newest run is returned, or None for the newest run that has a
            model. It is only used without a path.

    Raises:
        CheckpointError: If there is no such directory or run.
    """
    if path is None:
        for run in [newest_trained()[0]] if name is None else newest_first(name):
            return RunDirectory(run)
        where = os.path.abspath(RUNS)
        raise CheckpointError(
            f"no run of {name} under {where}; name one with {parameter('run_dir')}"
        )
    if not os.path.exists(path) and ".." not in path.parts and os.path.exists(RUNS / path):
        path = RUNS / path
    if not os.path.exists(path):
        problem = f"{path}: no such run (looked for {os.path.abspath(path)})"
        similar = _similar_run(path)
        raise CheckpointError(problem + (f"; did you mean {similar}?" if similar else ""))
    return RunDirectory(path)


def _similar_run(path: Path) -> Path | None:
    """Return the run that was probably meant by the path of a missing one, or None.

    It is the newest run under runs/ whose name begins with the last part of `path`. If there is no
    such run, it is the run with the most similar name, or of the config with the most similar name.
    Of a path in another folder, it is the most similar path there.
    """
    if path.parent not in (Path(), RUNS):
        return _similar_folder(path)
    names = [run.name for run in newest_first(None)]
    configs = {WRITTEN_TIME.sub("", name): name for name in names[::-1]}
    found = next((name for name in names if name.startswith(path.name)), None)
    found = found or nearest(path.name, names) or configs.get(nearest(path.name, configs) or "")
    if found is not None:
        return RUNS / found
    return _similar_folder(path)


def _similar_folder(path: Path) -> Path | None:
    near = nearest_file(path)
    if near is None or not os.path.isdir(near):
        return None
    return Path(near)


def newest_trained() -> tuple[Path, list[Path]]:
    """Return the newest run under runs/ that has a model, and all newer runs without a model.

    An ensemble counts as a run with a model. Its members aren't checked.

    Raises:
        CheckpointError: If no run under runs/ has a model.
    """
    runs = newest_first(None)
    for index, run in enumerate(runs):
        with suppress(CheckpointError):
            if not members(run):
                model_folder(run)
            return run, runs[:index]
    what = f"no run under {os.path.abspath(RUNS)}"
    then = "train one with: seqtrain fit CONFIG"
    if runs:
        what = f"{runs[0]}: no model in it yet; a run has one after its first epoch"
        then = "go on with it by seqtrain fit CONFIG --resume"
    raise CheckpointError(f"{what}; {then}, or name another run")


def newest_first(name: str | None) -> list[Path]:
    """Return the directories of runs under runs/, the newest first.

    The age of a run is that of its config.yaml.

    Args:
        name: Name of the config whose runs are returned. None returns the runs of all configs and
            folders of repeats, which are as new as their newest repeat.

    Raises:
        CheckpointError: If runs/ can't be read. A missing folder has no runs.
    """
    if name is None:
        pattern = ".*"
    else:
        pattern = re.escape(name) + WRITTEN_TIME.pattern
    runs = []
    with path_problems(RUNS):
        names = os.listdir(RUNS) if RUNS.is_dir() else []
    for run in (RUNS / name for name in names if re.fullmatch(pattern, name, re.DOTALL)):
        with suppress(OSError):  # no run, or none that may be read
            own = [run]
            if name is None:
                own += [run / each for each in os.listdir(run) if MEMBER.fullmatch(each)]
            configs = [each / CONFIG for each in own if (each / CONFIG).exists()]
            runs += [(max(each.stat().st_mtime_ns for each in configs), run)] if configs else []
    return [run for _, run in sorted(runs, reverse=True)]


def model_folder(path: Path) -> Path:
    """Return the folder `best` of a run directory. For a model folder, return the path itself.

    Raises:
        CheckpointError: If there is no model, as in the directory of an ensemble, or the path can't
            be read.
    """
    for folder in (path / BEST, path):
        with path_problems(folder), suppress(FileNotFoundError, NotADirectoryError):
            os.stat(complete_folder(folder) / "model.json")
            return folder
    if (path / ENSEMBLE).exists():
        raise CheckpointError(name_one(path))
    missing = f"no model in it (no {BEST}/model.json and no model.json)"
    if path.is_file():
        advice = "; a file of data goes elsewhere: predict FILE RUN, or eval RUN --data FILE"
    else:
        advice = ""
    raise CheckpointError(f"{path}: {missing}; expected a run directory or a model folder{advice}")


def members(path: Path) -> list[Path]:
    """Return the run directories of the ensemble in a directory, or [] if it has no ensemble.json.

    The run directories needn't exist.

    Raises:
        CheckpointError: If ensemble.json can't be read or is damaged.
    """
    if not os.path.lexists(path / ENSEMBLE):
        return []
    return [path / name for name in Ensemble.read(path / ENSEMBLE).members]


def holds_folds(path: Path) -> bool:
    """Return True if a directory has the runs of folds, each of which held out another part.

    Raises:
        CheckpointError: If ensemble.json is damaged, or a run is missing.
        ConfigError: If the config of a run isn't valid.
    """
    runs = members(path)
    configs = [RunDirectory(run).config() for run in runs]
    return bool(runs) and all(isinstance(config.data.validation, dict) for config in configs)


def name_one(path: Path) -> str:
    """Return an error message that asks for one of the runs in a directory."""
    names = sorted(name for name in os.listdir(path) if MEMBER.fullmatch(name))
    such = f", such as {path / names[0]}" if names else ""
    return f"{path}: holds several runs; name one of them{such}"
