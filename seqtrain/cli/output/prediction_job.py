"""Reading an input, predicting its rows, and writing them: one input, or each file of many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

from seqtrain.api.input_files import matching, output_paths, shard_of
from seqtrain.api.predict import first_row_doubts, how_read, predict_steps, read_otherwise
from seqtrain.api.predict import predict as run_prediction
from seqtrain.api.predictors import Prediction, Predictor, one_model
from seqtrain.cli.output.console import note, warn
from seqtrain.cli.output.prediction_columns import PredictionColumns
from seqtrain.cli.output.prediction_rows import OpenFile, open_output, write_predictions
from seqtrain.cli.output.step_rows import write_steps
from seqtrain.data.encoding import EncodingReport
from seqtrain.files.writing import replacing
from seqtrain.text import counted

SLOW_STEPS = "every prefix is read again, so a sequence of T steps takes T (T + 1) / 2 steps"


@dataclass(frozen=True)
class PredictionJob:
    """How inputs are read, and how their predictions are written."""

    classifier: Predictor
    columns: PredictionColumns
    format: str
    input_format: str | None
    empty: str | None
    bad_rows: str

    def predict(self, source: str, report: EncodingReport) -> Iterator[Prediction]:
        """Predict the rows of an input; warn where its first row looks like no sequence."""
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
        rows = self.predict(source, report)
        unknown, undecided = write_predictions(rows, open_file, self.columns, format=self.format)
        if self.columns.threshold is not None:
            note(f"{undecided:,} of {counted(report.rows, 'row')} without a label")
        return unknown

    def write_steps(self, source: str, report: EncodingReport, open_file: OpenFile) -> int:
        """Write the predictions after every step; return how many rows had no known token."""
        network = one_model(self.classifier, "--steps").network
        if network.why_it_looks_ahead is not None:
            note(f"{network.why_it_looks_ahead}: {SLOW_STEPS}")
        predictions = predict_steps(
            source, classifier=self.classifier, report=report, input_format=self.input_format
        )
        return write_steps(
            predictions, open_file, top_k=self.columns.top_k, lines=self.format == "lines"
        )


def predict_one(
    source: str, newest: str | None, job: PredictionJob, open_file: OpenFile, *, steps: bool
) -> None:
    """Predict one input; say before how it is read, and after what became of its rows."""
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


def predict_files(
    source: str, output_dir: str, shard: str | None, job: PredictionJob, *, force: bool
) -> None:
    """Predict each file into a file of its own, whole or not at all, but those done before."""
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
