"""`seqtrain predict INPUT`: one output row per input row, in input order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seqtrain.cli.options import Device, ForceFile, RunOption, RunOrNewest, Sequences, chosen_run

if TYPE_CHECKING:
    from seqtrain.api.predictors import Prediction, Predictor
    from seqtrain.cli.output.prediction_columns import PredictionColumns
    from seqtrain.cli.output.prediction_rows import OpenFile
    from seqtrain.data.encoding import EncodingReport

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
SLOW_STEPS = "every prefix is read again, so a sequence of T steps takes T (T + 1) / 2 steps"


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
    job = _Job(classifier, columns, written, input_format, empty, bad_rows)
    if output_dir is not None:
        return _predict_files(source, output_dir, shard, job, force=force)
    newest = None if run is not None or named is not None else path
    open_file = partial(open_output, output, line_by_line=source == "-")
    return _predict_one(source, newest, job, open_file, steps=steps)


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


@dataclass(frozen=True)
class _Job:
    """How inputs are read, and how their predictions are written."""

    classifier: Predictor
    columns: PredictionColumns
    format: str
    input_format: str | None
    empty: str | None
    bad_rows: str

    def predict(self, source: str, report: EncodingReport) -> Iterator[Prediction]:
        """Predict the rows of an input; warn where its first row looks like no sequence."""
        from seqtrain.api.predict import first_row_doubts
        from seqtrain.api.predict import predict as run_prediction
        from seqtrain.cli.output.console import warn

        columns, reading = self.columns, self.classifier.preprocessing.reading
        every = columns.each_class or (self.format == "jsonl" and not columns.top_k)
        predictions = run_prediction(
            source,
            classifier=self.classifier,
            report=report,
            ranks=None if every else columns.ranks,
            input_format=self.input_format,
            keep=columns.keep,
            empty=self.empty,
            bad_rows=self.bad_rows,
        )
        first = list(islice(predictions, 1))
        row = first[0].example if first else None
        for line in first_row_doubts(source, row, reading, self.input_format):
            warn(line)
        return chain(first, predictions)

    def write(self, source: str, report: EncodingReport, open_file: OpenFile) -> int:
        """Write a row per prediction; return how many rows had no known token."""
        from seqtrain.cli.output.console import note
        from seqtrain.cli.output.prediction_rows import write_predictions
        from seqtrain.text import counted

        rows = self.predict(source, report)
        unknown, undecided = write_predictions(rows, open_file, self.columns, format=self.format)
        if self.columns.threshold is not None:
            note(f"{undecided:,} of {counted(report.rows, 'row')} without a label")
        return unknown

    def write_steps(self, source: str, report: EncodingReport, open_file: OpenFile) -> int:
        """Write the predictions after every step; return how many rows had no known token."""
        from seqtrain.api.predict import predict_steps
        from seqtrain.api.predictors import one_model
        from seqtrain.cli.output.console import note
        from seqtrain.cli.output.step_rows import write_steps

        network = one_model(self.classifier, "--steps").network
        if network.why_it_looks_ahead is not None:
            note(f"{network.why_it_looks_ahead}: {SLOW_STEPS}")
        predictions = predict_steps(
            source, classifier=self.classifier, report=report, input_format=self.input_format
        )
        return write_steps(
            predictions, open_file, top_k=self.columns.top_k, lines=self.format == "lines"
        )


def _predict_one(
    source: str, newest: str | None, job: _Job, open_file: OpenFile, *, steps: bool
) -> None:
    """Predict one input; say before how it is read, and after what became of its rows."""
    from seqtrain.api.predict import how_read, read_otherwise
    from seqtrain.cli.output.console import note, warn
    from seqtrain.data.encoding import EncodingReport
    from seqtrain.text import counted

    report, reading = EncodingReport(), job.classifier.preprocessing.reading
    if newest is not None:
        note(f"run: {newest}")
    for line in how_read(source, reading, job.input_format):
        note(line)
    unknown = (job.write_steps if steps else job.write)(source, report, open_file)
    for line in report.notices("input"):
        warn(line)
    if unknown:
        all_unknown = unknown == report.rows
        advice = read_otherwise(source, reading, job.input_format) if all_unknown else ""
        rows = counted(report.rows, "sequence")
        warn(f"{unknown:,} of {rows} with no token that the model knows{advice}")


def _predict_files(
    source: str, output_dir: str, shard: str | None, job: _Job, *, force: bool
) -> None:
    """Predict each file into a file of its own, whole or not at all, but those done before."""
    from pathlib import Path

    from seqtrain.api.input_files import matching, output_paths, shard_of
    from seqtrain.cli.output.console import note, warn
    from seqtrain.cli.output.prediction_rows import open_output
    from seqtrain.data.encoding import EncodingReport
    from seqtrain.files.writing import replacing
    from seqtrain.text import counted

    files = matching(source)
    own = shard_of(files, shard)
    every = output_paths(files, Path(output_dir), job.format)
    paths = {file: every[file] for file in own}
    left = {file: path for file, path in paths.items() if force or not path.exists()}
    for file, path in left.items():
        report = EncodingReport()
        with replacing(path) as unfinished:
            open_file = partial(open_output, str(unfinished), line_by_line=False)
            unknown = job.write(file, report, open_file)
        for line in report.notices(file):
            warn(line)
        if unknown:
            rows = counted(report.rows, "sequence")
            warn(f"{file}: {unknown:,} of {rows} with no token that the model knows")
    note(f"{counted(len(left), 'file')} predicted, {len(paths) - len(left):,} predicted before")
