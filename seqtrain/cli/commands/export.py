"""`seqtrain export RUN DIR`: a trained model for programs and machines without torch."""

from seqtrain.cli.options import argument, flag


def export(
    run: str = argument("Run directory or model folder.", "RUN"),
    folder: str = argument("New folder to write.", "DIR"),
    force: bool = flag("Replace an earlier export in DIR.", "--force"),
) -> None:
    """Example: seqtrain export runs/trec-20260101-120000 trec && python trec/predict.py new.txt"""
    from seqtrain.cli.output.console import note
    from seqtrain.export.export_folder import export as run_export

    done = run_export(run, folder, force=force)
    note(
        f"{done.folder}: {done.size:,} bytes",
        f"{done.rows} golden rows: probabilities differ by {done.difference:.1e} at most "
        "between ONNX Runtime and the run",
    )
