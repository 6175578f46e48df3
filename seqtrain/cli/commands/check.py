"""Command `seqtrain check`: show that predictions don't depend on the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqtrain.cli.options import AS_JSON, DEVICE, RUN, RUN_OPTION, chosen_run, option
from seqtrain.errors import RunError
from seqtrain.text import counted

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
    from seqtrain.evaluation.invariance import SAMPLE_LENGTH

    with closing(ProgressBar()) as progress:
        result = run_check(path, data=data, device=device, listener=progress)
    if result.num_examples == result.available:
        sequences = counted(result.available, "sequence")
    else:
        sequences = f"{result.num_examples:,} of {counted(result.available, 'sequence')}"
    note(f"run: {result.run}, data: {result.data}, {sequences}, {counted(result.steps, 'step')}")
    if result.cut:
        note(f"only the first {SAMPLE_LENGTH:,} steps of {counted(result.cut, 'sequence')}")
    if result.carried:
        note("states are carried on in groups")
    if as_json:
        say_json({**asdict(result), "run": str(result.run), "passed": result.passed})
    else:
        _show(result)
    if not result.passed:
        worst = result.worst
        raise RunError(f"predictions depend on the batch: {worst.way}, {worst.variant}")


def _show(result: Check) -> None:
    """Print the verdict, and a table of differences: rows are ways to batch, columns engines.

    The last row has the largest difference of probabilities by each engine.
    """
    from seqtrain.cli.screens.console import say, stdout_console
    from seqtrain.cli.screens.tables import print_records

    if result.passed:
        verdict = "passed: predictions don't"
    else:
        verdict = "failed: predictions"
    say(
        f"{verdict} depend on the batch (largest difference of logits: {result.worst.logits:.1e}; "
        f"rounding allows {result.allowed:.1e})"
    )
    rows: dict[str, dict[str, str]] = {}
    probabilities: dict[str, float] = {}
    for each in result.differences:
        row = rows.setdefault(each.way, {"difference of logits": each.way})
        row[each.variant] = f"{each.logits:.1e}"
        largest = max(each.probabilities, probabilities.get(each.variant, 0.0))
        probabilities[each.variant] = largest
    last = {name: f"{value:.1e}" for name, value in probabilities.items()}
    last = {"difference of logits": "of probabilities, any way", **last}
    print_records(stdout_console(), [*rows.values(), last])
