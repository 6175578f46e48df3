"""The verbs `init` and `fit` of a Python session: they say what they do, in a notebook too."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from seqtrain.api.fit import fit as run_fit
from seqtrain.api.fit import with_data
from seqtrain.api.run_events import Listener, Run
from seqtrain.cli.output.console import note, warn
from seqtrain.cli.output.fit_screen import FitScreen
from seqtrain.config import Config, parse_config
from seqtrain.data.examples import EVERY_COLUMN, ReadOptions
from seqtrain.data.readers.memory import MemoryTable
from seqtrain.errors import ConfigError, DataError
from seqtrain.files.writing import write_file
from seqtrain.proposal import Wishes, propose
from seqtrain.runs.destination import check_destination

WHAT = "a file, or a table: a DataFrame, a Dataset, a dict of lists, or a list of dicts"
"""What a config is written for."""


def init(
    data: Any,
    *,
    test: Any = None,
    output: str | Path | None = None,
    force: bool = False,
    **wishes: Any,
) -> Config:
    """Look at data and return a config that `fit` takes, as `seqtrain init` writes one.

    What was taken for what, and what may be wrong, is said on stderr.

    Args:
        data: a file or folder, a list of these, or a table as `fit` takes it (give it to `fit`
            again: `fit(init(table), train=table)`).
        test: a file or a table, to be scored once at the end.
        output: where to write the config, with a reason beside each choice; None: nowhere.
        force: replace that file.
        wishes: what the command has as options, such as label, sequence (a list), id, settings.

    Raises:
        DataError: the data can't be read, or something isn't clear and has to be said.
    """
    if not isinstance(data, str | PathLike) and hasattr(data, "__len__") and not len(data):
        raise DataError(f"data: found an empty {type(data).__name__}; expected {WHAT}")
    if output is not None:
        check_destination(output, "file", "output", force=force)
    named, tables = dict[str, list[str]](), list[MemoryTable]()
    for name, given in (("train", data), ("test", test)):
        files = [*given] if isinstance(given, list | tuple) else [] if given is None else [given]
        if not all(isinstance(file, str | PathLike) for file in files):
            read_all = ReadOptions("memory", keep=(EVERY_COLUMN,))
            tables.append(MemoryTable(given, read_all, name).hold())
            files = [tables[-1].path]
        named[name] = [*map(fspath, files)]
    found = propose(named["train"], Wishes(**wishes), test=next(iter(named["test"]), None))
    note(*found.taken)
    warn(*found.doubts)
    if output is not None:
        write_file(Path(output), found.text.encode())
    return parse_config(found.text)


def fit(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    train: Any = None,
    validation: Any = None,
    test: Any = None,
    progress: bool = True,
    listener: Listener = lambda event: None,
    **options: Any,
) -> Run:
    """Train a classifier and write its run directory, as `seqtrain.api.fit.fit` does.

    Args:
        config: a Config, a mapping of its sections, or the path of a YAML file.
        train: data in memory, in place of the config's file: a DataFrame (pandas, polars), a
            Dataset of Hugging Face, a dict of lists, or a list of dicts, whose columns
            data.sequence and data.label name; or what the config takes there. To resume a run, give
            the same again.
        validation: the same for the validation split.
        test: the same for the test split.
        progress: show the data, a bar and a row per epoch, and the scores on stderr, which a
            notebook shows below its cell; False: warnings alone.
        listener: is called with every event, too.
        options: as for `seqtrain.api.fit.fit`: run_dir, device, resume, force, cache, source,
            init_from, finish.

    Raises:
        ConfigError, DataError, CheckpointError: what was given is wrong; nothing was written.
        RunError: the run failed; what was saved stays valid.
        Interrupted: a signal stopped it; a checkpoint is saved.
    """
    if not isinstance(config, Config | Mapping | str | Path):
        found = f"config: found a {type(config).__name__}; expected a config"
        raise ConfigError(f"{found}; to train on data: fit(init(data), train=data)")
    given = {"train": train, "validation": validation, "test": test}
    if isinstance(config, str | Path):
        options.setdefault("source", Path(config))
    config, tables = with_data(config, given)
    with closing(FitScreen(quiet=not progress, hints=False, also=listener)) as screen:
        return replace(run_fit(config, listener=screen, **options), tables=tables)
