"""What several processes can train, and which run they go on with when all are started again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seqtrain.config import Config
from seqtrain.errors import CheckpointError, ConfigError
from seqtrain.processes.place import Place
from seqtrain.runs.finding import newest_first
from seqtrain.runs.run_directory import CONFIG, RunDirectory


@dataclass(frozen=True)
class Begun:
    """A run that a launch began before its processes were started again.

    Attributes:
        path: its directory.
        has_checkpoint: whether it can be gone on with.
    """

    path: Path
    has_checkpoint: bool


def begun_before_restart(path: Path | None, name: str | None, place: Place) -> Begun | None:
    """Return the run that this launch began; None where it is the first start, or began none.

    Args:
        path: given as the run directory; None: it has a default name.
        name: first part of the default name.
        place: of this process.
    """
    if not place.restarts or place.launch is None:
        return None
    for directory in [path] if path is not None else newest_first(name or "run"):
        run = RunDirectory(directory)
        try:
            if run.environment().get("launch") == place.launch:
                return Begun(directory, run.holds(CONFIG))
        except CheckpointError:
            continue  # the run has no readable environment.json yet
    return None


def check_config(config: Config, processes: int) -> None:
    """Refuse to share batches of a model that must see them whole.

    Args:
        config: resolved.
        processes: how many train together.

    Raises:
        ConfigError: as said.
    """
    if processes > 1 and config.model.convolutions is not None:
        raise ConfigError(
            "model.convolutions: their batch normalisation must see whole batches; train with one "
            "process"
        )
