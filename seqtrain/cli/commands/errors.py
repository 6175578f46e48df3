"""`seqtrain errors [RUN]`: the most confident mistakes first."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from seqtrain.cli.options import (
    AsJson,
    DataFile,
    Device,
    RunOption,
    RunOrNewest,
    Split,
    check_split,
    chosen_run,
)

SHOWN = 20


def errors(
    run: RunOrNewest = None,
    named: RunOption = None,
    split: Split = None,
    data: DataFile = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help=f"Mistakes shown. Default: {SHOWN}; in JSON all."),
    ] = None,
    format: Annotated[
        Literal["table", "jsonl"], typer.Option(help="A table, or one JSON object per mistake.")
    ] = "table",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which tokens each prediction rests on.")
    ] = False,
    as_json: AsJson = False,
    device: Device = "auto",
) -> None:
    """Example: seqtrain errors runs/mine --split validation --top 50"""
    from seqtrain.api.predictions import predict_split
    from seqtrain.cli.output.console import note, warn
    from seqtrain.cli.output.mistake_screen import mistake_json, show_errors
    from seqtrain.report import most_confident_errors
    from seqtrain.text import json_line

    check_split(split, data)
    table = not as_json and format == "table"
    shown = top or (SHOWN if explain or table else None)
    result = predict_split(
        chosen_run(run, named),
        split=split,
        data=data,
        explain=shown or 0 if explain else 0,
        device=device,
    )
    found, rows, name = result.found, result.rows, str(result.found.classifier.path)
    note(f"run: {name}, data: {found.source}" + (f" ({found.split})" if found.split else ""))
    for warning in found.warnings:
        warn(warning)
    wrong = most_confident_errors(rows)
    if as_json:
        errors = [mistake_json(row) for row in wrong[:shown]]
        values = {"run": name, "data": found.source, "num_examples": len(rows)}
        print(json_line(values | {"num_errors": len(wrong), "errors": errors}))
    elif format == "jsonl":
        for row in wrong[:shown]:
            print(json_line(mistake_json(row)))
    else:
        show_errors(wrong[:shown])
        note(f"{len(wrong):,} of {len(rows):,} predictions are wrong")
