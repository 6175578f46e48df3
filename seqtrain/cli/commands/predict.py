"""Command `seqtrain predict`: one output row per input row, in input order."""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from pathlib import Path
from shlex import quote as quoted
from typing import TYPE_CHECKING, Literal

import typer

from seqtrain.cli import options
from seqtrain.cli.options import argument, chosen_run, flag, option
from seqtrain.errors import ConfigError, DataError
from seqtrain.files.reading import uncompressed
from seqtrain.tables.formats import InputFormat
from seqtrain.text import one_of, quote

if TYPE_CHECKING:
    from seqtrain.api.classifier import Classifier

ENDINGS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""Maps the ending of an output file, before .gz or .zst, to its format."""
NEXT_COMMAND = re.compile(r"^(  seqtrain )init (\S+|'[^']*')$")
"""Line of an error with the command for a file that the command above it writes."""
INPUT = argument(
    "File of sequences; a pattern in quotes, such as 'in/*.jsonl'; - for standard input; or a text "
    "to classify, if there is no such file.",
    "INPUT",
)
OUTPUT = option("Output file. Default: - (standard output).", "FILE", "--output", "-o")
FORMAT = option("Output format. Default: by the ending of --output, else tsv.")
INPUT_FORMAT = option(
    "Format of INPUT. Default: by its ending. Default for standard input: "
    "lines (one sequence per line)."
)
ENCODING = option("Encoding of INPUT, such as cp1252. Default: UTF-8.", "NAME")
KEEP = option(
    "Columns of INPUT to copy to the output, such as id,text; or all. Quote a name with a comma: "
    "'id,\"a, b\"'.",
    "COLUMNS",
)
TOP_K = option("Write the K most probable labels.", "K", min=1)
PROBABILITIES = flag("Write the probability of every label.", "--probabilities")
MIN_PROBABILITY = option("Leave the label empty if its probability is below P.", "P", min=0, max=1)
THRESHOLD = option(
    "Predict LABEL if its probability is at least P, and otherwise not. P alone is for "
    "every label, if rows may have several labels.",
    "[LABEL=]P",
)
EMPTY = option(
    "For an empty sequence: stop (error), classify it as one unknown token (unk), or leave its "
    "label empty (blank). Default: blank if data.empty of the run is error, otherwise unk."
)
BAD_ROWS = option(
    "For a row that can't be read: stop (error), or leave its label empty (blank). "
    "Default: blank if data.bad_rows was drop, and error if not."
)
STEPS = flag("Predict after every time step: one row of jsonl for each.", "--steps")
EXCLUDED_BY_STEPS = ("keep", "empty", "bad_rows", "threshold", "probabilities", "min_probability")


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
    threshold: list[str] | None = THRESHOLD,
    empty: Literal["error", "unk", "blank"] | None = EMPTY,
    bad_rows: Literal["error", "blank"] | None = BAD_ROWS,
    steps: bool = STEPS,
    force: bool = options.FORCE,
    device: str = options.DEVICE,
) -> None:
    """Example: seqtrain predict new.csv --keep id --output predictions.csv"""
    from seqtrain.runs.destination import check_destination

    output = None if output == "-" else output
    kept = kept_columns(keep or [])
    _check_clashes(context)
    if output is not None:
        sources = [] if source == "-" else [source]
        check_destination(output, "stream", "--output", force=force, sources=sources)
    written = _output_format(format, output, steps=steps)
    run_path = chosen_run(run, named)

    from seqtrain.api.classifier import load
    from seqtrain.cli.screens.console import note
    from seqtrain.cli.screens.output import write_predictions
    from seqtrain.cli.screens.rows import RowFormat
    from seqtrain.sequences.schema import keeps_all

    classifier = load(run_path, device=device)
    ids = map(str, classifier.preprocessing.schema.id_columns)
    if not keeps_all(kept):
        kept = [*(name for name in ids if name not in kept), *kept]
    if min_probability is not None and classifier.separator is not None:
        classifier.thresholds = dict.fromkeys(classifier.labels, min_probability)
        min_probability = None
    _set_thresholds(classifier, threshold or [])
    rows = RowFormat(
        classifier.labels,
        written,
        top_k,
        probabilities,
        kept,
        threshold=min_probability,
        separator=classifier.separator,
        steps=steps,
    )
    reading = {
        "input_format": input_format,
        "delimiter": delimiter,
        "encoding": encoding,
        "keep": kept,
        "empty": empty,
        "bad_rows": bad_rows,
    }
    if not (run or named):
        note(f"run: {run_path}")
    path = _input_path(source)
    if path == "-" and sys.stdin is not None and sys.stdin.isatty():
        note(f"reading {input_format or 'lines'} from the terminal; Ctrl-D ends the input")
    try:
        write_predictions(classifier, rows, reading, path, output)
    except DataError as error:  # such as a file that a command converts
        command = rf"\1predict \2 {quoted(run_path)}"
        raise DataError(*(NEXT_COMMAND.sub(command, line) for line in error.problems)) from None


def _check_clashes(context: typer.Context) -> None:
    """Raise a ConfigError if options on the command line exclude each other."""
    given = set()
    for name in context.params:
        origin = context.get_parameter_source(name)
        if origin is not None and origin.name == "COMMANDLINE":
            given.add(name)
    if {"top_k", "probabilities"} <= given:
        raise ConfigError("--top-k: --probabilities writes every class; give one of them")
    for name in EXCLUDED_BY_STEPS:
        if {name, "steps"} <= given:
            raise ConfigError(
                f"--{name.replace('_', '-')}: not available with --steps; give one of them"
            )


def kept_columns(keep: list[str]) -> list[str]:
    """Return the columns in the values of --keep.

    A value may join several columns by commas. A name in double quotes may have commas, and
    ``"all"`` in quotes is a column of this name.

    Raises:
        ConfigError: If a column is named twice.
    """
    if [text.strip() for text in keep] == ["all"]:
        from seqtrain.sequences.schema import EVERY_COLUMN

        return [EVERY_COLUMN]
    kept = [name for row in csv.reader(keep, skipinitialspace=True) for name in row if name]
    for name in kept:
        if kept.count(name) > 1:
            raise ConfigError(f"--keep: {name} is named twice; expected each once")
    return kept


def _set_thresholds(classifier: Classifier, thresholds: list[str]) -> None:
    """Set the thresholds of the classifier by the values of --threshold.

    A threshold without a label is for every label of a multi-label task.

    Raises:
        ConfigError: If a value is wrong, or a label is unknown.
    """
    for text in thresholds:
        label, has_label, number = text.rpartition("=")
        try:
            probability = float(number)
        except ValueError:
            probability = -1.0
        if not 0 <= probability <= 1 or (has_label and not label):
            raise ConfigError(
                f"--threshold: found {quote(text)}; expected LABEL=NUMBER, from 0 to 1"
            )
        if not label and classifier.separator is None:
            raise ConfigError(
                f"--threshold: found {text} without a label; expected LABEL={text} for one label, "
                f"or --min-probability {text} to leave improbable predictions empty"
            )
        for name in [label] if label else classifier.labels:
            classifier.set_threshold(name, probability)


def _input_path(source: str) -> str:
    """Return the path of the input, or "-" if the input is a text to classify.

    A text isn't the name of a file, and doesn't end like a known format. A single word with a
    slash, or one that resembles the name of a file, is a path, not a text. If the input is a text,
    standard input is replaced by this text.
    """
    from seqtrain.cli.screens.console import note
    from seqtrain.files.reading import nearest_file
    from seqtrain.tables.formats import resolve_format

    is_path = source == "-" or os.path.lexists(source) or resolve_format(source, "auto")
    is_word = len(source.split()) < 2
    if is_path or (is_word and (os.sep in source or nearest_file(source) is not None)):
        return source
    note("INPUT is not a file; it is read as one sequence")
    sys.stdin = io.TextIOWrapper(io.BytesIO(source.encode(errors="surrogateescape")))
    return "-"


def _output_format(chosen: str | None, path: str | None, *, steps: bool) -> str:
    """Return the output format: the chosen format, the format of the ending, or a default.

    The default is "tsv", or "jsonl" with --steps.

    Args:
        chosen: Value of --format, or None.
        path: Path of the output, or None for standard output.
        steps: True if each time step is predicted.

    Raises:
        ConfigError: If the ending is unknown, or if the format doesn't suit --steps.
    """
    ending = Path(uncompressed((path or "").lower())).suffix
    default = ".jsonl" if steps else ".tsv"
    found = chosen or ENDINGS.get(ending or default)
    if steps and found != "jsonl":
        option_name = "--format" if chosen else "--output"
        raise ConfigError(f"{option_name}: found {chosen or path}; --steps writes jsonl")
    if found is None:
        raise ConfigError(
            f"--output: found {quote(str(path))}; expected an ending {one_of(list(ENDINGS))} "
            "(and .gz or .zst after it, to compress), or give --format"
        )
    return found
