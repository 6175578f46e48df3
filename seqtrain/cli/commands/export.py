"""`seqtrain export RUN DIR`: a trained model for programs and machines without torch."""

from seqtrain.cli.options import RunOrNewest, argument, chosen_run, flag, option, refuse


def export(
    run: RunOrNewest = None,
    folder: str | None = argument("New folder to write.", "DIR", None),
    output: str | None = option("The same as the argument DIR.", "DIR", "--output", "-o"),
    force: bool = flag("Replace an earlier export in DIR.", "--force"),
) -> None:
    """Example: seqtrain export runs/trec-20260101-120000 trec && python trec/predict.py new.txt"""
    from pathlib import Path
    from shlex import quote

    from seqtrain.cli.output.console import note
    from seqtrain.errors import ConfigError
    from seqtrain.export.export_folder import export as run_export
    from seqtrain.runs.destination import RUNS

    refuse((f"--output: {folder} is named already; give one of them", folder and output))
    target = folder or output
    if target is None:
        how = "expected a new folder, as in: seqtrain export RUN DIR"
        if run is not None and not any(path.exists() for path in (Path(run), RUNS / run)):
            newest = f"to export the newest run there: seqtrain export -o {quote(run)}"
            how = f"{run} was taken as RUN; {newest}"
        raise ConfigError(f"DIR: missing; {how}")
    done = run_export(chosen_run(run), target, force=force)
    note(
        *(f"{done.folder / name}: {size:,} bytes" for name, size in done.sizes.items()),
        f"{done.rows} golden rows: probabilities differ by {done.difference:.1e} at most "
        "between ONNX Runtime and the run",
    )
