"""`seqtrain report RUN... -o FILE.html`: runs on one offline page."""

from pathlib import Path

from seqtrain.cli import options
from seqtrain.cli.options import argument, chosen_run, option
from seqtrain.errors import ConfigError


def report(
    runs: list[str] | None = argument(
        "Run directories, or one that holds several runs. Default: the newest run.", "RUN...", None
    ),
    output: str = option(
        "Where to write the page.", "FILE.html", "--output", "-o", default="report.html"
    ),
    split: options.SplitName = options.SPLIT,
    data: str | None = options.DATA,
    steps: bool = options.STEPS,
    force: bool = options.FORCE,
    device: str = options.DEVICE,
) -> None:
    """Example: seqtrain report runs/small runs/large -o report.html"""
    from seqtrain.runs.destination import check_destination

    if Path(output).suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--output: {output}: a report is HTML; expected a name like report.html")
    sources = [data] if data else []
    check_destination(output, "file", "--output", force=force, sources=sources)

    from seqtrain.api.predictions import run_facts
    from seqtrain.cli.output.console import note, warn
    from seqtrain.files.writing import write_file
    from seqtrain.reports.page import render
    from seqtrain.runs.run_directory import find, members

    named = [find(Path(run)).path for run in runs or [chosen_run(None)]]
    if not runs:
        note(f"run: {named[0]}")
    chosen = [one for run in named for one in members(run) or [run]]
    facts = [run_facts(run, split=split, data=data, steps=steps, device=device) for run in chosen]
    warn(*dict.fromkeys(line for run in facts for line in run.warnings))
    title = f"{facts[0].name} and others" if len(facts) > 1 else facts[0].name
    write_file(Path(output), render(facts, title=title).encode())
    note(f"written: {output}")
