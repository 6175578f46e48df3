"""Predictions of a run for a split: those that `fit` saved, or new ones of the model."""

from dataclasses import replace

from seqtrain.api.named_runs import NO_TEST, RunLike, default_split, directory_of
from seqtrain.runs.saved_predictions import SplitResults, saved_results


def split_results(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: str | None = None,
    explain: int = 0,
    device: str = "auto",
) -> SplitResults:
    """Return the predictions of a run for a split or a file.

    If `fit` saved them, and nothing changed since, torch isn't imported. The most confident errors,
    `explain` of them, get the weights of their time steps. The other arguments and the errors are
    those of `evaluate`.
    """
    directory = directory_of(run)
    chosen = split or (default_split(directory.path) if data is None else None)
    found = None
    if chosen is not None and data is None and not explain:
        found = saved_results(directory, chosen)
    if found is None:
        from seqtrain.api.predictions import predict_split, results_of

        rows = predict_split(
            directory.path, split=chosen, data=data, explain=explain, device=device
        )
        found = results_of(rows)
    if chosen == "validation" and split is None:
        return replace(found, warnings=[NO_TEST, *found.warnings])
    return found
