"""Command `seqtrain errors`: the wrong predictions of a run, the most confident first."""

from pathlib import Path
from typing import Literal

from seqtrain.cli import options
from seqtrain.cli.options import chosen_run, flag, option
from seqtrain.text import counted

EXPLANATION = (
    "+ (green): the token supports the predicted label; - (red): it contradicts it. The number is "
    "how far the log-probability of that label falls without the token."
)


def errors(
    run: str | None = options.RUN,
    named: str | None = options.RUN_OPTION,
    split: options.SplitName = options.SPLIT,
    data: str | None = options.DATA,
    top: int | None = options.TOP_OPTION,
    format: Literal["table", "jsonl"] = option(
        "Print a table, or one JSON object per wrong prediction.", default="table"
    ),
    explain: bool = flag("Show the tokens that each prediction rests on.", "--explain"),
    as_json: bool = options.AS_JSON,
    device: str = options.DEVICE,
) -> None:
    """Example: seqtrain errors runs/mine --split validation --top 50"""
    path = chosen_run(run, named)

    from seqtrain.api.split_results import split_results
    from seqtrain.cli.screens.console import note, note_rows, say_json
    from seqtrain.cli.screens.errors import error_json, show_errors
    from seqtrain.reports.contents import OF_LABEL_SET

    is_table = format == "table" and not as_json
    shown = options.DEFAULT_TOP if top is None and (explain or is_table) else top
    explained = (shown or 0) if explain else 0
    found = split_results(path, split=split, data=data, explain=explained, device=device)
    wrong = found.errors[:shown]
    count = found.scores.num_examples
    note_rows(Path(path), found.data, found.split, found.warnings)
    if as_json:
        say_json(
            {
                "run": path,
                "data": found.data,
                "num_examples": count,
                "num_errors": len(found.errors),
                "errors": [error_json(row) for row in wrong],
            }
        )
        return
    if not is_table:
        for row in wrong:
            say_json(error_json(row))
        return
    show_errors(wrong)
    if wrong and found.scores.multi_label:
        note(f"probability: {OF_LABEL_SET}")
    if wrong and explain:
        note(EXPLANATION)
    verb = "is" if len(found.errors) == 1 else "are"
    note(f"{len(found.errors):,} of {counted(count, 'prediction')} {verb} wrong")
