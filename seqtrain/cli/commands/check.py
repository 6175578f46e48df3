"""`seqtrain check [RUN]`: show that predictions don't depend on the batch."""

from typing import Annotated

import typer

from seqtrain.cli.options import AsJson, Device, RunOption, RunOrNewest, chosen_run


def check(
    run: RunOrNewest = None,
    named: RunOption = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="File of sequences to check with. Default: the run's test split."
        ),
    ] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Example: seqtrain check runs/mine --data new.csv"""
    from dataclasses import asdict

    from seqtrain.api.check import check as run_check
    from seqtrain.cli.output.check_screen import show_check
    from seqtrain.cli.output.console import ProgressBar, say_json
    from seqtrain.errors import RunError

    with ProgressBar() as progress:
        result = run_check(chosen_run(run, named), data=data, device=device, listener=progress)
    show_check(result, verdict=not as_json)
    if as_json:
        say_json({**asdict(result), "run": str(result.run), "passed": result.passed})
    if not result.passed:
        worst = max(result.differences, key=lambda difference: difference.logits)
        raise RunError(
            f"predictions depend on the batch: {worst.way}, {worst.variant}: logits differ by "
            f"{worst.logits:.1e}; rounding explains {result.allowed:.1e}"
        )
