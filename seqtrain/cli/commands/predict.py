"""`seqtrain predict INPUT`: one output row per input row, in input order."""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import Enum
from typing import Annotated, TextIO

import typer

from seqtrain.cli.options import Device, Sequences


class Format(str, Enum):
    """How predictions are written."""

    tsv = "tsv"
    csv = "csv"
    jsonl = "jsonl"


def predict(
    source: Sequences,
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Run directory or model folder; default: the newest."),
    ] = None,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where to write; default: standard output.")
    ] = None,
    format: Annotated[
        Format | None, typer.Option(help="Output format; default: by --output's ending, else tsv.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(metavar="K", min=1, help="Write the K most probable labels.")
    ] = None,
    steps: Annotated[
        bool,
        typer.Option(
            "--steps", help="Answer after every step: jsonl, or coloured lines on a terminal."
        ),
    ] = False,
    min_probability: Annotated[
        float | None,
        typer.Option(metavar="P", min=0, max=1, help="Leave less probable labels empty."),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="The same, with the P from which on so many answers were right on validation.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing --output file.")
    ] = False,
    device: Device = None,
) -> None:
    """Classify each row of INPUT: a .txt file or standard input holds one sequence per line."""
    from seqtrain.cli.output.new_file import check_new_file
    from seqtrain.cli.output.prediction_rows import (
        check_one_threshold,
        format_of,
        open_output,
        write_predictions,
    )
    from seqtrain.cli.output.step_rows import check_format, shown_as_lines, write_steps

    check_one_threshold(min_probability, precision, steps=steps)
    sources = [] if source == "-" else [source]
    check_new_file("--output", output, force=force, sources=sources, streams=True)
    chosen = format.value if format else None
    if steps:
        check_format(chosen, output)
    written = chosen or ("jsonl" if steps else format_of(output))

    from seqtrain.cli.output.console import note, warn
    from seqtrain.data.encoding import EncodingReport
    from seqtrain.workflows.classifier import load
    from seqtrain.workflows.predict import predict as run_prediction
    from seqtrain.workflows.steps import predict_steps

    classifier = load(run, device=device or "auto")
    if run is None:
        note(f"run: {classifier.path}")
    report, undecided = EncodingReport(), 0
    threshold = min_probability
    if precision is not None:
        kept = classifier.threshold(precision)
        threshold = kept.min_probability
        note(
            f"labels from probability {threshold:.4f} on: {kept.coverage:.1%} of validation, "
            f"{kept.accuracy:.2%} of them right"
        )

    def open_file() -> AbstractContextManager[TextIO]:
        return open_output(output, line_by_line=source == "-")

    if steps:
        if classifier.network.looks_ahead:
            note(
                f"{classifier.network.why_it_looks_ahead}: every prefix is read again, so a "
                "sequence of T steps takes T (T + 1) / 2 steps"
            )
        unknown = write_steps(
            predict_steps(source, classifier=classifier, report=report),
            open_file,
            top_k=top_k,
            lines=shown_as_lines(output, chosen, top_k),
        )
    else:
        ranks = top_k if written == "jsonl" else top_k or 1
        unknown, undecided = write_predictions(
            run_prediction(source, classifier=classifier, report=report, ranks=ranks),
            open_file,
            labels=classifier.labels,
            format=written,
            top_k=top_k,
            threshold=threshold,
        )
    if threshold is not None:
        note(f"{undecided:,} of {report.rows:,} rows stay without a label")
    for line in report.notices("input"):
        warn(line)
    if unknown:
        warn(f"{unknown} of {report.rows} sequences hold no token that the model knows")
