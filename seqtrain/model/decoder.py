"""What an encoder learns to predict from sequences without labels, before it learns to classify.

Autoencoder (Dai & Le 2015, arXiv:1511.01432): a decoder unrolls from the encoder's last valid state
and predicts the sequence, token by token. Language model: the encoder itself predicts from each
state the next token of its direction; backward, that is the token before (Peters et al. 2018,
arXiv:1802.05365). Nothing is computed on padding. END is predicted where a sequence is over.

B batch, N steps of all sequences, S tensors of a state, D directions, H hidden size, W width of the
states that predict, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.data.vocabulary import PAD
from seqtrain.model.cells import CELLS
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.model.engines.interface import Between, DistinctInputs
from seqtrain.model.initialization import draw_as_torch, undrawn
from seqtrain.model.inputs import embed
from seqtrain.model.packing import rows_and_steps
from seqtrain.model.randomness import Purpose, RandomNumbers, number

END = PAD
"""What follows the last token (backward: the first). Padding is none, so its id is free."""
FREQUENT = 100
"""Ids go by frequency: the first ones are scored at every step, rarer ones by group when due."""
LARGEST_GROUP = 2000
"""Each group doubles the ids so far, but for this: the scores of a larger one take most time."""
SHRINKING = 1.15
"""Each group of a wide state is scored in so many times fewer dimensions than the one before."""
SMALLEST = 8
"""Dimensions that the last group is scored in at least: where there are many, they shrink less."""
WIDE = 64
"""Width from which on a state is wide."""


class PretrainingModel(nn.Module):
    """A classifier's embedding and encoder, and what predicts tokens from states of width W.

    `dropout` is a fraction of embedded units, and of the states that predict.
    """

    def __init__(self, classifier: ClassifierNetwork, width: int, dropout: float) -> None:
        super().__init__()
        self.classifier = classifier
        self.dropout = dropout
        with undrawn():
            self.softmax = token_softmax(width, classifier.input_size)

    def initialize(self, seed: int) -> None:
        """Draw the initial weights of what isn't the classifier's, on the CPU."""
        generator = torch.Generator("cpu").manual_seed(number(seed, Purpose.PRETRAINING))
        for name, module in self.named_children():
            if name != "classifier":
                draw_as_torch(module, generator)

    @property
    def embedding(self) -> nn.Embedding:
        """The classifier's."""
        embedding = self.classifier.embedding
        assert isinstance(embedding, nn.Embedding), "tokens are predicted"
        return embedding

    def _own(self, random: RandomNumbers | None) -> RandomNumbers | None:
        self.classifier.check_random(random, self.dropout)
        return None if random is None else random.at(Purpose.PRETRAINING)

    def _embed(self, packed: PackedSequence, random: RandomNumbers | None = None) -> DistinctInputs:
        return embed(self.embedding, packed, self.dropout, random)

    def _read(self, inputs: DistinctInputs, random: RandomNumbers | None) -> tuple[Tensor, Tensor]:
        model, sizes = self.classifier, inputs.batch_sizes
        start = model.start(int(sizes[0]), random)
        between = model.dropout_between_layers(random, sizes)
        return self._run(model.encoder, inputs, start, between)

    def _run(
        self,
        rnn: nn.RNNBase,
        inputs: DistinctInputs,
        start: Tensor | None,
        between: Between | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Run a recurrence, over packed sequences whatever model.unroll says."""
        engine = self.classifier.computed_by(unroll="packed").engine
        states, last = engine.run(rnn, inputs, start, between=between)
        assert states is not None, "they were asked for"
        return states, last

    def _losses(self, states: Tensor, tokens: Tensor) -> Tensor:
        with torch.autocast(states.device.type, enabled=False):  # torch's softmax mixes types
            losses: Tensor = -self.softmax(states.to(self.softmax.head.weight), tokens).output
        return losses.float()

    def own_state(self) -> dict[str, Tensor]:
        """Return the tensors of `state_dict` that aren't the classifier's."""
        tensors = self.state_dict()
        return {name: t for name, t in tensors.items() if not name.startswith("classifier.")}


class LanguageModel(PretrainingModel):
    """Predicts the next token from each state of the encoder; backward, the token before.

    A bidirectional classifier has one layer: a second would see what the other direction has read.
    """

    def __init__(self, classifier: ClassifierNetwork, dropout: float) -> None:
        super().__init__(classifier, classifier.config.hidden_size, dropout)

    def forward(self, packed: PackedSequence, random: RandomNumbers | None = None) -> Tensor:
        """Return the loss of each prediction in nats; without random numbers there is no dropout.

        Shape:
            packed.data: (N,) int64. Returns: (D * N,), direction by direction, packed.

        Raises:
            ValueError: random numbers are missing in training.
        """
        own, sizes = self._own(random), packed.batch_sizes
        states, _ = self._read(self._embed(packed, own), own)
        if own is not None:
            states = own.drop_steps(states, self.dropout, Purpose.HEAD, sizes)
        following, preceding = neighbours(packed)
        tokens = following[int(sizes[0]) :]
        if self.classifier.config.bidirectional:
            states = torch.cat(states.chunk(2, dim=1))
            tokens = torch.cat((tokens, preceding))
        return self._losses(states, tokens)


class Autoencoder(PretrainingModel):
    """Predicts the sequence that the encoder has read, from its last valid state alone.

    The decoder is one layer of the encoder's cell, as wide as the top layer's directions together,
    and shares the embedding.
    """

    def __init__(self, classifier: ClassifierNetwork, dropout: float) -> None:
        config = classifier.config
        directions = 2 if config.bidirectional else 1
        width = directions * config.hidden_size
        super().__init__(classifier, width, dropout)
        self._directions = directions
        with undrawn():
            self.decoder = CELLS[config.rnn].module(config.width, width, batch_first=True)

    def forward(self, packed: PackedSequence, random: RandomNumbers | None = None) -> Tensor:
        """Return the loss of each prediction in nats; the decoder is fed the true tokens.

        Shape:
            packed.data: (N,) int64. Returns: (B + N,): of the first tokens, then of what follows
            each step, packed.
        """
        own = self._own(random)
        inputs = self._embed(packed, own)
        start = self._start(inputs, own)
        states, _ = self._run(self.decoder, inputs, start)
        first = start[0, 0]
        if own is not None:
            first = own.drop(first, self.dropout, Purpose.FIRST_TOKEN, own.examples)
            states = own.drop_steps(states, self.dropout, Purpose.HEAD, packed.batch_sizes)
        return self._losses(torch.cat((first, states)), neighbours(packed)[0])

    @torch.no_grad()
    def reconstruct(self, packed: PackedSequence, steps: int) -> list[list[int]]:
        """Unroll the decoder freely until END, or so many steps; return ids, row by packed row."""
        state = self._start(self._embed(packed))
        found: list[list[int]] = [[] for _ in range(state.shape[2])]
        rows = torch.arange(len(found), dtype=torch.int64, device="cpu")
        for _ in range(steps):
            ids = self.softmax.predict(state[0, 0])
            going = ids != END
            ids, state, rows = ids[going], state[:, :, going], rows[going.cpu()]
            if not len(rows):
                break
            for row, token in zip(rows.tolist(), ids.tolist(), strict=True):
                found[row].append(token)
            step = PackedSequence(ids, torch.tensor([len(rows)], dtype=torch.int64, device="cpu"))
            _, state = self._run(self.decoder, self._embed(step), state)
        return found

    def _start(self, inputs: DistinctInputs, random: RandomNumbers | None = None) -> Tensor:
        _, last = self._read(inputs, random)
        return torch.cat(last[:, -self._directions :].unbind(1), dim=-1).unsqueeze(1)


def neighbours(packed: PackedSequence) -> tuple[Tensor, Tensor]:
    """Return the token after each step, beginnings first (B + N,), and the one before it (N,).

    END stands where there is none.
    """
    sizes, ids = packed.batch_sizes, packed.data
    first = int(sizes[0])
    # One step earlier than each sequence begins, there is room for its beginning.
    starts = torch.cat((sizes.new_tensor([0, first]), first + sizes.cumsum(0)[:-1]))
    row, step = rows_and_steps(sizes)
    before = (starts[step] + row).to(ids.device)
    beginnings = ids.new_full((first,), END)
    following = ids.new_full((first + len(ids),), END)
    following[before] = ids
    return following, torch.cat((beginnings, ids))[before]


def token_softmax(width: int, vocab_size: int) -> nn.AdaptiveLogSoftmaxWithLoss:
    """Return a softmax over the vocabulary that costs what the frequent tokens cost, nearly.

    Reference:
        Grave et al. 2017, "Efficient softmax approximation for GPUs", arXiv:1609.04309.
    """
    cutoffs = [min(FREQUENT, vocab_size - 1)]
    while (following := cutoffs[-1] + min(cutoffs[-1], LARGEST_GROUP)) < vocab_size:
        cutoffs.append(following)
    shrinking = min(SHRINKING, (width / SMALLEST) ** (1 / len(cutoffs))) if width >= WIDE else 1.0
    return nn.AdaptiveLogSoftmaxWithLoss(width, vocab_size, cutoffs, div_value=shrinking)


OBJECTIVES: dict[str, Callable[[ClassifierNetwork, float], PretrainingModel]] = {
    "language_model": LanguageModel,
    "autoencoder": Autoencoder,
}
"""By the name that pretraining.objective has."""
