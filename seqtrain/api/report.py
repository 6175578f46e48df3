"""`seqtrain.report`: runs as one offline HTML page."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from seqtrain.api.named_runs import RunLike, directory_of, learned_rows
from seqtrain.config import render_config
from seqtrain.errors import ConfigError, parameter, warn
from seqtrain.files.reading import number_at
from seqtrain.files.writing import write_file
from seqtrain.reports.contents import RunReport, model_card
from seqtrain.reports.page import render
from seqtrain.runs.destination import check_destination
from seqtrain.runs.overview import first_model_scores
from seqtrain.runs.run_directory import members


@dataclass(frozen=True)
class Report:
    """A page that was written.

    Attributes:
        path: The HTML file.
        runs: Directories of the runs that the page describes.
        warnings: Limits of the scores on the page, one line each. They are also issued as
            `SeqtrainWarning`.
    """

    path: Path
    runs: tuple[Path, ...]
    warnings: tuple[str, ...]


def report(
    runs: RunLike | Sequence[RunLike] = None,
    output: str | PathLike[str] = "report.html",
    *,
    split: str | None = None,
    data: Any = None,
    steps: bool = False,
    force: bool = False,
    device: str = "auto",
) -> Report:
    """Write one offline HTML page about one or several runs.

    Args:
        runs: A run as `evaluate` takes it, a list of these, or None for the newest run. For the
            directory of an ensemble, each of its runs is described.
        output: HTML file to write.
        split: test, validation or train; or None for test, or validation if there is no test split,
            or else train.
        data: Labelled data to score on in place of a split: a file, or a table as `fit` takes it.
        steps: Also show scores after 10 %, 20 % … of each sequence.
        force: Replace the file `output` if it exists.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        ConfigError: If the file exists, or if its name doesn't end in .html or .htm. Also if
            `evaluate` would raise it.
        CheckpointError: If `evaluate` would raise it, or if a run is a model folder.
        DataError: If `evaluate` would raise it.
        RunError: If `evaluate` would raise it, or if the file can't be written.
    """
    target = Path(output)
    if target.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(
            f"{parameter('output')}: {target}: a report is HTML; expected a name like report.html"
        )
    sources = [data] if isinstance(data, str) else []
    check_destination(target, "file", parameter("output"), force=force, sources=sources)
    named: Any = runs if isinstance(runs, list | tuple) else [runs]
    chosen = []
    for run in named:
        chosen += members(directory_of(run).path) or [run]
    if not chosen:
        raise ConfigError("runs: found none; expected at least one")
    shown = [run_report(run, split=split, data=data, steps=steps, device=device) for run in chosen]
    if len(shown) > 1:
        title = f"{shown[0].name} and others"
    else:
        title = shown[0].name
    write_file(target, render(shown, title=title).encode())
    warnings = tuple(dict.fromkeys(line for each in shown for line in each.shown.warnings))
    warn(*warnings)
    return Report(target, tuple(directory_of(run).path for run in chosen), warnings)


def run_report(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: Any = None,
    steps: bool = False,
    device: str = "auto",
) -> RunReport:
    """Return what a report shows of one run. `run` is one run, not an ensemble.

    The other arguments and the errors are as for `report`.
    """
    # With torch: wrong names are found first.
    from seqtrain.api.evaluate import load_labelled
    from seqtrain.api.split_results import results_of

    directory = directory_of(run)
    config = directory.config()
    environment = directory.environment()
    held_out = config.data.test or config.data.validation
    split = split if split or data is not None or held_out else "train"  # all that there is
    epochs = [e for e in directory.metrics("epoch") if number_at(e, "epoch") is not None]
    found = load_labelled(run, split=split, data=data, device=device)
    shown = results_of(found)
    learned = learned_rows(config, shown.split)
    headline = shown.scores.summary()
    if shown.split == "validation" and learned:
        first = first_model_scores(directory)
        headline = (first or shown.scores).summary()
        learned += "; the figures are those of the model before the refit, the tables its own"
    return RunReport(
        name=directory.path.name or str(directory.path),
        config=render_config(config),
        environment={**environment, "data": {**environment["data"], **shown.digests}},
        epochs=epochs,
        card=model_card(directory, config, epochs, shown),
        split=(shown.split or Path(shown.data).name) + (learned and f", trained on {learned}"),
        shown=shown,
        headline=headline,
        prefixes=found.by_share() if steps else [],
    )
