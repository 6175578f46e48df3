"""`seqtrain diff A B`: the difference of two runs on the same examples."""

from __future__ import annotations

from typing import Annotated

import typer

from seqtrain.cli.options import DataFile, Device, Split, chosen_split

SHOWN = 20


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="Run directory or model folder.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    split: Split = None,
    data: DataFile = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help=f"Rows shown; default: {SHOWN}, as JSON all."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    device: Device = None,
) -> None:
    """Example: seqtrain diff runs/small runs/large --split validation"""
    from seqtrain.api.diff import diff as run_diff
    from seqtrain.cli.output.console import note, warn
    from seqtrain.cli.output.diff_screen import diff_json, show_diff
    from seqtrain.text import counted, json_line

    name = chosen_split(split, data)
    found = run_diff(a, b, split=name, data=data, device=device or "auto")
    note(f"A: {found.runs[0]}, B: {found.runs[1]}, data: {found.data}")
    for warning in found.warnings:
        warn(warning)
    if found.left_out:
        warn(f"left out {counted(found.left_out, 'row')} that only one run answers")
    if as_json:
        print(json_line(diff_json(found, top)))
    else:
        show_diff(found, SHOWN if top is None else top)
