"""Command `seqtrain diff`: compare two runs on the same examples."""

from seqtrain.cli import options
from seqtrain.cli.options import argument


def diff(
    a: str = argument("Run directory or model folder.", "A"),
    b: str = argument("The run or model folder to compare with.", "B"),
    split: options.SplitName = options.SPLIT,
    data: str | None = options.DATA,
    top: int | None = options.TOP_OPTION,
    as_json: bool = options.AS_JSON,
    device: str = options.DEVICE,
) -> None:
    """Example: seqtrain diff runs/small runs/large --split validation"""
    from seqtrain.api.diff import diff as run_diff
    from seqtrain.cli.screens.console import note, say_json, show_warning
    from seqtrain.cli.screens.diff import diff_json, show_diff

    found = run_diff(a, b, split=split, data=data, device=device)
    note(f"A: {found.runs[0]}, B: {found.runs[1]}, data: {found.data}")
    show_warning(*found.warnings)
    if as_json:
        say_json(diff_json(found, top))
    else:
        show_diff(found, options.DEFAULT_TOP if top is None else top)
