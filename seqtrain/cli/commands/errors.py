"""`seqtrain errors [RUN]`: the most confident mistakes first."""

from typing import Literal

from seqtrain.cli import options
from seqtrain.cli.options import chosen_run, flag, option

EXPLAINED = (
    "+ (green): the token speaks for the predicted label, - (red): against it; the number is how "
    "far the log-probability of that label falls without the token"
)


def errors(
    run: str | None = options.RUN,
    named: str | None = options.RUN_OPTION,
    split: options.SplitName = options.SPLIT,
    data: str | None = options.DATA,
    top: int | None = options.TOP,
    format: Literal["table", "jsonl"] = option(
        "A table, or one JSON object per mistake.", default="table"
    ),
    explain: bool = flag("Show which tokens each prediction rests on.", "--explain"),
    as_json: bool = options.AS_JSON,
    device: str = options.DEVICE,
) -> None:
    """Example: seqtrain errors runs/mine --split validation --top 50"""
    from seqtrain.api.predictions import predict_split
    from seqtrain.cli.output.console import note, note_rows, say_json
    from seqtrain.cli.output.run_screen import mistake_json, show_errors
    from seqtrain.cli.output.score_screen import note_floors
    from seqtrain.evaluation.predicted_example import most_confident_errors
    from seqtrain.reports.facts import OF_LABEL_SET

    table = not as_json and format == "table"
    shown = options.SHOWN if top is None and (explain or table) else top
    explained, path = (shown or 0) * explain, chosen_run(run, named)
    result = predict_split(path, split=split, data=data, explain=explained, device=device)
    found, count = result.found, len(result.rows)
    note_rows(found.classifier.path, found.source, found.split, found.warnings)
    every = most_confident_errors(result.rows)
    wrong = every[:shown]
    if table:
        show_errors(wrong)
        if wrong and result.scores.multi_label:
            note(f"probability: {OF_LABEL_SET}")
        if wrong and explain:
            note(EXPLAINED)
        note(f"{len(every):,} of {count:,} predictions are wrong")
        note_floors(result.scores, result.branches)
    elif as_json:
        values = {"run": str(found.classifier.path), "data": found.source, "num_examples": count}
        values |= {"num_errors": len(every), "errors": list(map(mistake_json, wrong))}
        say_json(values)
    else:
        for row in wrong:
            say_json(mistake_json(row))
