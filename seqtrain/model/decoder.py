"""What an encoder learns to predict from sequences without labels, before it learns to classify.

Autoencoder (Dai & Le 2015, arXiv:1511.01432): the encoder reads a sequence, and a decoder unrolls
from its last valid state and predicts the sequence, token by token. Language model: the encoder
itself predicts from each state the next token of its direction; the backward direction reads from
the end, so its next token is the one before (Peters et al. 2018, arXiv:1802.05365).

Both work on packed steps: nothing is computed on padding. The first token is predicted from the
encoder's state, so no token stands for the beginning; END is the answer where a sequence is over.

Legend of shapes: B batch, N steps of all sequences, P parts of a state,
D directions, H hidden size, W width of the states that predict, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.data.vocabulary import PAD
from seqtrain.model.building import draw_again, undrawn
from seqtrain.model.cells import CELLS
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.encoder import embed
from seqtrain.model.engines.interface import Between, DistinctInputs, Engine
from seqtrain.model.packing import rows_and_steps
from seqtrain.model.randomness import Noise, PackedNoise, Site, number

END = PAD
"""Answer after the last token (backward: after the first). Padding is none, so its id is free."""
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
    """A classifier's embedding and encoder, and what predicts tokens from states.

    A new one has weights of any content beside the classifier's: `initialize` it, or load them.

    Args:
        classifier: whose embedding and encoder learn.
        width: W.
        dropout: fraction of embedded units, and of the states that predict, dropped in training.
    """

    def __init__(self, classifier: SequenceClassifier, width: int, dropout: float) -> None:
        super().__init__()
        self.classifier = classifier
        self.dropout = dropout
        with undrawn():
            self.softmax = token_softmax(width, classifier.input_size)

    def initialize(self, seed: int) -> None:
        """Draw the initial weights of what isn't the classifier's, on the CPU."""
        generator = torch.Generator("cpu").manual_seed(number(seed, Site.PRETRAINING))
        for name, part in self.named_children():
            if name != "classifier":
                draw_again(part, generator)

    @property
    def embedding(self) -> nn.Module:
        """The classifier's."""
        return self.classifier.embedding

    @property
    def engine(self) -> Engine:
        """The classifier's, over packed sequences whatever model.unroll says."""
        return self.classifier.engine.over_packed

    def _noise(self, packed: PackedSequence, noise: Noise | None) -> PackedNoise | None:
        """Return the noise of packed time steps.

        Raises:
            ValueError: it is missing in training.
        """
        if self.training and self.dropout and noise is None:
            raise ValueError("noise: missing; dropout needs it in training")
        self.classifier.check_noise(noise)
        if noise is None:
            return None
        return PackedNoise(noise.at(Site.PRETRAINING), packed.batch_sizes)

    def _embed(
        self, packed: PackedSequence, noise: PackedNoise | None = None
    ) -> PackedSequence | DistinctInputs:
        return embed(self.embedding, packed, engine=self.engine, rate=self.dropout, noise=noise)

    def _read(
        self,
        packed: PackedSequence,
        inputs: PackedSequence | DistinctInputs,
        noise: PackedNoise | None,
    ) -> tuple[Tensor, Tensor]:
        """Run the encoder; as `_run`."""
        model = self.classifier
        start = model.start(int(packed.batch_sizes[0]), None if noise is None else noise.noise)
        return self._run(model.encoder, inputs, start, model.dropout_between_layers(noise))

    def _run(
        self,
        rnn: nn.RNNBase,
        inputs: PackedSequence | DistinctInputs,
        start: Tensor | None,
        between: Between | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Run a recurrence; return all states (N, D * H) and the last ones (P, L * D, B, H)."""
        states, last = self.engine.run(rnn, inputs, start, between=between)
        assert states is not None, "they were asked for"
        return states, last

    def _losses(self, states: Tensor, answers: Tensor) -> Tensor:
        """Return the cross-entropy of each answer in nats: (N, W), (N,) -> (N,) float32."""
        losses: Tensor = -self.softmax(states, answers).output.float()
        return losses

    def own_state(self) -> dict[str, Tensor]:
        """Return the tensors of `state_dict` that aren't the classifier's."""
        tensors = self.state_dict()
        return {name: t for name, t in tensors.items() if not name.startswith("classifier.")}


class LanguageModel(PretrainingModel):
    """Predicts the next token from each state of the encoder; backward, the token before.

    Args:
        classifier: of one layer where it is bidirectional, for a second layer would see what the
            other direction has read.
        dropout: as above.
    """

    def __init__(self, classifier: SequenceClassifier, dropout: float) -> None:
        super().__init__(classifier, classifier.config.hidden_size, dropout)

    def forward(self, packed: PackedSequence, noise: Noise | None = None) -> Tensor:
        """Return the loss of each prediction in nats.

        Args:
            packed: ids, longest sequence first.
            noise: of the update, its examples row by packed row; None: no dropout (evaluation).

        Shape:
            packed.data: (N,) int64. Returns: (D * N,), direction by direction, packed.

        Raises:
            ValueError: noise is missing in training.
        """
        own = self._noise(packed, noise)
        states, _ = self._read(packed, self._embed(packed, own), own)
        if own is not None:
            states = own.drop(states, self.dropout, Site.HEAD)
        following, preceding = neighbours(packed)
        answers = following[int(packed.batch_sizes[0]) :]
        if self.classifier.config.bidirectional:
            states = torch.cat(states.chunk(2, dim=1))
            answers = torch.cat((answers, preceding))
        return self._losses(states, answers)


class Autoencoder(PretrainingModel):
    """Predicts the sequence that the encoder has read, from its last valid state alone.

    The decoder is one layer of the encoder's cell, as wide as the directions of the top layer
    together, for it starts from their last states side by side. It shares the embedding.

    Args:
        classifier: of any shape.
        dropout: as above.
    """

    def __init__(self, classifier: SequenceClassifier, dropout: float) -> None:
        config = classifier.config
        directions = 2 if config.bidirectional else 1
        width = directions * config.hidden_size
        super().__init__(classifier, width, dropout)
        self.directions = directions
        with undrawn():
            self.decoder = CELLS[config.rnn].module(config.width, width, batch_first=True)

    def forward(self, packed: PackedSequence, noise: Noise | None = None) -> Tensor:
        """Return the loss of each prediction in nats; the decoder is fed the true tokens.

        Arguments and errors are those of `LanguageModel.forward`.

        Shape:
            packed.data: (N,) int64. Returns: (B + N,): of the first tokens, then of what follows
            each step, packed.
        """
        own = self._noise(packed, noise)
        inputs = self._embed(packed, own)
        start = self._start(packed, inputs, own)
        states, _ = self._run(self.decoder, inputs, start)
        first = start[0, 0]
        if own is not None:
            examples = own.noise.examples
            first = own.noise.drop(first, self.dropout, Site.FIRST_TOKEN, examples)
            states = own.drop(states, self.dropout, Site.HEAD)
        return self._losses(torch.cat((first, states)), neighbours(packed)[0])

    @torch.no_grad()
    def reconstruct(self, packed: PackedSequence, steps: int) -> list[list[int]]:
        """Unroll the decoder freely: it is fed what it predicted before.

        Args:
            packed: ids, longest sequence first.
            steps: tokens a sequence at most; fewer where END comes before.

        Returns:
            Ids, row by packed row.
        """
        state = self._start(packed, self._embed(packed))
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

    def _start(
        self,
        packed: PackedSequence,
        inputs: PackedSequence | DistinctInputs,
        noise: PackedNoise | None = None,
    ) -> Tensor:
        """Read the sequences; return the decoder's state before its first step, (P, 1, B, W)."""
        _, last = self._read(packed, inputs, noise)
        return torch.cat(last[:, -self.directions :].unbind(1), dim=-1).unsqueeze(1)


def neighbours(packed: PackedSequence) -> tuple[Tensor, Tensor]:
    """Return the token after each step and the one before it; END where there is none.

    Args:
        packed: ids, longest sequence first.

    Shape:
        packed.data: (N,). Returns: following (B + N,), what follows the beginnings first, then what
        follows each step; preceding (N,).
    """
    sizes, ids = packed.batch_sizes, packed.data
    first = int(sizes[0])
    # One step earlier than each sequence begins, there is room for its beginning.
    starts = torch.cat((sizes.new_tensor([0, first]), first + sizes.cumsum(0)[:-1]))
    row, step = rows_and_steps(sizes)
    place = (starts[step] + row).to(ids.device)
    beginnings = ids.new_full((first,), END)
    following = ids.new_full((first + len(ids),), END)
    following[place] = ids
    return following, torch.cat((beginnings, ids))[place]


def token_softmax(width: int, vocab_size: int) -> nn.AdaptiveLogSoftmaxWithLoss:
    """Return a softmax over the vocabulary that costs what the frequent tokens cost, nearly.

    Reference:
        Grave et al. 2017, "Efficient softmax approximation for GPUs", arXiv:1609.04309: exact
        probabilities, for a token in its group times those of its group.
    """
    cutoffs = [min(FREQUENT, vocab_size - 1)]
    while (following := cutoffs[-1] + min(cutoffs[-1], LARGEST_GROUP)) < vocab_size:
        cutoffs.append(following)
    shrinking = min(SHRINKING, (width / SMALLEST) ** (1 / len(cutoffs))) if width >= WIDE else 1.0
    return nn.AdaptiveLogSoftmaxWithLoss(width, vocab_size, cutoffs, div_value=shrinking)


OBJECTIVES: dict[str, Callable[[SequenceClassifier, float], PretrainingModel]] = {
    "language_model": LanguageModel,
    "autoencoder": Autoencoder,
}
"""By the name that pretraining.objective has."""
