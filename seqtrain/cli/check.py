"""`seqtrain check [RUN]`: show that predictions don't depend on the batch."""

from __future__ import annotations

from typing import Annotated

import typer

from seqtrain.cli.options import Device


def check(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Run directory or model folder; default: the newest."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Sequences to check with; default: the run's test split."
        ),
    ] = None,
    device: Device = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare predictions alone, in batches of all sorts, and by every engine; 3 if they differ."""
    from dataclasses import asdict

    from seqtrain.cli.check_screen import show_check
    from seqtrain.cli.console import note
    from seqtrain.cli.json_line import json_line
    from seqtrain.errors import RunError
    from seqtrain.workflows.check import SAMPLE_LENGTH
    from seqtrain.workflows.check import check as run_check

    result = run_check(run, data=data, device=device or "auto")
    sampled = result.num_examples < result.available
    note(
        f"run: {result.run}, data: {result.data}, {result.num_examples:,} sequences"
        + (f" of {result.available:,}, evenly spaced by length" if sampled else "")
        + f", {result.steps:,} steps"
        + (f" ({result.cut:,} sequences cut at {SAMPLE_LENGTH:,})" if result.cut else "")
    )
    if as_json:
        values = {**asdict(result), "run": str(result.run), "passed": result.passed}
        print(json_line(values))
    else:
        show_check(result)
    if not result.passed:
        worst = max(result.differences, key=lambda difference: difference.logits)
        raise RunError(
            f"predictions depend on the batch: {worst.way}, {worst.variant}: logits differ by "
            f"{worst.logits:.1e}; rounding explains {result.allowed:.1e}"
        )
