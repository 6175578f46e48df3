"""`seqtrain predict INPUT`: one output row per input row, in input order."""

from __future__ import annotations

import io
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from seqtrain.cli import options
from seqtrain.cli.options import argument, chosen_run, flag, option, refuse
from seqtrain.config.formats import InputFormat
from seqtrain.errors import ConfigError
from seqtrain.files.reading import uncompressed
from seqtrain.text import counted, one_of, quote

if TYPE_CHECKING:
    from seqtrain.api.predictors import Classifier

ENDINGS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
"""Format of each ending of an output file; .gz or .zst after it compresses."""


def predict(
    source: str = argument("File of sequences, - for standard input, or a text.", "INPUT"),
    run: str | None = options.RUN,
    named: str | None = options.RUN_OPTION,
    output: str | None = option(
        "Where to write. Default: - (standard output).", "FILE", "--output", "-o"
    ),
    format: Literal["tsv", "csv", "jsonl"] | None = option(
        "Output format. Default: by --output's ending, else tsv; on a terminal lines."
    ),
    input_format: InputFormat | None = option(
        "Format of INPUT. Default: by its name; standard input as lines."
    ),
    delimiter: options.Delimiter = options.DELIMITER,
    encoding: str | None = option("Encoding of INPUT, such as cp1252. Default: UTF-8.", "NAME"),
    keep: list[str] | None = option(
        "Columns of INPUT to copy to the output, such as id,text; or all.", "COLUMNS"
    ),
    top_k: int | None = option("Write the K most probable labels.", "K", min=1),
    probabilities: bool = flag("Write the probability of every label.", "--probabilities"),
    min_probability: float | None = option(
        "Leave the label empty where its probability is below P.", "P", min=0, max=1
    ),
    precision: float | None = option(
        "Choose --min-probability so that this share of the remaining labels, of all classes "
        "together, was right on validation, such as 0.95.",
        "SHARE",
        min=0,
        max=1,
    ),
    threshold: list[str] | None = option(
        "Predict LABEL from this probability on, and never below; without LABEL, every label.",
        "[LABEL=]P",
    ),
    class_precision: list[str] | None = option(
        "Choose --threshold so that this share of LABEL's predictions was right on validation, "
        "such as spam=0.95.",
        "LABEL=SHARE",
    ),
    empty: Literal["error", "unk", "blank"] | None = option(
        "What to do with an empty sequence: stop, read an unknown token, or leave its label "
        "empty. Default: as in training, or blank."
    ),
    bad_rows: Literal["error", "blank"] = option(
        "What to do with a row that can't be read: stop, or leave the label empty.", default="error"
    ),
    steps: bool = flag(
        "Predict after every time step: jsonl, or coloured lines on a terminal.", "--steps"
    ),
    output_dir: str | None = option("Write one file there for each file that INPUT names.", "DIR"),
    spreadsheet_safe: bool = flag(
        "csv: put a ' before cells that a spreadsheet would run as a formula.", "--spreadsheet-safe"
    ),
    force: bool = options.FORCE,
    device: str = options.DEVICE,
) -> None:
    """Example: seqtrain predict new.csv --keep id --output predictions.csv"""
    from seqtrain.runs.destination import check_destination

    output = None if output == "-" else output
    if output is not None:
        sources = [] if source == "-" else [source]
        check_destination(output, "stream", "--output", force=force, sources=sources)
    of_rows = {
        "--keep": keep,
        "--empty": empty,
        "--bad-rows": bad_rows != "error",
        "--threshold": threshold,
        "--class-precision": class_precision,
        "--probabilities": probabilities,
        "--precision": precision is not None,
        "--min-probability": min_probability is not None,
        "--output-dir": output_dir,
    }
    kept = [name for names in keep or [] for name in names.split(",")]
    one, both = "give one of them", None not in (precision, min_probability)
    refuse(
        (f"--top-k: --probabilities writes every class; {one}", top_k and probabilities),
        (f"--precision: it chooses --min-probability; {one}", both),
        (f"--output: --output-dir says where to write; {one}", output and output_dir),
        *((f"{name}: --steps writes rows; {one}", steps and on) for name, on in of_rows.items()),
        *((f"--keep: {x} is named twice; expected each once", kept.count(x) > 1) for x in kept),
    )
    default = "jsonl" if steps and top_k else "tsv" if output_dir else None
    written = _row_format(format or default, output, steps=steps)

    from seqtrain.api.load import load
    from seqtrain.cli.output.console import note
    from seqtrain.cli.output.prediction_job import open_output, predict_files, write_predictions
    from seqtrain.cli.output.prediction_rows import PredictionColumns
    from seqtrain.data.read_options import PredictionOptions, keeps_all

    path = chosen_run(run, named)
    classifier = load(path, device=device)
    name = classifier.preprocessing.schema.id
    if name is not None and not keeps_all(kept) and str(name) not in kept:
        kept = [str(name), *kept]
    least = min_probability if precision is None else _looked_up(classifier, precision)
    if least is not None and classifier.separator is not None:
        classifier.thresholds, least = dict.fromkeys(classifier.labels, least), None
    for text in threshold or []:
        label, share = _share(text, "--threshold")
        for each in [label] if label else classifier.labels:
            classifier.set_threshold(each, share)
    for text in class_precision or []:
        label, share = _share(text, "--class-precision")
        classifier.set_threshold(label, 0.0)  # which refuses an unknown label
        classifier.set_threshold(label, _looked_up(classifier, share, label))
    columns = PredictionColumns(
        classifier.labels,
        written,
        top_k,
        each_class=probabilities,
        keep=kept,
        threshold=least,
        spreadsheet_safe=spreadsheet_safe,
        separator=classifier.separator,
        steps=steps,
    )
    how = PredictionOptions(input_format, delimiter, encoding, kept, empty, bad_rows)
    write = partial(write_predictions, classifier, columns, how)
    if output_dir is not None:
        return predict_files(source, Path(output_dir), written, write, force=force)
    if run is None and named is None:
        note(f"run: {path}")
    source = _given_text(source)
    return write(source, partial(open_output, output, line_by_line=source == "-"))


def _given_text(source: str) -> str:
    """Let a text with blanks that names no file be one line of standard input."""
    from seqtrain.cli.output.console import note
    from seqtrain.config.formats import resolve_format

    if len(source.split()) < 2 or os.path.exists(source) or resolve_format(source, "auto"):
        return source
    note("INPUT is no file; it is read as one sequence")
    sys.stdin = io.TextIOWrapper(io.BytesIO(source.encode(errors="surrogateescape")))
    return "-"


def _row_format(chosen: str | None, path: str | None, *, steps: bool) -> str:
    """Return how predictions are written: as chosen, or as the output's ending says, else tsv."""
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


def _share(text: str, option: str) -> tuple[str, float]:
    """Return label and number of LABEL=NUMBER; the label of a bare threshold is empty."""
    label, _, number = text.rpartition("=")
    try:
        share = float(number)
    except ValueError:
        share = -1.0
    is_bare = option == "--threshold" and "=" not in text
    if not 0 <= share <= 1 or not (label or is_bare):
        raise ConfigError(f"{option}: found {quote(text)}; expected LABEL=NUMBER, from 0 to 1")
    return label, share


def _looked_up(classifier: Classifier, precision: float, label: str | None = None) -> float:
    """Return the lowest probability from which this share of validation was right; say it."""
    from seqtrain.api.predictors import one_model
    from seqtrain.cli.output.console import note

    one = one_model(classifier, "--precision" if label is None else "--class-precision")
    found, rows = one.threshold(precision, label), one.calibration.rows
    which, of_what, interval = "labels", "validation", ""
    if label is not None:
        which, of_what = quote(label), "its rows of validation"
    elif rows:
        number = round(found.coverage * rows)
        of_what += f" ({number:,} of {counted(rows, 'row')})"
        interval = f" (95% interval: from {found.least(number):.0%})"
    share = f"{found.coverage:.1%} of {of_what}, {found.accuracy:.2%} of them right{interval}"
    note(f"{which} from probability {found.min_probability:.4f} on: {share}")
    return found.min_probability
