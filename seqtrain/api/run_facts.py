"""What a report shows of a run: its files, and its predictions for one split."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from seqtrain.api.events import RunLike, path_of
from seqtrain.api.labelled import learned_rows
from seqtrain.api.predictions import predict_split
from seqtrain.config import render_config
from seqtrain.files.strict_json import number_at
from seqtrain.report import RunFacts, model_card
from seqtrain.runs.finding import find
from seqtrain.text import shorten

TEXT = 400
"""Characters of a sequence that the report shows at most."""


def run_facts(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: str | None = None,
    steps: bool = False,
    device: str = "auto",
) -> RunFacts:
    """Gather what a report shows of a run; takes and raises as `evaluate`.

    Raises:
        CheckpointError: it is a model folder alone.
    """
    directory = find(path_of(run))
    config, environment = directory.config(), directory.environment()
    epochs = [e for e in directory.metrics("epoch") if number_at(e, "epoch") is not None]
    shown = predict_split(directory.path, split=split, data=data, steps=steps, device=device)
    found, scores = shown.found, shown.scores
    learned = learned_rows(config, found.split)
    weights = sum(weight.numel() for weight in found.classifier.network.parameters())
    return RunFacts(
        name=directory.path.name or str(directory.path),
        config=render_config(config),
        environment=environment,
        epochs=epochs,
        card=model_card(directory, config, epochs, scores.labels, found.source, weights),
        split=(found.split or Path(found.source).name) + (learned and f", trained on {learned}"),
        scores=asdict(scores),
        prefixes=shown.by_share or [],
        predictions=[replace(row, text=shorten(row.text, TEXT)) for row in shown.rows],
        warnings=found.warnings,
    )
