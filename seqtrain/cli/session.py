"""The verb `fit` of a Python session: it shows its progress, in a notebook too."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from seqtrain.api.fit import fit as run_fit
from seqtrain.api.fit import with_data
from seqtrain.api.run_events import Event, Listener, Run
from seqtrain.cli.output.fit_screen import FitScreen
from seqtrain.config import Config


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
    given = {"train": train, "validation": validation, "test": test}
    if isinstance(config, str | Path):
        options.setdefault("source", Path(config))
    config, tables = with_data(config, given)
    with FitScreen(quiet=not progress, hints=False) as screen:

        def show(event: Event) -> None:
            screen(event)
            listener(event)

        return replace(run_fit(config, listener=show, **options), tables=tables)
