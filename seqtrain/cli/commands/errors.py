"""`seqtrain errors [RUN]`: the most confident mistakes first."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from seqtrain.cli.options import (
    DataFile,
    Device,
    RunOption,
    RunOrNewest,
    Split,
    chosen_run,
    chosen_split,
)

SHOWN = 20


class Format(str, Enum):
    """How mistakes are written."""

    table = "table"
    jsonl = "jsonl"


def errors(
    run: RunOrNewest = None,
    named: RunOption = None,
    split: Split = None,
    data: DataFile = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help=f"How many; default: {SHOWN}, as JSON all."),
    ] = None,
    format: Annotated[
        Format, typer.Option(help="A table, or one JSON object per mistake.")
    ] = Format.table,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show which tokens each answer rests on."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object of all.")] = False,
    device: Device = None,
) -> None:
    """Example: seqtrain errors runs/mine --split validation --top 50"""
    from seqtrain.api.predictions import predict_split
    from seqtrain.cli.output.answer_rows import as_values, show_errors, show_weights
    from seqtrain.cli.output.console import note, warn
    from seqtrain.report import most_confident_errors
    from seqtrain.text import json_line

    name = chosen_split(split, data)
    shown = top or SHOWN if explain else None
    chosen = chosen_run(run, named)
    result = predict_split(
        chosen, split=name, data=data, explain=shown or 0, device=device or "auto"
    )
    found, rows, run = result.found, result.rows, str(result.found.classifier.path)
    note(f"run: {run}, data: {found.source}" + (f" ({found.split})" if found.split else ""))
    for warning in found.warnings:
        warn(warning)
    mistakes = most_confident_errors(rows)
    top = shown if explain else top
    if as_json:
        print(
            json_line(
                {
                    "run": run,
                    "data": found.source,
                    "num_examples": len(rows),
                    "num_errors": len(mistakes),
                    "errors": [as_values(row) for row in mistakes[:top]],
                }
            )
        )
    elif format is Format.jsonl:
        for row in mistakes[:top]:
            print(json_line(as_values(row)))
    else:
        show_errors(mistakes[: top or SHOWN])
        show_weights([row for row in mistakes[: top or SHOWN] if row.weights is not None])
        note(f"{len(mistakes):,} of {len(rows):,} answers are wrong")
