"""`seqtrain compare CONFIG`: all variants of running it, on the user's own data and machine."""

from __future__ import annotations

from typing import Annotated

import typer

from seqtrain.cli.options import ConfigFile, Device, Overrides


def compare(
    config: ConfigFile,
    overrides: Overrides = None,
    seconds: Annotated[
        int,
        typer.Option(
            metavar="S", min=1, help="Seconds for measuring. Reading the data comes on top."
        ),
    ] = 60,
    chart: Annotated[
        str | None, typer.Option(metavar="FILE.svg", help="Also draw a bar chart into this file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --chart.")] = False,
    device: Device = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Example: seqtrain compare my.yaml --seconds 120 --chart speed.svg"""
    from dataclasses import asdict
    from pathlib import Path

    from seqtrain.config import load_config

    settings = load_config(config, overrides or [])

    from seqtrain.cli.output.compare_chart import check_chart, draw_chart
    from seqtrain.cli.output.console import note, warn

    check_chart(chart, force=force)
    note(f"measuring for {seconds} s, in turns")

    from seqtrain.cli.output.compare_table import show_comparison
    from seqtrain.cli.output.progress import Progress
    from seqtrain.comparison.compare import compare as run_comparison
    from seqtrain.files.writing import write_file
    from seqtrain.text import json_line

    with Progress() as progress:
        result = run_comparison(
            settings,
            seconds=seconds,
            device=device,
            beside=Path(config).parent,
            listener=progress,
        )
    left_out = [f"{row.name}: {row.problem}" for row in result.candidates if row.problem]
    for line in result.warnings + left_out:
        warn(line)
    if chart:
        write_file(Path(chart), draw_chart(result, title=Path(config).stem).encode())
    if as_json:
        print(json_line(asdict(result)))
    else:
        show_comparison(result)
