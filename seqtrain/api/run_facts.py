"""What a report shows of a run: its files, and its answers on one split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import Any

from seqtrain.api.events import RunLike, path_of
from seqtrain.api.labelled import learned_rows
from seqtrain.api.predictions import SplitPredictions, predict_split
from seqtrain.config import Config, ModelConfig, render_config
from seqtrain.data.sources import named_text
from seqtrain.files.strict_json import number_at
from seqtrain.report import RunFacts
from seqtrain.runs.finding import find
from seqtrain.runs.overview import summarize_run
from seqtrain.runs.run_directory import CONFIG, RunDirectory
from seqtrain.text import counted, listed, shorten

TEXT = 400
"""Characters of a sequence that the report shows at most."""
LABELS = 12
"""Labels that the model card names at most."""


def run_facts(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: str | None = None,
    steps: bool = False,
    device: str = "auto",
) -> RunFacts:
    """Gather what a report shows of a run.

    Args:
        run: a run directory, or what `fit` returned; None: the newest run.
        split: test, validation or train, as the run's config names them; None: test, or validation
            where there is no test.
        data: a labelled file in its place.
        steps: score also what the model would answer earlier in each sequence.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError, ConfigError, DataError: as for `evaluate`; or it is a model folder alone.
        RunError: memory ran out.
    """
    directory = find(path_of(run))
    config, environment = directory.config(), directory.environment()
    epochs = directory.metrics("epoch")
    found = predict_split(directory.path, split=split, data=data, steps=steps, device=device)
    learned = learned_rows(config, found.split)
    return RunFacts(
        name=directory.path.name or str(directory.path),
        config=render_config(config),
        environment=environment,
        epochs=[epoch for epoch in epochs if number_at(epoch, "epoch") is not None],
        card=_card(directory, config, environment, epochs, found),
        split=(found.split or Path(found.data).name) + (learned and f", trained on {learned}"),
        scores=asdict(found.scores),
        prefixes=found.by_share or [],
        predictions=[replace(row, text=shorten(row.text, TEXT)) for row in found.rows],
        warnings=found.warnings,
    )


def _card(
    run: RunDirectory,
    config: Config,
    environment: dict[str, Any],
    epochs: list[dict[str, Any]],
    found: SplitPredictions,
) -> dict[str, str]:
    """Name what was trained on what, how, and with what."""
    data, labels = config.data, found.scores.labels
    summary = summarize_run(run)
    best = "-" if summary.best_epoch is None else summary.best_epoch
    anew = ", then anew on train and validation (training.refit)" if summary.refit else ""
    tokens = number_at(epochs[0], "tokens") if epochs else None
    card = {
        "trained on": named_text(data.train) + (f", {tokens:,.0f} time steps" if tokens else ""),
        "validated on": _validation(data.validation),
        "scored on": found.data,
        "labels": f"{len(labels)}: {listed([shorten(name, 40) for name in labels], LABELS)}",
        "sequences": data.kind + (f", tokenizer {data.tokenizer}" if data.kind == "text" else ""),
        "model": f"{_branches(config.model)}; {found.parameters:,} parameters",
        "epochs": f"best {best} of {summary.epochs}{anew}",
        "time": f"{summary.seconds:,.1f} s on {environment.get('device', 'an unknown device')}",
        "versions": ", ".join(
            f"{name} {environment[name]}"
            for name in ("seqtrain", "torch", "python")
            if name in environment
        ),
        "repeat with": f"seqtrain fit {quote(str(run.path / CONFIG))}",
    }
    return {name: shorten(value, TEXT) for name, value in card.items()}


def _branches(model: ModelConfig) -> str:
    """Name every branch of a model that has weights."""
    direction = "in both directions" if model.bidirectional else "in one direction"
    pooling = [model.pooling] if isinstance(model.pooling, str) else model.pooling
    branches = [
        f"{model.rnn}, {counted(model.num_layers, 'layer')} of {model.hidden_size}, {direction}, "
        f"pooling {', '.join(pooling)}"
    ]
    if model.subwords:
        branches.append("subwords of {} to {} characters".format(*model.subwords))
    if model.convolutions:
        sizes = (f"{channels} of {kernel} steps" for channels, kernel, _ in model.convolutions)
        branches.append(f"convolutions: {', '.join(sizes)}")
    if model.ngrams:
        branches.append("n-grams of {} to {} tokens".format(*model.ngrams))
    return "; ".join(branches)


def _validation(validation: str | list[str] | float | Mapping[Any, int] | None) -> str:
    if isinstance(validation, Mapping):
        return f"part {validation['fold']} of {validation['of']} of it, held out"
    if isinstance(validation, float):
        return f"{validation:.0%} of it, held out"
    return named_text(validation) if validation else "nothing"
