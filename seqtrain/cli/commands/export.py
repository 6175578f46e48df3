"""`seqtrain export RUN DIR`: a trained model for programs and machines without torch."""

from __future__ import annotations

from typing import Annotated

import typer


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run directory or model folder.")],
    folder: Annotated[str, typer.Argument(metavar="DIR", help="New folder to write.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier export in DIR.")
    ] = False,
) -> None:
    """Example: seqtrain export runs/trec-20260101-120000 trec && python trec/predict.py new.txt"""
    from seqtrain.cli.output.console import note
    from seqtrain.export.export_folder import export as run_export

    done = run_export(run, folder, force=force)
    for name, size in done.sizes.items():
        note(f"{done.folder / name}: {size:,} bytes")
    note(
        f"{done.rows} golden rows: probabilities differ by {done.difference:.1e} at most "
        "between ONNX Runtime and the run"
    )
