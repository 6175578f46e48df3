"""Pretraining without labels: the prediction of tokens by a language model or an autoencoder."""

import numpy as np
import torch
from torch import Tensor

from seqtrain.config.schema import Config
from seqtrain.evaluation.logits import EVALUATION_BATCHING
from seqtrain.evaluation.scores import Scores
from seqtrain.model.decoder import PretrainingModel
from seqtrain.model.randomness import RandomNumbers
from seqtrain.sequences.batch import Batch, map_batches
from seqtrain.sequences.plan import plan_in_order_of_length
from seqtrain.sequences.store import Ints, SequenceStore
from seqtrain.training.distributed import SINGLE, Processes
from seqtrain.training.objectives import Losses, Objective
from seqtrain.training.state import check_tensors

PREFIX = "pretraining."
"""Prefix of the names of saved weights that the classifier doesn't have, such as a decoder's."""


class TokenPrediction(Objective):
    """Objective that pretrains the encoder by a language model or an autoencoder.

    The section pretraining of the config has the learning rate, the number of epochs and the
    length of sequences. The section training has all other settings, but there is no early stopping
    and no augmentation.

    Args:
        model: Encoder of the classifier, and the decoder or head that predicts tokens.
        store: Sequences to learn from. Labels aren't used.
        validation: Validation split, or None.
        config: The config.
        device: Device that computes.
        processes: Processes that train together.
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
        store = split_sequences(store, own.max_length)
        validation = None if validation is None else split_sequences(validation, own.max_length)
        super().__init__(model, store, validation, config, settings, device, processes)
        self.predictor = model

    def freezes_embedding(self, epoch: int) -> bool:
        """Return True if model.vectors names a file and model.freeze is set, in any epoch."""
        model = self.config.model
        return bool(model.freeze and model.vectors)

    def losses(self, batch: Batch, random: RandomNumbers) -> Losses:
        """Return the loss of each predicted token. Correct predictions aren't counted."""
        each: Tensor = self.predictor(batch, random)
        return Losses(each, each.new_zeros(()))

    @torch.no_grad()
    def score(self) -> tuple[float | None, Scores | None]:
        """Return the mean loss per predicted token on validation in nats, and None for the scores.

        Without validation, the loss is also None. All processes must call this function together.
        """
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
        """Return the weights that the classifier doesn't have, by name with `PREFIX`.

        They aren't copies: a change of a tensor changes the model.
        """
        return {PREFIX + name: tensor for name, tensor in self.predictor.own_state().items()}

    def load(self, tensors: dict[str, Tensor], learned: Ints) -> None:
        """Restore the weights that `tensors` returned.

        Args:
            tensors: Saved tensors by name. Names without `PREFIX` are ignored.
            learned: Not used.

        Raises:
            ValueError: If weights are missing or unknown, have another shape or type, or aren't
                finite.
        """
        own = self.tensors()
        found = {name: tensors[name] for name in tensors if name.startswith(PREFIX)}
        check_tensors(found, own)
        for name, tensor in own.items():
            tensor.copy_(found[name])


def split_sequences(store: SequenceStore, steps: int | None) -> SequenceStore:
    """Return a store in which long sequences are split into shorter ones of about equal length.

    Each piece has the label and the line number of its sequence. The time steps aren't copied.

    Args:
        store: The sequences.
        steps: Largest number of time steps of a sequence, or None to return `store` itself.
    """
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
