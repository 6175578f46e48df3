"""What is learned before labels are: tokens, by a language model or an autoencoder."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from seqtrain.config.schema import Config
from seqtrain.data.batch import Batch, collate, map_batches
from seqtrain.data.plan import plan_in_order_of_length
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.evaluation.logits import EVALUATION_BATCHING
from seqtrain.evaluation.metrics import Scores
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.randomness import RandomNumbers
from seqtrain.processes.group import ALONE, Group
from seqtrain.training.objectives import Losses
from seqtrain.training.state import check_tensor

OWN = "pretraining."
"""Before the name of a captured tensor of the model that isn't the classifier's."""


class TokenPrediction:
    """A language model or an autoencoder learns sequences without labels, and so the encoder.

    Args:
        model: on the device.
        store: what to learn from; labels and groups aren't looked at.
        validation: what to score after each epoch, or None.
        config: the whole config; optimizer, schedule, clipping and batches are those of training,
            learning rate and epochs those of the section pretraining.
        device: where to compute.
        group: the processes that train together.
    """

    pretraining = True
    refit = False
    key = "pretraining"
    lower = "pretraining.max_length, batching.batch_size or model.hidden_size"

    def __init__(
        self,
        model: PretrainingModel,
        store: SequenceStore,
        validation: SequenceStore | None,
        config: Config,
        device: torch.device,
        group: Group = ALONE,
    ) -> None:
        settings = config.pretraining
        self.group = group
        self.model: SequenceClassifier | PretrainingModel = model
        self.predictor = model
        self.store = shortened(store, settings.max_length)
        self.validation = None if validation is None else shortened(validation, settings.max_length)
        self.config = config
        self.settings = config.training.model_copy(
            update={"lr": settings.lr, "max_epochs": settings.max_epochs, "patience": None}
        )
        self.device = device
        self.groups: Ints | None = None

    def collate(self, rows: SequenceStore, epoch: int, number: int) -> Batch:
        """Put the sequences of a batch together."""
        return collate(rows)

    def losses(self, batch: Batch, random: RandomNumbers) -> Losses:
        """Return the loss of each prediction; none of them counts as an answer."""
        each: Tensor = self.predictor(batch.packed, random)
        return Losses(each, each.new_zeros(()))

    @torch.no_grad()
    def score(self, before_batch: Callable[[], None]) -> tuple[float | None, Scores | None]:
        """Return the mean loss over all predictions of the validation split."""
        if self.validation is None:
            return None, None
        self.model.eval()
        total, count, group = 0.0, 0, self.group
        plan = plan_in_order_of_length(self.validation.lengths, EVALUATION_BATCHING)
        for _, losses in map_batches(
            lambda batch: self.predictor(batch.packed),
            self.validation,
            plan[group.rank :: group.size],
            self.device,
            lower=self.lower,
            before_batch=before_batch,
        ):
            total, count = total + float(losses.sum()), count + len(losses)
        told = [total, count, *group.asked_to_stop()]
        sums = torch.tensor(told, dtype=torch.float64, device="cpu")
        total, count, *came = group.sum(sums.to(self.device)).tolist()
        group.heed(came)
        return total / count, None

    def monitored(self, loss: float, accuracy: float, scores: Scores | None) -> float | None:
        """Return None: the last epoch is taken."""
        return None

    def suspects(self, batch: Batch, losses: Tensor) -> Ints:
        """Return the examples of the whole batch: losses are of tokens."""
        return batch.examples

    def share_carried(self, batch: Batch, rows: Tensor) -> None:
        """Nothing is carried."""

    def begin_epoch(self) -> None:
        """Nothing is carried."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights that aren't the classifier's."""
        return {OWN + name: tensor for name, tensor in self.predictor.own_state().items()}

    def load(self, tensors: dict[str, Tensor], learned: Ints) -> None:
        """Put back the weights that aren't the classifier's."""
        for name, tensor in self.tensors().items():
            if name not in tensors:
                raise ValueError(f"{name}: missing")
            check_tensor(name, tensors[name], tensor.shape, tensor.dtype)
            tensor.copy_(tensors[name])


def shortened(store: SequenceStore, steps: int | None) -> SequenceStore:
    """Cut each sequence into sequences of at most `steps` time steps, about equally long.

    None: as they are.
    """
    if steps is None:
        return store
    parts = -(-store.lengths // steps)
    row = np.arange(len(store)).repeat(parts)
    number = np.arange(len(row)) - (parts.cumsum() - parts)[row]
    starts = store.offsets[row] + number * store.lengths[row] // parts[row]
    offsets = np.append(starts, store.offsets[-1])
    return SequenceStore(
        store.values, offsets, store.labels[row], store.lines[row], files=store.files
    )
