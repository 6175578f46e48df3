"""The verb `fit` of a Python session: it shows its progress, in a notebook too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from seqtrain.api.fit import fit as run_fit
from seqtrain.api.run_events import Event, Listener, Run
from seqtrain.cli.output.fit_screen import FitScreen
from seqtrain.config import Config

if TYPE_CHECKING:
    from typing_extensions import Unpack


class FitOptions(TypedDict, total=False):
    """What else `seqtrain.api.fit.fit` takes, where it is documented."""

    run_dir: str | Path | None
    device: str | None
    resume: bool
    force: bool
    cache: bool
    source: Path | None
    init_from: str | Path | None
    finish: bool


def fit(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    progress: bool = True,
    listener: Listener | None = None,
    **options: Unpack[FitOptions],
) -> Run:
    """Train a classifier and write its run directory, as `seqtrain.api.fit.fit` does.

    Args:
        config: a Config, a mapping of its sections, or the path of a YAML file.
        progress: show the data, a bar and a row per epoch, and the scores on stderr, which a
            notebook shows below its cell; False: warnings alone.
        listener: is called with every event, too.
        options: as for `seqtrain.api.fit.fit`: run_dir, device, resume, force, cache, …

    Raises:
        ConfigError, DataError, CheckpointError: what was given is wrong; nothing was written.
        RunError: the run failed; what was saved stays valid.
        Interrupted: a signal stopped it; a checkpoint is saved.
    """
    with FitScreen(quiet=not progress, hints=False) as screen:

        def tell(event: Event) -> None:
            screen(event)
            if listener is not None:
                listener(event)

        return run_fit(config, listener=tell, **options)
