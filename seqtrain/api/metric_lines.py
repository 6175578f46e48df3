"""What a line of metrics.jsonl holds, of each kind of event."""

from __future__ import annotations

from typing import Any

from seqtrain.evaluation.metrics import OF_AN_EPOCH
from seqtrain.training.events import EpochEvent, UpdateEvent, perplexity


def update_line(event: UpdateEvent) -> dict[str, Any]:
    """Return the "step" line of metrics.jsonl."""
    return {
        "event": "step",
        "epoch": event.epoch,
        "step": event.update,
        "loss": event.loss,
        "lr": event.lr,
    }


def pretraining_line(event: EpochEvent) -> dict[str, Any]:
    """Return the "pretrain" line of metrics.jsonl."""
    loss = event.validation_loss
    return {
        "event": "pretrain",
        "epoch": event.epoch,
        "step": event.update,
        "loss": event.loss,
        "perplexity": perplexity(event.loss),
        "validation": None if loss is None else {"loss": loss, "perplexity": perplexity(loss)},
        **_speed(event),
    }


def epoch_line(event: EpochEvent) -> dict[str, Any]:
    """Return the "epoch" line of metrics.jsonl."""
    scores = event.validation
    return {
        "event": "refit" if event.refit else "epoch",
        "epoch": event.epoch,
        "step": event.update,
        "train": {"loss": event.loss, "accuracy": event.accuracy},
        "validation": None if scores is None else scores.figures(OF_AN_EPOCH),
        **_speed(event),
        "padding_fraction": event.padding_fraction,
        "best": event.is_best,
    }


def _speed(event: EpochEvent) -> dict[str, Any]:
    return {
        "lr": event.lr,
        "seconds": event.seconds,
        "tokens": event.time_steps,
        "tokens_per_second": event.time_steps / event.seconds,
    }
