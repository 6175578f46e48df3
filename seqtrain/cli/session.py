"""The verb `fit` of a Python session: it shows its progress, in a notebook too."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seqtrain.api.fit import fit as run_fit
from seqtrain.api.run_events import Event, Listener, Run
from seqtrain.cli.output.fit_screen import FitScreen
from seqtrain.config import Config


def fit(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    progress: bool = True,
    listener: Listener = lambda event: None,
    **options: Any,
) -> Run:
    """Train a classifier and write its run directory, as `seqtrain.api.fit.fit` does.

    Args:
        config: a Config, a mapping of its sections, or the path of a YAML file.
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
    with FitScreen(quiet=not progress, hints=False) as screen:

        def show(event: Event) -> None:
            screen(event)
            listener(event)

        return run_fit(config, listener=show, **options)
