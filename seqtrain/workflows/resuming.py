"""Whether a run may go on: with the same config and data, and on a like machine to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqtrain.config import Config, load_config
from seqtrain.errors import CheckpointError
from seqtrain.runs.run_directory import CONFIG, RunDirectory

MAY_CHANGE = ("training.max_epochs", "training.patience", "training.device")
"""Keys that may differ from the run's config when it goes on."""
EXACT_ON = ("torch", "threads", "cpu_capability", "native", "device", "device_name")
"""Entries of environment.json on which the last bits of a result depend."""


def check_config_unchanged(config: Config, run: RunDirectory) -> None:
    """Refuse to go on with another config than the run began with.

    Raises:
        CheckpointError: names each key that differs.
    """
    if not (run.path / CONFIG).is_file():
        raise CheckpointError(f"{run.path}: no {CONFIG} in it; expected the directory of a run")
    before, now = _by_key(load_config(run.path / CONFIG)), _by_key(config)
    changed = [
        f"{key}: found {_shown(now[key])}, but {run.path / CONFIG} has {_shown(before[key])}"
        for key in sorted(now)
        if before[key] != now[key] and key not in MAY_CHANGE
    ]
    if changed:
        raise CheckpointError(
            *changed, f"{run.path}: only {', '.join(MAY_CHANGE)} may change on --resume"
        )


def check_data_unchanged(
    digests: Mapping[str, str], recorded: Mapping[str, Any], run: RunDirectory
) -> None:
    """Refuse to go on with other data than the run began with.

    Args:
        digests: SHA-256 of each data file now, by path.
        recorded: the run's environment.json.
        run: for the message.

    Raises:
        CheckpointError: names each file that differs, with both digests.
    """
    changed = [
        f"{file}: SHA-256 {found}, but {run.path} began with {recorded['data'].get(file)}; "
        "restore the file, or fit anew"
        for file, found in digests.items()
        if recorded["data"].get(file) != found
    ]
    if changed:
        raise CheckpointError(*changed)


def inexact(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Say what differs from the machine the run began on, so that the last bits may too."""
    changed = [
        f"{name} was {recorded.get(name)}, is {here[name]}"
        for name in EXACT_ON
        if recorded.get(name) != here[name]
    ]
    return [f"going on may not be exact to the bit: {'; '.join(changed)}"] if changed else []


def _by_key(config: Config) -> dict[str, Any]:
    """Return every value of a config by its dotted key."""
    flat: dict[str, Any] = {}
    for name, value in config.model_dump().items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": item for key, item in value.items()}
        else:
            flat[name] = value
    return flat


def _shown(value: Any) -> str:
    return "null" if value is None else str(value)
