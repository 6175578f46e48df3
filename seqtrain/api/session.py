"""`seqtrain.fit`: training from Python, with data in memory and progress."""

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from seqtrain.api.fit import fit as train_run
from seqtrain.api.named_runs import Run
from seqtrain.api.progress import Progress
from seqtrain.api.run_events import DataEvent, Event, Listener, StartEvent
from seqtrain.config import Config
from seqtrain.errors import ConfigError, warn
from seqtrain.sequences.sources import with_given_data


def fit(
    config: Config | Mapping[str, Any] | str | PathLike[str],
    *,
    train: Any = None,
    validation: Any = None,
    test: Any = None,
    run_dir: str | PathLike[str] | None = None,
    device: str | None = None,
    resume: bool = False,
    force: bool = False,
    cache: bool = True,
    init_from: str | PathLike[str] | None = None,
    progress: bool = True,
    listener: Listener = lambda event: None,
) -> Run:
    """Train a classifier and write its run directory.

    Args:
        config: A Config, a mapping of its sections, or the path of a YAML file.
        train: Data for training, or None for the files in ``data.train``. It is a file, a list of
            files, or a table in memory: a DataFrame, a Dataset of Hugging Face, a table of pyarrow,
            a dict of lists, or a list of dicts. ``data.sequence`` and ``data.label`` name columns
            of the table. To resume a run, pass the same data again.
        validation: Data like `train` in place of ``data.validation``; also a share such as 0.1 to
            hold out of train, or a fold such as ``{"fold": 1, "of": 5}``.
        test: Data like `train` in place of ``data.test``.
        run_dir: Directory of the run, or None for ``runs/<config name>-<time>``.
        device: auto, cpu, cuda, cuda:N or mps, in place of ``training.device``; or None.
        resume: Resume from the last checkpoint of `run_dir`, or of the newest run of this config.
        force: Replace an earlier run in `run_dir`.
        cache: Store encoded data in the user's cache folder, and load it from there.
        init_from: Run directory or model folder with the initial weights, or None for random ones.
        progress: Show data, epochs and scores on stderr, or as one table in a notebook.
        listener: Function that is called with each event.

    Returns:
        The finished run. Its warnings are also issued as `SeqtrainWarning`.

    Raises:
        ConfigError: If the config, an argument or the device is wrong. Nothing was written.
        DataError: If the data can't be used. Nothing was written.
        CheckpointError: If there is nothing to resume from, or it is damaged. Also if the config or
            the data of a resumed run differ.
        RunError: If training failed. Checkpoints that were saved stay valid.
        Interrupted: If a signal stopped training. A checkpoint was saved.
    """
    source = _source_of(config)
    data = {"train": train, "validation": validation, "test": test}
    resolved, tables = with_given_data(source or config, data)
    run = train_run(
        resolved,
        run_dir=None if run_dir is None else Path(run_dir),
        device=device,
        resume=resume,
        force=force,
        cache=cache,
        source=source,
        init_from=None if init_from is None else Path(init_from),
        listener=_reporting(listener, Progress() if progress else None),
    )
    return replace(run, tables=tables)


def _source_of(config: object) -> Path | None:
    """Return the path of a config, or None for a config in memory.

    Raises:
        ConfigError: If `config` is neither a path nor a config. A mapping of lists isn't a config,
            but a table.
    """
    is_table = isinstance(config, Mapping) and all(
        hasattr(column, "__len__") and not isinstance(column, str | Mapping)
        for column in config.values()
    )
    if isinstance(config, Config | Mapping) and not (is_table and config):
        return None
    if isinstance(config, str | PathLike):
        return Path(config)
    raise ConfigError(
        f"config: found an object of type {type(config).__name__}; expected a config; "
        "to train on data: fit(init(data), train=data)"
    )


def _reporting(listener: Listener, progress: Progress | None) -> Listener:
    """Return a listener that issues warnings and shows progress, and then calls `listener`.

    Args:
        listener: The listener to call with each event.
        progress: Progress to show, or None to show none.
    """

    def report(event: Event) -> None:
        if isinstance(event, DataEvent | StartEvent | Run):
            warn(*event.warnings)
        if progress is not None:
            progress(event)
        listener(event)

    return report
