"""Command `seqtrain predict`: one output row per input row, in input order."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from seqtrain.cli import options
from seqtrain.cli.options import argument, chosen_run, flag, option, refuse
from seqtrain.errors import ConfigError
from seqtrain.files.reading import uncompressed
from seqtrain.tables.formats import InputFormat
from seqtrain.text import counted, one_of, quote

if TYPE_CHECKING:
    from seqtrain.api.predictors import Classifier

ENDINGS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""Maps the ending of an output file, before .gz or .zst, to its format."""
INPUT = argument(
    "File of sequences; a pattern in quotes, such as 'in/*.jsonl'; - for standard input; or a text "
    "to classify, if there is no such file.",
    "INPUT",
)
OUTPUT = option("Output file. Default: - (standard output).", "FILE", "--output", "-o")
FORMAT = option(
    "Output format. Default: by the ending of --output, else tsv, or aligned columns on a terminal."
)
INPUT_FORMAT = option(
    "Format of INPUT. Default: by its ending. Default for standard input: "
    "lines (one sequence per line)."
)
ENCODING = option("Encoding of INPUT, such as cp1252. Default: UTF-8.", "NAME")
KEEP = option("Columns of INPUT to copy to the output, such as id,text; or all.", "COLUMNS")
TOP_K = option("Write the K most probable labels.", "K", min=1)
PROBABILITIES = flag("Write the probability of every label.", "--probabilities")
MIN_PROBABILITY = option("Leave the label empty if its probability is below P.", "P", min=0, max=1)
PRECISION = option(
    "Choose one --min-probability for all labels on validation, so that this share of the labels "
    "that aren't left empty is right, such as 0.95.",
    "SHARE",
    min=0,
    max=1,
)
THRESHOLD = option(
    "Predict LABEL if its probability is at least P, and otherwise not. P alone is for "
    "every label, if rows may have several labels.",
    "[LABEL=]P",
)
CLASS_PRECISION = option(
    "Like --precision for one label: choose its --threshold on validation, such as spam=0.95.",
    "LABEL=SHARE",
)
EMPTY = option(
    "For an empty sequence: stop (error), classify it as one unknown token (unk), or leave its "
    "label empty (blank). Default: blank if data.empty of the run is error, otherwise unk."
)
BAD_ROWS = option(
    "For a row that can't be read: stop (error), or leave its label empty (blank).", default="error"
)
STEPS = flag(
    "Also predict after every time step: as jsonl, or as coloured lines on a terminal.", "--steps"
)
OUTPUT_DIR = option("Write one output file into DIR for each file of INPUT.", "DIR")
SPREADSHEET_SAFE = flag(
    "csv: put a ' before cells that a spreadsheet would run as a formula.", "--spreadsheet-safe"
)


STEPS_EXCLUDES = (
    "keep",
    "empty",
    "bad_rows",
    "threshold",
    "class_precision",
    "probabilities",
    "precision",
    "min_probability",
    "output_dir",
)
"""Options that --steps excludes."""
CLASHES = (
    ("output", "output_dir", "--output-dir names where to write"),
    ("top_k", "probabilities", "--probabilities writes every class"),
    ("precision", "min_probability", "it chooses --min-probability"),
    *((name, "steps", "not available with --steps") for name in STEPS_EXCLUDES),
)
"""Pairs of options that exclude each other, each with the reason."""


def predict(
    context: typer.Context,
    source: str = INPUT,
    run: str | None = options.RUN,
    named: str | None = options.RUN_OPTION,
    output: str | None = OUTPUT,
    format: Literal["tsv", "csv", "jsonl"] | None = FORMAT,
    input_format: InputFormat | None = INPUT_FORMAT,
    delimiter: options.Delimiter = options.DELIMITER,
    encoding: str | None = ENCODING,
    keep: list[str] | None = KEEP,
    top_k: int | None = TOP_K,
    probabilities: bool = PROBABILITIES,
    min_probability: float | None = MIN_PROBABILITY,
    precision: float | None = PRECISION,
    threshold: list[str] | None = THRESHOLD,
    class_precision: list[str] | None = CLASS_PRECISION,
    empty: Literal["error", "unk", "blank"] | None = EMPTY,
    bad_rows: Literal["error", "blank"] = BAD_ROWS,
    steps: bool = STEPS,
    output_dir: str | None = OUTPUT_DIR,
    spreadsheet_safe: bool = SPREADSHEET_SAFE,
    force: bool = options.FORCE,
    device: str = options.DEVICE,
) -> None:
    """Example: seqtrain predict new.csv --keep id --output predictions.csv"""
    kept, output = _kept_columns(keep), None if output == "-" else output
    _check_options(context, source, output, force=force)
    default = "jsonl" if steps and top_k else "tsv" if output_dir else None
    written = _row_format(format or default, output, steps=steps)
    path = chosen_run(run, named)

    from seqtrain.api.load import load
    from seqtrain.cli.output.prediction_job import predict_files, write_predictions
    from seqtrain.cli.output.prediction_rows import PredictionColumns

    classifier = load(path, device=device)
    kept = _with_id(kept, classifier)
    columns = PredictionColumns(
        classifier.labels,
        written,
        top_k,
        probabilities,
        kept,
        threshold=_least_probability(classifier, min_probability, precision),
        spreadsheet_safe=spreadsheet_safe,
        separator=classifier.separator,
        steps=steps,
    )
    _set_thresholds(classifier, threshold or [], class_precision or [])
    reading = {
        "input_format": input_format,
        "delimiter": delimiter,
        "encoding": encoding,
        "keep": kept,
        "empty": empty,
        "bad_rows": bad_rows,
    }
    write = partial(write_predictions, classifier, columns, reading)
    if output_dir is not None:
        predict_files(source, Path(output_dir), written, write, force=force)
    else:
        _predict_one(source, output, write, None if run or named else path)


def _predict_one(
    source: str, output: str | None, write: Callable[..., None], newest_run: str | None
) -> None:
    """Predict one input.

    Args:
        source: Path of the input, a text, or "-" for standard input.
        output: Path of the output, or None for standard output.
        write: Function that predicts a path and writes to an output, as `write_predictions` does.
        newest_run: Path of the newest run, which is printed, or None if the user chose a run.
    """
    from seqtrain.cli.output.console import note
    from seqtrain.cli.output.prediction_job import open_output

    if newest_run is not None:
        note(f"run: {newest_run}")
    path = _input_path(source)
    write(path, partial(open_output, output, line_by_line=path == "-"))


def _check_options(context: typer.Context, source: str, output: str | None, *, force: bool) -> None:
    """Raise a ConfigError if the output can't be written, or if options exclude each other.

    Only options on the command line count, not defaults.
    """
    from seqtrain.runs.destination import check_destination

    if output is not None:
        sources = [] if source == "-" else [source]
        check_destination(output, "stream", "--output", force=force, sources=sources)
    found = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, origin in found.items() if origin and origin.name == "COMMANDLINE"}
    for name, other, reason in CLASHES:
        option_name = f"--{name.replace('_', '-')}"
        refuse((f"{option_name}: {reason}; give one of them", {name, other} <= given))


def _kept_columns(keep: list[str] | None) -> list[str]:
    """Return the columns in --keep, whose values may join several columns by commas.

    Raises:
        ConfigError: If a column is named twice.
    """
    kept = [name for names in keep or [] for name in names.split(",")]
    for name in kept:
        refuse((f"--keep: {name} is named twice; expected each once", kept.count(name) > 1))
    return kept


def _with_id(kept: list[str], classifier: Classifier) -> list[str]:
    """Return the columns to copy, with the id in front if the model reads step tables.

    The id isn't added if it is among the columns, or if all columns are copied.
    """
    from seqtrain.sequences.schema import keeps_all

    id_column = classifier.preprocessing.schema.id
    if id_column is None or keeps_all(kept) or str(id_column) in kept:
        return kept
    return [str(id_column), *kept]


def _least_probability(
    classifier: Classifier, min_probability: float | None, precision: float | None
) -> float | None:
    """Return the probability below which labels are left empty, or None if all are written.

    It is `min_probability`, or the probability that gives `precision` on validation. In a
    multi-label task, it becomes the threshold of each class instead, and the result is None.

    Raises:
        ConfigError: If `_probability_for_precision` raises it.
    """
    least = min_probability
    if precision is not None:
        least = _probability_for_precision(classifier, precision)
    if least is not None and classifier.separator is not None:
        classifier.thresholds = dict.fromkeys(classifier.labels, least)
        return None
    return least


def _set_thresholds(
    classifier: Classifier, thresholds: list[str], class_precisions: list[str]
) -> None:
    """Set the thresholds of the classifier by the values of --threshold and --class-precision.

    A threshold without a label is for every label of a multi-label task.

    Raises:
        ConfigError: If a value is wrong, a label is unknown, or no threshold gives the precision.
    """
    for text in thresholds:
        label, share = _label_and_share(text, "--threshold")
        if not label and classifier.separator is None:
            raise ConfigError(
                f"--threshold: found {text} without a label; expected LABEL={text} for one label, "
                f"or --min-probability {text} to leave improbable predictions empty"
            )
        for name in [label] if label else classifier.labels:
            classifier.set_threshold(name, share)
    for text in class_precisions:
        label, share = _label_and_share(text, "--class-precision")
        classifier.set_threshold(label, 0.0)  # raises an error for an unknown label
        probability = _probability_for_precision(classifier, share, label)
        classifier.set_threshold(label, probability)


def _input_path(source: str) -> str:
    """Return the path of the input, or "-" if the input is a text to classify.

    A text has several words, isn't the name of a file, and doesn't end like a known format. If the
    input is a text, standard input is replaced by this text.
    """
    from seqtrain.cli.output.console import note
    from seqtrain.tables.formats import resolve_format

    if len(source.split()) < 2 or os.path.exists(source) or resolve_format(source, "auto"):
        return source
    note("INPUT is not a file; it is read as one sequence")
    sys.stdin = io.TextIOWrapper(io.BytesIO(source.encode(errors="surrogateescape")))
    return "-"


def _row_format(chosen: str | None, path: str | None, *, steps: bool) -> str:
    """Return the output format: the chosen format, the format of the ending, or a default.

    The default is "tsv", or "jsonl" with --steps. On a terminal the default is "lines".

    Args:
        chosen: Value of --format, or None.
        path: Path of the output, or None for standard output.
        steps: True if each time step is predicted.

    Raises:
        ConfigError: If the ending is unknown, or if the format doesn't suit --steps.
    """
    if path is None and chosen is None and sys.stdout.isatty():
        return "lines"
    ending = Path(uncompressed((path or "").lower())).suffix
    found = chosen or ENDINGS.get(ending or (".jsonl" if steps else ".tsv"))
    if steps and found != "jsonl":
        option = "--format" if chosen else "--output"
        raise ConfigError(f"{option}: found {chosen or path}; --steps writes jsonl")
    if found is None:
        raise ConfigError(
            f"--output: found {quote(str(path))}; expected an ending {one_of(list(ENDINGS))} "
            "(and .gz or .zst after it, to compress), or give --format"
        )
    return found


def _label_and_share(text: str, option: str) -> tuple[str, float]:
    """Return label and number of a text LABEL=NUMBER.

    For --threshold, the text may also be NUMBER. The label is "" in this case.

    Raises:
        ConfigError: If the text has another form, or the number isn't in [0, 1].
    """
    label, _, number = text.rpartition("=")
    try:
        share = float(number)
    except ValueError:
        share = -1.0
    has_no_label = option == "--threshold" and "=" not in text
    if not 0 <= share <= 1 or not (label or has_no_label):
        raise ConfigError(f"{option}: found {quote(text)}; expected LABEL=NUMBER, from 0 to 1")
    return label, share


def _probability_for_precision(
    classifier: Classifier, precision: float, label: str | None = None
) -> float:
    """Return the probability from which on a precision is reached on validation.

    It is the threshold that `Classifier.threshold` chooses. Its effect is printed on stderr.

    Args:
        classifier: A single model.
        precision: Share of the predictions that must be right.
        label: Class whose predictions count, or None for all classes.

    Raises:
        ConfigError: If the classifier is an ensemble, or if `Classifier.threshold` raises it.
    """
    from seqtrain.api.predictors import one_model
    from seqtrain.cli.output.console import note

    model = one_model(classifier, "--precision" if label is None else "--class-precision")
    found, rows = model.threshold(precision, label), model.calibration.rows
    which, of_rows, interval = "labels", "validation", ""
    if label is not None:
        which, of_rows = quote(label), "its rows of validation"
    elif rows:
        number = round(found.coverage * rows)
        of_rows += f" ({number:,} of {counted(rows, 'row')})"
        interval = f" (95% interval: from {found.lowest_accuracy(number):.0%})"
    right = f"{found.accuracy:.2%} of them right{interval}"
    note(
        f"{which} with probability {found.min_probability:.4f} or more: {found.coverage:.1%} of "
        f"{of_rows}, {right}"
    )
    return found.min_probability
