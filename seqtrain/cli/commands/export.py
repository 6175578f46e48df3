"""Command `seqtrain export`: write a model for programs and machines without torch."""

import os
import shlex

from seqtrain.cli.options import RUN, argument, chosen_run, flag, option
from seqtrain.errors import ConfigError


def export(
    run: str | None = RUN,
    folder: str | None = argument(
        "New folder to write. It is required, here or as --output.", "DIR", None
    ),
    output: str | None = option("The same as the argument DIR.", "DIR", "--output", "-o"),
    force: bool = flag("Replace an earlier export in DIR.", "--force"),
) -> None:
    """Example: seqtrain export runs/trec-20260101-120000 trec && python trec/predict.py new.txt"""
    from seqtrain.api.export import export as run_export
    from seqtrain.cli.screens.console import note

    if folder and output:
        raise ConfigError(f"--output: {folder} is named already; give one of them")
    target = folder or output
    if not target:
        raise ConfigError("DIR: missing; expected a new folder: seqtrain export RUN DIR")
    done = run_export(chosen_run(run), target, force=force)
    note(
        f"{done.folder}: {done.size:,} bytes",
        f"{done.rows} golden rows: probabilities differ by {done.difference:.1e} at most "
        "between ONNX Runtime and the run",
        f"next: python {shlex.quote(os.path.join(done.folder, 'predict.py'))} FILE",
    )
