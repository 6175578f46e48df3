"""Command `seqtrain report`: write one offline HTML page about runs."""

from seqtrain.cli import options
from seqtrain.cli.options import argument, chosen_run, option


def report(
    runs: list[str] | None = argument(
        "Run directories, or one that holds several runs. Default: the newest run.", "RUN...", None
    ),
    output: str = option(
        "Where to write the page.", "FILE.html", "--output", "-o", default="report.html"
    ),
    split: options.SplitName = options.SPLIT,
    data: str | None = options.DATA,
    steps: bool = options.STEPS_FLAG,
    force: bool = options.FORCE,
    device: str = options.DEVICE,
) -> None:
    """Example: seqtrain report runs/small runs/large -o report.html"""
    from seqtrain.api.report import report as write_report
    from seqtrain.cli.screens.console import note, show_warning

    named = list(runs) if runs else [chosen_run(None)]
    done = write_report(
        named, output, split=split, data=data, steps=steps, force=force, device=device
    )
    if not runs:
        note(f"run: {done.runs[0]}")
    show_warning(*done.warnings)
    note(f"written: {output}")
