"""Optimizers, and the learning rate as a pure function of the step."""

from __future__ import annotations

import math

import torch
from torch import nn

from seqtrain.config.schema import TrainingConfig
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.decoder import PretrainingModel

SGD_MOMENTUM = 0.9
PLATEAU_FACTOR = 0.5


def make_optimizer(
    model: SequenceClassifier | PretrainingModel, config: TrainingConfig
) -> torch.optim.Optimizer:
    """Return the optimizer of a config; weight decay falls on matrices alone.

    It spares biases and the learned initial state.

    Args:
        model: on its device; its embedding is told whether its gradients are to be sparse.
        config: the config's training section.
    """
    if isinstance(model.embedding, nn.Embedding):
        on_mps = model.embedding.weight.device.type == "mps"  # torch has no sparse tensors there
        model.embedding.sparse = config.sparse_embedding and not on_mps
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    parameters = [*named.values()]
    matrices = [p for name, p in named.items() if p.ndim > 1 and not name.endswith("initial_state")]
    others = [p for name, p in named.items() if p.ndim <= 1 or name.endswith("initial_state")]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    fused = all(p.device.type in ("cpu", "cuda") for p in parameters)
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.lr, momentum=SGD_MOMENTUM, fused=fused)
    update = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return update(groups, lr=config.lr, fused=fused)


def lr_at(step: int, total_steps: int, config: TrainingConfig, plateaus: int = 0) -> float:
    """Return the learning rate of one update.

    Args:
        step: updates made before this one.
        total_steps: updates of all epochs; later ones (batches by tokens may be more in a later
            epoch) have the last rate.
        config: lr, schedule and warmup.
        plateaus: epochs so far that brought no better monitored value (schedule plateau).
    """
    warmup_steps = round(config.warmup * total_steps)
    if step < warmup_steps:
        return config.lr * (step + 1) / warmup_steps
    progress = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))
    factor = {
        "constant": 1.0,
        "linear": 1.0 - progress,
        "cosine": 0.5 * (1.0 + math.cos(math.pi * progress)),
        "plateau": PLATEAU_FACTOR**plateaus,
    }[config.schedule]
    return config.lr * factor
