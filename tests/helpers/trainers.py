"""Trainers of given networks on given stores."""

import torch

from seqtrain.config.schema import Config
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.labels import LabelSet
from seqtrain.sequences.store import SequenceStore
from seqtrain.training.trainer import Trainer
from tests.helpers.small_models import make_model


def trainer_of(
    config: Config,
    network: ClassifierNetwork,
    labels: tuple[str, ...],
    train: SequenceStore,
    validation: SequenceStore | None = None,
    *,
    unlabelled: SequenceStore | None = None,
    device: torch.device | None = None,
) -> Trainer:
    """Return a trainer that begins with the weights of a network."""
    preprocessing = make_model("tokens", {"label_set": LabelSet(labels)}).preprocessing
    splits = {"train": train}
    if validation is not None:
        splits["validation"] = validation
    data = PreparedData(splits, preprocessing, {}, {}, unlabelled=unlabelled)
    return Trainer(config, data, device or torch.device("cpu"), network=network)
