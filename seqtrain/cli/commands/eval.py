"""`seqtrain eval [RUN]`: score a run, as tables or as JSON."""

from __future__ import annotations

from seqtrain.cli.options import (
    AsJson,
    DataFile,
    Device,
    RunOption,
    RunOrNewest,
    Split,
    StepScores,
    check_split,
    chosen_run,
)


def eval(
    run: RunOrNewest = None,
    named: RunOption = None,
    split: Split = None,
    data: DataFile = None,
    steps: StepScores = False,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Example: seqtrain eval runs/mine --split validation --json"""
    from dataclasses import asdict
    from pathlib import Path

    from seqtrain.api.evaluate import evaluate
    from seqtrain.cli.output.console import note, warn
    from seqtrain.cli.output.score_screen import show_scores
    from seqtrain.text import json_line

    check_split(split, data)
    path = chosen_run(run, named)
    result = evaluate(path, split=split, data=data, steps=steps, device=device)
    note(f"run: {result.run}, data: {result.data}" + (f" ({result.split})" if result.split else ""))
    for warning in result.warnings:
        warn(warning)
    if result.ensemble:
        mean = sum(own.accuracy for own in result.parts.values()) / len(result.parts)
        note(
            f"together {result.scores.accuracy:.2%} right, the {len(result.parts)} runs alone "
            f"{mean:.2%} on average"
        )
    if as_json:
        values = asdict(result.scores) | {"trained_on_rows": result.trained_on_rows}
        if result.by_share is not None:
            values["by_share"] = result.by_share
        if result.parts:
            values["parts"] = {name: scores.figures() for name, scores in result.parts.items()}
        print(json_line(values))
    else:
        name = result.split or Path(result.data).name
        show_scores(result.scores, name, result.by_share, result.parts)
