"""Pretraining of the encoder on sequences without labels, before it learns to classify.

In an autoencoder (Dai & Le 2015, arXiv:1511.01432), a decoder predicts the sequence token by token,
starting from the encoder's last valid state. A language model predicts the next token from each
state of the encoder. The backward direction predicts the previous token instead (Peters et al.
2018, arXiv:1802.05365). Nothing is computed on padding. END is predicted after the last token, and
in backward direction before the first token.

B sequences, N steps of all sequences, S tensors of a state. D directions, H hidden size, W width of
the states that predict, V vocabulary.
"""

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.engines.cells import CELLS
from seqtrain.engines.choice import choose_engine
from seqtrain.engines.interface import Between, DistinctInputs
from seqtrain.engines.layout import Packed, rows_and_steps
from seqtrain.engines.splitmix64 import number
from seqtrain.model.branches.recurrent import RecurrentBranch, recurrent_branch
from seqtrain.model.initialization import draw_defaults, materialize
from seqtrain.model.inputs import SideInputs
from seqtrain.model.network import ClassifierNetwork
from seqtrain.model.randomness import Purpose, RandomNumbers
from seqtrain.sequences.batch import Batch
from seqtrain.sequences.transfer import to_device
from seqtrain.sequences.vocabulary import PAD

END = PAD
"""Id that is predicted after the last token, or before the first one in backward direction."""
FREQUENT = 100
"""Number of the most frequent ids, which the softmax always scores. Rarer ids form groups."""
LARGEST_GROUP = 2000
"""Largest number of ids in a group. A smaller group has as many ids as all groups before it."""
SHRINKING = 1.15
"""Factor by which the number of dimensions shrinks from group to group, for wide states."""
_SMALLEST = 8
"""Least number of dimensions of the last group."""
WIDE = 64
"""Width from which on a state counts as wide."""


class PretrainingModel(nn.Module):
    """Base of pretraining models: a classifier, and layers that predict tokens from its states.

    Args:
        classifier: the classifier whose recurrent branch is pretrained.
        width: size W of the states that predict.
        dropout: probability that a unit of an embedding or of a predicting state is dropped.
    """

    def __init__(self, classifier: ClassifierNetwork, width: int, dropout: float) -> None:
        super().__init__()
        self.classifier = classifier
        self.dropout = dropout
        with torch.device("meta"):
            self.softmax = token_softmax(width, classifier.input_size).float()

    def initialize(self, seed: int) -> None:
        """Draw the initial weights of the layers that aren't part of the classifier, on the CPU."""
        generator = torch.Generator("cpu").manual_seed(number(seed, Purpose.PRETRAINING))
        for name, module in self.named_children():
            if name != "classifier":
                materialize(module)
                draw_defaults(module, generator)

    @property
    def recurrent(self) -> RecurrentBranch:
        """The recurrent branch of the classifier, which is pretrained."""
        return recurrent_branch(self.classifier)

    def own_state(self) -> dict[str, Tensor]:
        """Return the state dict without the tensors of the classifier.

        It has the tensors of the softmax, and of the decoder if the model is an autoencoder.
        """
        tensors = self.state_dict()
        return {name: t for name, t in tensors.items() if not name.startswith("classifier.")}

    def forward(self, batch: Batch, random: RandomNumbers | None = None) -> Tensor:
        """Return the loss of each predicted token in nats, as `predict_tokens` lists them.

        Args:
            batch: packed or padded.
            random: random numbers for dropout and random initial states, or None for evaluation.

        Raises:
            ValueError: If `random` is None and training needs it, for dropout or random initial
                states.
        """
        self.recurrent.check_random(random, self.dropout)
        own = None if random is None else random.at(Purpose.PRETRAINING)
        packed = batch.packed
        layout = Packed.of(packed)
        inputs = self._embed(batch, layout, own)
        states, tokens = self.predict_tokens(packed, inputs, layout, own)
        # Under autocast torch's softmax would mix types.
        with torch.autocast(states.device.type, enabled=False):
            losses: Tensor = -self.softmax(states.to(self.softmax.head.weight), tokens).output
        return losses.float()

    @abstractmethod
    def predict_tokens(
        self,
        packed: PackedSequence,
        inputs: DistinctInputs,
        layout: Packed,
        random: RandomNumbers | None,
    ) -> tuple[Tensor, Tensor]:
        """Return the states that predict tokens, (P, W), and these tokens, (P,).

        Args:
            packed: ids of the sequences.
            inputs: their vectors.
            layout: positions of the time steps.
            random: random numbers of pretraining, or None for evaluation.
        """

    def _embed(
        self, batch: Batch, layout: Packed, random: RandomNumbers | None = None
    ) -> DistinctInputs:
        inputs, side = self.recurrent.inputs, SideInputs.of(batch)
        steps, _ = inputs.read_whole(batch.packed.data, layout, side, random)
        return inputs.embed_tokens(steps, layout, side, random, self.dropout)

    def _encode(
        self, inputs: DistinctInputs, layout: Packed, random: RandomNumbers | None
    ) -> tuple[Tensor, Tensor]:
        branch = self.recurrent
        start = branch.start(layout.rows, random)
        if random is None:
            between = None
        else:
            between = branch.dropout_between_layers(random, layout)
        return self._run(branch.encoder, inputs, layout, start, between)

    def _run(
        self,
        rnn: nn.RNNBase,
        inputs: DistinctInputs,
        layout: Packed,
        start: Tensor | None,
        between: Between | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Run a recurrent module over packed sequences. model.unroll is ignored.

        Args:
            rnn: the encoder or the decoder.
            inputs: vectors of the time steps.
            layout: positions of the time steps.
            start: initial states, or None for zeros.
            between: function that is applied to the states between two layers, or None.

        Returns:
            The packed states of all steps, (N, D * H), and the last valid states, (S, L * D, B, H).
        """
        weight = self.recurrent.head.weight
        packed = self.classifier.config.model_copy(update={"unroll": "packed"})
        engine = choose_engine(packed, weight.device, weight.dtype)
        states, last = engine.run(rnn, inputs, layout, start, between=between)
        assert states is not None
        return states, last


class LanguageModel(PretrainingModel):
    """Language model that predicts the next token from each state of the forward direction.

    In a bidirectional classifier, each state of the backward direction predicts the previous token.
    Such a classifier must have a single layer. In a second layer, each direction would read the
    tokens that the other direction must predict.
    """

    def __init__(self, classifier: ClassifierNetwork, dropout: float) -> None:
        super().__init__(classifier, classifier.config.hidden_size, dropout)

    def predict_tokens(
        self,
        packed: PackedSequence,
        inputs: DistinctInputs,
        layout: Packed,
        random: RandomNumbers | None,
    ) -> tuple[Tensor, Tensor]:
        """Return the states of all steps and the tokens after them, (D * N,); see the base class.

        If the classifier is bidirectional, the tokens before each step follow.
        """
        states, _ = self._encode(inputs, layout, random)
        if random is not None:
            states = random.drop_steps(states, self.dropout, Purpose.HEAD, layout)
        following, preceding = neighbours(packed)
        tokens = following[layout.rows :]
        if self.classifier.config.bidirectional:
            states = torch.cat(states.chunk(2, dim=1))
            tokens = torch.cat((tokens, preceding))
        return states, tokens


class Autoencoder(PretrainingModel):
    """Autoencoder that predicts a sequence from the encoder's last valid state.

    The decoder is one layer of the encoder's cell, and shares the embedding. It has as many hidden
    units as all directions of the encoder's top layer together.
    """

    def __init__(self, classifier: ClassifierNetwork, dropout: float) -> None:
        config = classifier.config
        directions = 2 if config.bidirectional else 1
        width = directions * config.hidden_size
        super().__init__(classifier, width, dropout)
        self._directions = directions
        with torch.device("meta"):
            decoder = CELLS[config.rnn].module(config.width, width, batch_first=True)
        self.decoder = decoder.float()

    def predict_tokens(
        self,
        packed: PackedSequence,
        inputs: DistinctInputs,
        layout: Packed,
        random: RandomNumbers | None,
    ) -> tuple[Tensor, Tensor]:
        """Return the decoder's states and the tokens, (B + N,); see the base class.

        The first token of each sequence comes first, then the token after each step. Each token is
        predicted from the encoder's last state and all true tokens before it.
        """
        start = self._start(inputs, layout, random)
        states, _ = self._run(self.decoder, inputs, layout, start)
        first = start[0, 0]
        if random is not None:
            first = random.drop(first, self.dropout, Purpose.FIRST_TOKEN, random.examples)
            states = random.drop_steps(states, self.dropout, Purpose.HEAD, layout)
        return torch.cat((first, states)), neighbours(packed)[0]

    @torch.no_grad()
    def reconstruct(self, batch: Batch, steps: int) -> list[list[int]]:
        """Encode sequences, decode them, and return the predicted ids of each row.

        The decoder reads its own predictions, not the true tokens. A row ends when END is
        predicted. END isn't part of the result.

        Args:
            batch: a packed batch. The result is in the order of its rows.
            steps: largest number of ids per row.
        """
        packed = batch.packed
        layout = Packed.of(packed)
        state = self._start(self._embed(batch, layout), layout)
        found: list[list[int]] = [[] for _ in range(state.shape[2])]
        rows = torch.arange(len(found), dtype=torch.int64, device="cpu")
        inputs = self.recurrent.inputs
        for _ in range(steps):
            ids = self.softmax.predict(state[0, 0])
            unfinished = ids != END
            ids, state, rows = ids[unfinished], state[:, :, unfinished], rows[unfinished.cpu()]
            if not len(rows):
                break
            for row, token in zip(rows.tolist(), ids.tolist(), strict=True):
                found[row].append(token)
            one_step = Packed(torch.tensor([len(rows)], device="cpu"), ids.device)
            vectors = inputs.embed_tokens(ids, one_step, SideInputs(), None)
            _, state = self._run(self.decoder, vectors, one_step, state)
        return found

    def _start(
        self, inputs: DistinctInputs, layout: Packed, random: RandomNumbers | None = None
    ) -> Tensor:
        _, last = self._encode(inputs, layout, random)
        return torch.cat(last[:, -self._directions :].unbind(1), dim=-1).unsqueeze(1)


def neighbours(packed: PackedSequence) -> tuple[Tensor, Tensor]:
    """Return the tokens that a decoder or language model predicts.

    Before the first and after the last step of a sequence, the token is END.

    Args:
        packed: ids of the sequences.

    Returns:
        Two tensors of tokens: the first token of each sequence, then the token after each step,
        (B + N,); and the token before each step, (N,).
    """
    sizes, ids = packed.batch_sizes, packed.data
    first = int(sizes[0])
    # Index of the step before each step. The first B places are the sequences' beginnings.
    starts = torch.cat((sizes.new_tensor([0, first]), first + sizes.cumsum(0)[:-1]))
    row, step = rows_and_steps(sizes)
    before = to_device(starts[step] + row, ids.device)
    beginnings = ids.new_full((first,), END)
    following = ids.new_full((first + len(ids),), END)
    following[before] = ids
    return following, torch.cat((beginnings, ids))[before]


def token_softmax(width: int, vocab_size: int) -> nn.AdaptiveLogSoftmaxWithLoss:
    """Return an adaptive softmax over a vocabulary, which scores rare tokens in groups.

    Ids must be in the order of decreasing frequency. The first `FREQUENT` ids are always scored.
    Rarer ids form groups. To save time in training, a group is scored only for targets in the
    group. With states of at least `WIDE` units, rarer groups also have fewer dimensions.

    Args:
        width: size of the states that predict.
        vocab_size: number of tokens, at least 2.

    Reference:
        Grave et al. 2017, "Efficient softmax approximation for GPUs", arXiv:1609.04309.
    """
    cutoffs = [min(FREQUENT, vocab_size - 1)]
    while (following := cutoffs[-1] + min(cutoffs[-1], LARGEST_GROUP)) < vocab_size:
        cutoffs.append(following)
    if width >= WIDE:
        shrinking = min(SHRINKING, (width / _SMALLEST) ** (1 / len(cutoffs)))
    else:
        shrinking = 1.0
    return nn.AdaptiveLogSoftmaxWithLoss(width, vocab_size, cutoffs, div_value=shrinking)


OBJECTIVES: dict[str, Callable[[ClassifierNetwork, float], PretrainingModel]] = {
    "language_model": LanguageModel,
    "autoencoder": Autoencoder,
}
"""Maps each value of pretraining.objective to its class, which takes classifier and dropout."""
