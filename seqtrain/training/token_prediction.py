"""Pretraining without labels: the prediction of tokens by a language model or an autoencoder."""

import numpy as np
import torch
from torch import Tensor

from seqtrain.config.schema import Config
from seqtrain.data.batch import Batch, map_batches
from seqtrain.data.plan import plan_in_order_of_length
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.evaluation.logits import EVALUATION_BATCHING
from seqtrain.evaluation.scores import Scores
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.randomness import RandomNumbers
from seqtrain.training.distributed import SINGLE, Processes
from seqtrain.training.objectives import Losses, Objective
from seqtrain.training.state import check_tensors

OWN = "pretraining."
"""Before the name of a captured tensor of the model that isn't the classifier's."""


class TokenPrediction(Objective):
    """The objective of pretraining the encoder with a language model or an autoencoder.

    Learning rate and epochs are those of the section pretraining, all else that of training.
    """

    phase = "pretraining"
    key = "pretraining"
    lower = "pretraining.max_length, batching.batch_size or model.hidden_size"

    def __init__(
        self,
        model: PretrainingModel,
        store: SequenceStore,
        validation: SequenceStore | None,
        config: Config,
        device: torch.device,
        processes: Processes = SINGLE,
    ) -> None:
        own = config.pretraining
        settings = config.training.model_copy(
            update={
                "lr": own.lr,
                "max_epochs": own.max_epochs,
                "patience": None,
                "augment": None,
            }
        )
        store = shortened(store, own.max_length)
        validation = None if validation is None else shortened(validation, own.max_length)
        super().__init__(model, store, validation, config, settings, device, processes)
        self.predictor = model

    def freezes_embedding(self, epoch: int) -> bool:
        """Return True if token vectors don't learn, as vectors of a file with model.freeze."""
        model = self.config.model
        return bool(model.freeze and model.vectors)

    def losses(self, batch: Batch, random: RandomNumbers) -> Losses:
        """Return the loss of each prediction; none of them counts as a label."""
        each: Tensor = self.predictor(batch, random)
        return Losses(each, each.new_zeros(()))

    @torch.no_grad()
    def score(self) -> tuple[float | None, Scores | None]:
        """Return the mean loss over all predictions of the validation split."""
        if self.validation is None:
            return None, None
        self.model.eval()
        sums = torch.zeros(2, dtype=torch.float64, device="cpu")
        plan = plan_in_order_of_length(self.validation.lengths, EVALUATION_BATCHING)
        for _, losses in map_batches(
            self.predictor,
            self.validation,
            self.processes.share(plan),
            self.device,
            lower=self.lower,
            before_batch=self.processes.raise_if_stopped,
        ):
            sums += torch.tensor(
                [float(losses.sum()), len(losses)], dtype=torch.float64, device="cpu"
            )
        total, count = self.processes.sum(sums)[0].tolist()
        return total / count, None

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights that aren't the classifier's."""
        return {OWN + name: tensor for name, tensor in self.predictor.own_state().items()}

    def load(self, tensors: dict[str, Tensor], learned: Ints) -> None:
        """Restore the weights that aren't the classifier's."""
        own = self.tensors()
        found = {name: tensors[name] for name in tensors if name.startswith(OWN)}
        check_tensors(found, own)
        for name, tensor in own.items():
            tensor.copy_(found[name])


def shortened(store: SequenceStore, steps: int | None) -> SequenceStore:
    """Cut each sequence into parts of about equal length, at most `steps` time steps (or None)."""
    if steps is None:
        return store
    pieces = -(-store.lengths // steps)
    row = np.arange(len(store)).repeat(pieces)
    number = np.arange(len(row)) - (pieces.cumsum() - pieces)[row]
    starts = store.offsets[row] + number * store.lengths[row] // pieces[row]
    offsets = np.append(starts, store.offsets[-1])
    return SequenceStore(
        store.values,
        offsets,
        store.labels[row],
        store.lines[row],
        files=store.files,
        spellings=store.spellings,
        words=store.words,
    )
