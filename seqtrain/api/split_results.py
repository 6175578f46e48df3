"""Predictions of a run for a split: loaded if `fit` saved them, or else computed."""

from dataclasses import replace
from os import PathLike
from typing import Any

from seqtrain.api.named_runs import NO_TEST, Run, RunLike, default_split, directory_of
from seqtrain.runs.run_directory import holds_folds
from seqtrain.runs.saved_predictions import SplitResults, saved_results


def split_results(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: Any = None,
    explain: int = 0,
    device: str = "auto",
) -> SplitResults:
    """Return the predictions of a run for a split or a file.

    If `fit` saved the predictions for a split, and nothing changed since, they are loaded without
    importing torch. With `explain` they are always computed. If validation replaces a missing test
    split, a warning is added.

    For the directory of folds, these are out-of-fold predictions: each row of train is predicted by
    the run that held it out. They have no curves.

    Args:
        run: One run, as `evaluate` takes it, or the directory of folds.
        split: As for `evaluate`.
        data: Labelled data in place of a split: a file, or a table as `fit` takes it; or None.
        explain: Number of the most confident errors whose weights of time steps are computed.
        device: As for `evaluate`.

    Raises:
        CheckpointError, ConfigError, DataError, RunError: If `evaluate` would raise it.
    """
    directory = directory_of(run)
    chosen = split or (default_split(directory.path) if data is None else None)
    if data is None and split in (None, "validation") and holds_folds(directory.path):
        from seqtrain.api.predictions import predict_folds

        return predict_folds(directory.path, explain=explain, device=device)
    found = None
    if chosen is not None and data is None and not explain:
        found = saved_results(directory, chosen)
    if found is None:
        from seqtrain.api.predictions import predict_split, results_of

        one = directory.path if isinstance(run, Run | str | PathLike | None) else run
        rows = predict_split(one, split=chosen, data=data, explain=explain, device=device)
        found = results_of(rows)
    if chosen == "validation" and split is None:
        return replace(found, warnings=[NO_TEST, *found.warnings])
    return found
