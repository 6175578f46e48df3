"""Command `seqtrain runs`: list the runs in a folder."""

from pathlib import Path

from seqtrain.cli.options import AS_JSON, argument, option


def runs(
    folder: str = argument("Folder that holds the run directories.", "FOLDER", "runs"),
    sort: str | None = option(
        "Sort by a heading of the table, such as accuracy (of validation), test.accuracy or time, "
        "or by a key of the config. Default: the newest first.",
        "KEY",
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Example: seqtrain runs --sort accuracy"""
    from seqtrain.cli.screens.console import note, say_json, show_warning
    from seqtrain.cli.screens.runs import runs_json, show_runs
    from seqtrain.runs.overview import sort_runs, summarize_runs

    found, problems = summarize_runs(Path(folder))
    show_warning(*problems)
    chosen = sort_runs(found, sort) if sort else found
    if as_json:
        say_json(runs_json(chosen))
    elif chosen:
        show_runs(chosen)
    if not chosen:
        note(f"no runs in {folder}")
