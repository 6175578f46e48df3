"""`seqtrain predict INPUT`: one output row per input row, in input order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TextIO

from seqtrain.cli.options import Device, RunOption, RunOrNewest, Sequences, chosen_run
from seqtrain.cli.predict_options import (
    BadRows,
    BadRowsOption,
    EmptyOption,
    Force,
    InputFormatOption,
    Keep,
    MinProbability,
    Output,
    OutputDir,
    OutputFormat,
    Precision,
    Probabilities,
    Shard,
    Steps,
    TopK,
)

if TYPE_CHECKING:
    from pathlib import Path

    from seqtrain.api.predictors import Predictor

OpenFile = Callable[[], AbstractContextManager[TextIO]]
SLOW_STEPS = "every prefix is read again, so a sequence of T steps takes T (T + 1) / 2 steps"


def predict(
    source: Sequences,
    run: RunOrNewest = None,
    named: RunOption = None,
    output: Output = None,
    format: OutputFormat = None,
    input_format: InputFormatOption = None,
    keep: Keep = None,
    top_k: TopK = None,
    probabilities: Probabilities = False,
    min_probability: MinProbability = None,
    precision: Precision = None,
    empty: EmptyOption = None,
    bad_rows: BadRowsOption = BadRows.error,
    steps: Steps = False,
    output_dir: OutputDir = None,
    shard: Shard = None,
    force: Force = False,
    device: Device = None,
) -> None:
    """Example: seqtrain predict new.csv --keep id --output answers.csv"""
    from pathlib import Path

    from seqtrain.cli.output.prediction_rows import open_output
    from seqtrain.cli.output.step_rows import shown_as_lines
    from seqtrain.runs.destination import check_destination

    sources = [] if source == "-" else [source]
    if output is not None:
        check_destination(output, "stream", "--output", force=force, sources=sources)
    chosen = format.value if format else None
    columns = [name for names in keep or [] for name in names.split(",")]
    rows = {"keep": columns, "empty": empty and empty.value, "bad_rows": bad_rows.value}
    thresholds = {"precision": precision, "min_probability": min_probability}
    _check_together(rows, thresholds, probabilities, top_k, steps=steps)
    many = output_dir is not None or shard is not None
    if many:
        _check_many(output, output_dir, steps=steps)
    written = _written(chosen or ("tsv" if many else None), output, steps=steps)

    from seqtrain.api.load import load

    path = chosen_run(run, named)
    classifier = load(path, device=device or "auto")
    shown: dict[str, Any] = {"top_k": top_k, "each_class": probabilities}
    shown["threshold"] = _threshold(classifier, min_probability, precision)
    reading = input_format.value if input_format else None
    given: dict[str, Any] = {"classifier": classifier, "input_format": reading}
    if output_dir is not None:
        given |= rows
        return _answer_files(source, Path(output_dir), shard, given, written, shown, force=force)
    newest = None if run is not None or named is not None else path
    open_file = partial(open_output, output, line_by_line=source == "-")
    answer: Callable[..., int] = partial(_answer, open_file=open_file, written=written, shown=shown)
    if steps:
        lines = shown_as_lines(output, chosen, top_k)
        answer = partial(_answer_steps, open_file=open_file, lines=lines, top_k=top_k)
    return _answer_input(source, given if steps else given | rows, newest, answer)


def _written(chosen: str | None, output: str | None, *, steps: bool) -> str:
    """Return the format of the answers.

    Raises:
        ConfigError: the output's ending names none, or steps can't be written so.
    """
    from seqtrain.cli.output.prediction_rows import answer_format
    from seqtrain.cli.output.step_rows import check_format

    if steps:
        check_format(chosen, output)
    return "jsonl" if steps else answer_format(chosen, output)


def _answer_input(
    source: str, given: dict[str, Any], newest: str | None, answer: Callable[..., int]
) -> None:
    """Answer one input; say before it how it is read, and after it what became of its rows."""
    from seqtrain.api.predict import how_read, read_otherwise
    from seqtrain.cli.output.console import note, warn
    from seqtrain.data.encoding import EncodingReport
    from seqtrain.text import counted

    fitted = given["classifier"].preprocessing
    report, reading = EncodingReport(), (fitted.reading, given["input_format"])
    if newest is not None:
        note(f"run: {newest}")
    for line in how_read(source, *reading):
        note(line)
    unknown = answer(source, given | {"report": report})
    for line in report.notices("input"):
        warn(line)
    if unknown:
        advice = read_otherwise(source, *reading) if unknown == report.rows else ""
        rows = counted(report.rows, "sequence")
        warn(f"{unknown:,} of {rows} with no token that the model knows{advice}")


def _answer(
    source: str,
    given: dict[str, Any],
    open_file: OpenFile,
    written: str,
    shown: dict[str, Any],
) -> int:
    """Write an answer per row; return how many rows had no known token."""
    from seqtrain.api.predict import first_row_doubts
    from seqtrain.api.predict import predict as run_prediction
    from seqtrain.cli.output.answer_columns import AnswerColumns
    from seqtrain.cli.output.console import note, warn
    from seqtrain.cli.output.prediction_rows import write_predictions
    from seqtrain.text import counted

    fitted = given["classifier"].preprocessing
    whole = fitted.reading.whole_files
    columns = AnswerColumns(fitted.labels, keep=given["keep"], whole_files=whole, **shown)
    every = columns.each_class or (written == "jsonl" and not columns.top_k)
    predictions = run_prediction(source, ranks=None if every else columns.ranks, **given)
    first = list(islice(predictions, 1))
    row = first[0].example if first else None
    for line in first_row_doubts(source, row, fitted.reading, given["input_format"]):
        warn(line)
    answers = chain(first, predictions)
    unknown, undecided = write_predictions(answers, open_file, columns, format=written)
    if columns.threshold is not None:
        note(f"{undecided:,} of {counted(given['report'].rows, 'row')} without a label")
    return unknown


def _answer_files(
    source: str,
    folder: Path,
    shard: str | None,
    given: dict[str, Any],
    written: str,
    shown: dict[str, Any],
    *,
    force: bool,
) -> None:
    """Answer each file in a file of its own, whole or not at all, but those answered before."""
    from seqtrain.api.input_files import matching, output_paths, shard_of
    from seqtrain.cli.output.console import note, warn
    from seqtrain.cli.output.prediction_rows import open_output
    from seqtrain.data.encoding import EncodingReport
    from seqtrain.files.writing import replacing
    from seqtrain.text import counted

    files = matching(source)
    own = shard_of(files, shard)
    every = output_paths(files, folder, written)
    paths = {file: every[file] for file in own}
    left = {file: path for file, path in paths.items() if force or not path.exists()}
    for file, path in left.items():
        report = EncodingReport()
        with replacing(path) as unfinished:
            open_file = partial(open_output, str(unfinished), line_by_line=False)
            unknown = _answer(file, given | {"report": report}, open_file, written, shown)
        for line in report.notices(file):
            warn(line)
        if unknown:
            rows = counted(report.rows, "sequence")
            warn(f"{file}: {unknown:,} of {rows} with no token that is known")
    note(f"{counted(len(left), 'file')} answered, {len(paths) - len(left):,} answered before")


def _check_many(output: str | None, output_dir: str | None, *, steps: bool) -> None:
    """Refuse options that don't go with a file for each input.

    Raises:
        ConfigError: as said.
    """
    from seqtrain.errors import ConfigError

    if output_dir is None:
        raise ConfigError("--shard: parts the files of --output-dir; give that too")
    if output is not None:
        raise ConfigError("--output: --output-dir says where answers go; give one of them")
    if steps:
        raise ConfigError("--steps: --output-dir has a row per sequence; give one of them")


def _threshold(
    classifier: Predictor, min_probability: float | None, precision: float | None
) -> float | None:
    """Return the probability from which on labels are written; say it where it is looked up."""
    from seqtrain.api.predictors import one_model
    from seqtrain.cli.output.console import note
    from seqtrain.text import counted

    if precision is None:
        return min_probability
    one = one_model(classifier, "--precision")
    kept, rows = one.threshold(precision), one.calibration.rows
    number = round(kept.coverage * rows)
    told = f" ({number:,} of {counted(rows, 'row')})" if rows else ""
    least = f" (95% interval: from {kept.least(number):.0%})" if rows else ""
    note(
        f"labels from probability {kept.min_probability:.4f} on: {kept.coverage:.1%} of "
        f"validation{told}, {kept.accuracy:.2%} of them right{least}"
    )
    return kept.min_probability


def _answer_steps(
    source: str,
    given: dict[str, Any],
    open_file: OpenFile,
    lines: bool,
    top_k: int | None,
) -> int:
    """Write the answers after every step; return how many sequences had no known token."""
    from seqtrain.api.predict_steps import predict_steps
    from seqtrain.api.predictors import one_model
    from seqtrain.cli.output.console import note
    from seqtrain.cli.output.step_rows import write_steps

    network = one_model(given["classifier"], "--steps").network
    if network.why_it_looks_ahead is not None:
        note(f"{network.why_it_looks_ahead}: {SLOW_STEPS}")
    return write_steps(predict_steps(source, **given), open_file, top_k=top_k, lines=lines)


def _check_together(
    rows: dict[str, Any],
    thresholds: dict[str, float | None],
    probabilities: bool,
    top_k: int | None,
    *,
    steps: bool,
) -> None:
    """Refuse options that don't go together.

    Raises:
        ConfigError: as said.
    """
    from seqtrain.errors import ConfigError

    if probabilities and top_k:
        raise ConfigError("--top-k: --probabilities writes every class; give one of them")
    given = {name: value is not None for name, value in thresholds.items()}
    if all(given.values()):
        raise ConfigError("--precision: chooses --min-probability; give one of them")
    asked = rows | given | {"probabilities": probabilities}
    asked["bad_rows"] = rows["bad_rows"] != "error"
    beside = [name.replace("_", "-") for name, value in asked.items() if value]
    if steps and beside:
        raise ConfigError(f"--{beside[0]}: --steps writes every answer; give one of them")
