"""Pretraining within `fit`: config and data → trainer, and its line of metrics.jsonl."""

from __future__ import annotations

from typing import Any

import torch

from seqtrain.config.schema import Config
from seqtrain.data.preparation import PreparedData
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.decoder import OBJECTIVES
from seqtrain.training.pretraining import PretrainEpochEvent, Pretrainer, perplexity


def make_pretrainer(
    classifier: SequenceClassifier, data: PreparedData, config: Config, device: torch.device
) -> Pretrainer:
    """Return what trains the classifier's own embedding and encoder, so that it starts from them.

    Args:
        classifier: on the device.
        data: with unlabelled sequences.
        config: with an objective.
        device: where to compute.
    """
    assert data.unlabelled is not None, "read where the config has an objective"
    assert config.pretraining.objective is not None
    model = OBJECTIVES[config.pretraining.objective](classifier, config.pretraining.dropout)
    model.initialize(config.seed)
    model.to(device)
    return Pretrainer(model, data.unlabelled, data.splits.get("validation"), config, device)


def pretrain_line(event: PretrainEpochEvent) -> dict[str, Any]:
    """Return the "pretrain" line of metrics.jsonl."""
    return {
        "event": "pretrain",
        "epoch": event.epoch,
        "step": event.step,
        "loss": event.loss,
        "perplexity": perplexity(event.loss),
        "validation": None
        if event.validation_loss is None
        else {"loss": event.validation_loss, "perplexity": perplexity(event.validation_loss)},
        "lr": event.lr,
        "seconds": event.seconds,
        "tokens": event.tokens,
        "tokens_per_second": event.tokens / event.seconds,
    }
