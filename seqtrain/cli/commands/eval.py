"""Command `seqtrain eval`: score a run, as tables or as JSON."""

from seqtrain.cli import options
from seqtrain.cli.options import chosen_run, flag


def eval(
    run: str | None = options.RUN,
    named: str | None = options.RUN_OPTION,
    split: options.SplitName = options.SPLIT,
    data: str | None = options.DATA,
    steps: bool = options.STEPS_FLAG,
    every: bool = flag(
        "Also show each part of the model, all classes, and accuracy by length and confidence.",
        "--all",
    ),
    device: str = options.DEVICE,
    as_json: bool = options.AS_JSON,
) -> None:
    """Example: seqtrain eval runs/mine --split validation --json"""
    path = chosen_run(run, named)

    from dataclasses import asdict

    from seqtrain.api.evaluate import evaluate
    from seqtrain.cli.screens.console import note_rows, say_json
    from seqtrain.cli.screens.scores import show_evaluation

    result = evaluate(path, split=split, data=data, steps=steps, device=device)
    note_rows(result.run, result.data, result.split, result.warnings)
    if as_json:
        values = asdict(result.scores) | {"trained_on_rows": result.trained_on_rows}
        own = values
        if result.learned is not None:  # what follows is about the model after the refit
            own = values["learned"] = asdict(result.learned)
        if result.by_share is not None:
            own["by_share"] = result.by_share
        if result.parts:
            own["parts"] = {name: scores.metric_values() for name, scores in result.parts.items()}
        say_json(values)
    else:
        show_evaluation(result, every=every)
