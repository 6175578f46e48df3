"""`seqtrain predict INPUT`: one output row per input row, in input order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seqtrain.cli.options import Device, ForceFile, RunOption, RunOrNewest, Sequences, chosen_run

if TYPE_CHECKING:
    from seqtrain.api.predictors import Predictor

Output = Annotated[
    str | None, typer.Option(metavar="FILE", help="Where to write. Default: standard output.")
]
RowFormat = Annotated[
    Literal["tsv", "csv", "jsonl"] | None,
    typer.Option(
        help="Output format. Default: by --output's ending, else tsv; on a terminal aligned lines."
    ),
]
InputFormat = Annotated[
    Literal["csv", "tsv", "jsonl", "fasttext", "txt", "lines"] | None,
    typer.Option(help="Format of INPUT. Default: by its name; standard input as lines."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS", help="Columns of INPUT to copy to the output, such as id,text."
    ),
]
TopK = Annotated[
    int | None, typer.Option(metavar="K", min=1, help="Write the K most probable labels.")
]
Probabilities = Annotated[
    bool, typer.Option("--probabilities", help="Write the probability of every label.")
]
MinProbability = Annotated[
    float | None,
    typer.Option(metavar="P", min=0, max=1, help="Leave labels less probable than P empty."),
]
Precision = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        min=0,
        max=1,
        help="Choose --min-probability so that this share of the remaining labels was right on "
        "validation, such as 0.95.",
    ),
]
Empty = Annotated[
    Literal["error", "unk", "blank"] | None,
    typer.Option(
        help="What to do with an empty sequence: stop, read an unknown token, or leave the label "
        "empty. Default: as in training, or blank."
    ),
]
BadRows = Annotated[
    Literal["error", "blank"],
    typer.Option(help="What to do with a row that can't be read: stop, or leave the label empty."),
]
Steps = Annotated[
    bool,
    typer.Option(
        "--steps", help="Predict after every time step: jsonl, or coloured lines on a terminal."
    ),
]
OutputDir = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Write one file there for each file that INPUT names."),
]
Shard = Annotated[
    str | None,
    typer.Option(metavar="K/N", help="With --output-dir: take every N-th file, from the K-th on."),
]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe",
        help="csv: put a ' before cells that a spreadsheet would run as a formula.",
    ),
]


def predict(
    source: Sequences,
    run: RunOrNewest = None,
    named: RunOption = None,
    output: Output = None,
    format: RowFormat = None,
    input_format: InputFormat = None,
    keep: Keep = None,
    top_k: TopK = None,
    probabilities: Probabilities = False,
    min_probability: MinProbability = None,
    precision: Precision = None,
    empty: Empty = None,
    bad_rows: BadRows = "error",
    steps: Steps = False,
    output_dir: OutputDir = None,
    shard: Shard = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    force: ForceFile = False,
    device: Device = "auto",
) -> None:
    """Example: seqtrain predict new.csv --keep id --output predictions.csv"""
    from seqtrain.cli.output.prediction_columns import PredictionColumns, columns_to_keep
    from seqtrain.cli.output.prediction_rows import open_output, row_format
    from seqtrain.runs.destination import check_destination

    if output is not None:
        sources = [] if source == "-" else [source]
        check_destination(output, "stream", "--output", force=force, sources=sources)
    beside_steps: dict[str, object] = {
        "--keep": keep,
        "--empty": empty,
        "--bad-rows": bad_rows != "error",
    }
    beside_steps |= {"--probabilities": probabilities, "--precision": precision is not None}
    beside_steps |= {"--min-probability": min_probability is not None, "--output-dir": output_dir}
    _refuse(
        ("--top-k", top_k and probabilities, "--probabilities writes every class"),
        ("--precision", None not in (precision, min_probability), "it chooses --min-probability"),
        ("--output", output and output_dir, "--output-dir says where to write"),
        ("--shard", shard and not output_dir, "it chooses among the files of --output-dir"),
        *((name, steps and given, "--steps writes rows") for name, given in beside_steps.items()),
    )
    default: Literal["tsv", "jsonl"] | None = "tsv" if output_dir else None
    default = "jsonl" if steps and top_k else default
    written = row_format(format or default, output, steps=steps)
    kept = columns_to_keep(keep or [])

    from seqtrain.api.load import load
    from seqtrain.cli.output.prediction_job import PredictionJob, predict_files, predict_one

    path = chosen_run(run, named)
    classifier = load(path, device=device)
    columns = PredictionColumns(
        classifier.labels,
        top_k,
        each_class=probabilities,
        keep=kept,
        whole_files=classifier.preprocessing.reading.whole_files,
        threshold=_threshold(classifier, min_probability, precision),
        spreadsheet_safe=spreadsheet_safe,
    )
    job = PredictionJob(classifier, columns, written, input_format, empty, bad_rows)
    if output_dir is not None:
        return predict_files(source, output_dir, shard, job, force=force)
    newest = None if run is not None or named is not None else path
    open_file = partial(open_output, output, line_by_line=source == "-")
    return predict_one(source, newest, job, open_file, steps=steps)


def _refuse(*clashes: tuple[str, object, str]) -> None:
    """Refuse an option that doesn't go with another one.

    Args:
        clashes: each an option, whether it clashes, and why.

    Raises:
        ConfigError: as said.
    """
    from seqtrain.errors import ConfigError

    for option, clash, why in clashes:
        if clash:
            raise ConfigError(f"{option}: {why}; give one of them")


def _threshold(
    classifier: Predictor, min_probability: float | None, precision: float | None
) -> float | None:
    """Return the probability from which on labels are written; if it is looked up, say it."""
    if precision is None:
        return min_probability
    from seqtrain.api.predictors import one_model
    from seqtrain.cli.output.console import note
    from seqtrain.text import counted

    one = one_model(classifier, "--precision")
    kept, rows = one.threshold(precision), one.calibration.rows
    number = round(kept.coverage * rows)
    of_rows = f" ({number:,} of {counted(rows, 'row')})" if rows else ""
    least = f" (95% interval: from {kept.least(number):.0%})" if rows else ""
    note(
        f"labels from probability {kept.min_probability:.4f} on: {kept.coverage:.1%} of "
        f"validation{of_rows}, {kept.accuracy:.2%} of them right{least}"
    )
    return kept.min_probability
