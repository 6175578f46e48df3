"""Command `seqtrain check`: show that predictions don't depend on the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqtrain.cli.options import AS_JSON, DEVICE, RUN, RUN_OPTION, chosen_run, option
from seqtrain.errors import RunError

if TYPE_CHECKING:
    from seqtrain.api.check import Check


def check(
    run: str | None = RUN,
    named: str | None = RUN_OPTION,
    data: str | None = option(
        "File of sequences to check with. Default: the run's test split.", "FILE"
    ),
    device: str = DEVICE,
    as_json: bool = AS_JSON,
) -> None:
    """Example: seqtrain check runs/mine --data new.csv"""
    path = chosen_run(run, named)

    from contextlib import closing
    from dataclasses import asdict

    from seqtrain.api.check import check as run_check
    from seqtrain.cli.screens.console import ProgressBar, note, say_json

    with closing(ProgressBar()) as progress:
        result = run_check(path, data=data, device=device, listener=progress)
    note(*result.lines())
    if as_json:
        say_json({**asdict(result), "run": str(result.run), "passed": result.passed})
    else:
        _show(result)
    if not result.passed:
        worst = max(result.differences, key=lambda difference: difference.logits)
        raise RunError(f"predictions depend on the batch: {worst.way}, {worst.variant}")


def _show(result: Check) -> None:
    """Print the verdict, and a table of differences: rows are ways to batch, columns engines.

    The last row has the largest difference of probabilities by each engine.
    """
    from seqtrain.cli.screens.console import say, stdout_console
    from seqtrain.cli.screens.tables import print_table

    cells = {(each.way, each.variant): each for each in result.differences}
    largest = max(each.logits for each in result.differences)
    say(
        ("passed: predictions don't depend" if result.passed else "failed: predictions depend")
        + f" on the batch (largest difference of logits: {largest:.1e}; rounding allows "
        f"{result.allowed:.1e})"
    )
    ways, variants = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    headings = ["difference of logits", *variants]
    rows = [(way, *(f"{cells[way, name].logits:.1e}" for name in variants)) for way in ways]
    worst = (max(cells[way, name].probabilities for way in ways) for name in variants)
    rows.append(("of probabilities, any way", *(f"{value:.1e}" for value in worst)))
    print_table(stdout_console(), headings, rows, sections=[len(ways)])
