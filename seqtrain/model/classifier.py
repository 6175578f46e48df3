"""The classifier: input → recurrent encoder → pooling → head, and n-grams beside all that.

B batch, T longest length, N steps of all sequences, E embedding, H state (both directions),
C classes, F features.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import ModelConfig
from seqtrain.data.batch import sort_and_pack
from seqtrain.data.spelling import Grams, Spellings
from seqtrain.model.building import draw_again, undrawn
from seqtrain.model.cells import state_shape
from seqtrain.model.encoder import make_encoder
from seqtrain.model.engines.choice import choose_engine
from seqtrain.model.engines.interface import Between, Engine, ProjectedTable
from seqtrain.model.initialization import initialize
from seqtrain.model.inputs import NOTHING, Fitted, Inputs
from seqtrain.model.ngrams import NgramClassifier, joint
from seqtrain.model.pooling import (
    join_directions,
    last_valid_state,
    make_pooling,
    only,
    pooling_names,
)
from seqtrain.model.randomness import Noise, PackedNoise, Site
from seqtrain.model.truncation import RunPacked, both_directions, last_states, pooled_states

PREDICTION_STEPS = 16384
"""Time steps of a segment where no gradients are wanted: memory stays flat at any length."""


class SequenceClassifier(nn.Module):
    """Many-to-one classifier on the last valid hidden state, or on pooled valid states.

    Where it has a linear classifier on n-grams too (model.ngrams), both answer together.

    A new one has weights of any content: `initialize` it, or load them.

    Args:
        config: the config's model section.
        input_size: size of the vocabulary, or width F of a feature vector.
        num_classes: C.
        features: whether steps are feature vectors, mapped to E linearly, instead of ids.
        fitted: what its parts take from the preprocessing.

    Attributes:
        input_size: as above.
        ngrams: the linear classifier on n-grams, or None.
        temperature: divides the logits of every answer; 1 while it learns.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        input_size: int,
        num_classes: int,
        features: bool,
        fitted: Fitted = NOTHING,
    ) -> None:
        super().__init__()
        self.config = config
        self.input_size = input_size
        self.temperature = 1.0
        self._engine: Engine | None = None
        self._engine_for: tuple[torch.device, torch.dtype] | None = None
        both = config.bidirectional and config.join == "concat"
        width = config.hidden_size * (2 if both else 1)
        with undrawn():
            self.inputs = Inputs(config, input_size, features=features, fitted=fitted)
            self.embedding = self.inputs.embedding
            self.subwords = self.inputs.subwords
            self.convolutions = self.inputs.convolutions
            self.encoder = make_encoder(config, self.inputs.width)
            self.pooling = make_pooling(config.pooling, width)
            if config.initial_state == "learned":
                self.initial_state = nn.Parameter(torch.zeros(state_shape(config)))
            self.head = nn.Linear(width * len(pooling_names(config.pooling)), num_classes)
            self.ngrams = None
            if fitted.ngrams is not None:
                self.ngrams = NgramClassifier(fitted.ngrams, num_classes)

    @property
    def engine(self) -> Engine:
        """What computes the recurrence: chosen once after the model was built, loaded or moved.

        Raises:
            ConfigError: model.engine asks for one that can't run here.
        """
        weights = self.head.weight.device, self.head.weight.dtype
        if self._engine is None or self._engine_for != weights:
            self._engine, self._engine_for = choose_engine(self.config, *weights), weights
        return self._engine

    def computed_by(self, **keys: str) -> SequenceClassifier:
        """Return a model that shares these weights, with other keys of the config.

        Args:
            keys: engine and unroll, as the model section has them.
        """
        other = copy.copy(self)
        other.config, other._engine = self.config.model_copy(update=keys), None
        return other

    def initialize(self, seed: int) -> None:
        """Draw the initial weights, on the CPU; torch's global generator has no part in it."""
        generator = torch.Generator("cpu").manual_seed(seed)
        draw_again(self, generator)
        initialize(
            self.embedding,
            self.encoder,
            self.head,
            embedding_std=self.config.embedding_std,
            generator=generator,
        )
        if self.subwords is not None:
            self.subwords.initialize(self.config.embedding_std, generator)
        if self.convolutions is not None:
            self.convolutions.initialize(generator)
        if self.ngrams is not None:
            self.ngrams.initialize()

    def project_vocabulary(self) -> ProjectedTable | None:
        """Project every token once, for many batches without gradients.

        Returns:
            What `forward` takes while the weights stay as they are; None for feature vectors, with
            subwords or convolutions, and where the engine has no use for it.
        """
        table = self.inputs.table()
        return None if table is None else self.engine.project(table, self.encoder)

    def forward(
        self,
        inputs: PackedSequence | Tensor,
        lengths: Tensor | None = None,
        *,
        vocabulary: ProjectedTable | None = None,
        bptt: int | None = None,
        noise: Noise | None = None,
        spellings: Spellings | None = None,
    ) -> Tensor:
        """Classify sequences.

        Args:
            inputs: ids or feature vectors: packed, longest sequence first, as `collate` packs them;
                or padded, in any order: they are sorted and packed here, and logits put back.
            lengths: steps of each padded row, on the CPU.
            vocabulary: `project_vocabulary` of these weights, where no gradients are wanted.
            bptt: steps that gradients reach back at most; None: all.
            noise: of the update, its examples row by row of the inputs, for dropout and random
                initial states; None: neither (evaluation).
            spellings: of the words that the vocabulary lacks, for model.subwords; None: they are
                <unk> and nothing more.

        Shape:
            inputs: packed (N,) int64 or (N, F) float32; padded (B, T) or (B, T, F).
            lengths: (B,) int64. Returns: logits (B, C), row by row of the inputs.

        Raises:
            ValueError: lengths don't fit padded inputs, or are missing; or noise is missing in
                training.
        """
        parts, _ = self.carry_parts(
            inputs, lengths, vocabulary=vocabulary, bptt=bptt, noise=noise, spellings=spellings
        )
        return joint(parts)

    def carry_parts(
        self,
        inputs: PackedSequence | Tensor,
        lengths: Tensor | None = None,
        start: Tensor | None = None,
        *,
        vocabulary: ProjectedTable | None = None,
        bptt: int | None = None,
        noise: Noise | None = None,
        spellings: Spellings | None = None,
    ) -> tuple[list[Tensor], Tensor]:
        """Classify sequences from given states on; return each part's logits, and the last states.

        `joint` makes one answer of the parts: the recurrent one, and that on n-grams if there is
        one. Arguments are those of `forward`, and `start`: the state before the first step of each
        row; None: as model.initial_state has it.

        Shape:
            start: (P, L * D, B, hidden), where P counts the parts of a state (h, or h and c),
            L layers, D directions. Returns: logits (B, C) of each part, and states shaped as start,
            row by row of the inputs.

        Raises:
            ValueError: as for `forward`.
        """
        self.check_noise(noise)
        if isinstance(inputs, PackedSequence):
            return self._classify(inputs, start, vocabulary, bptt, noise, spellings)
        if lengths is None:
            raise ValueError("lengths: missing; padded inputs need them")
        packed, sorted_indices, unsorted_indices = sort_and_pack(inputs, lengths)
        if spellings is not None:
            numbers = sort_and_pack(spellings.numbers, lengths)[0].data
            spellings = Spellings(numbers, spellings.grams)
        start = None if start is None else start[:, :, sorted_indices]
        noise = None if noise is None else noise.rows(sorted_indices)
        parts, state = self._classify(packed, start, vocabulary, bptt, noise, spellings)
        return [part[unsorted_indices] for part in parts], state[:, :, unsorted_indices]

    def answer(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the logits of one answer, (B, C), of the parts' logits: calibrated."""
        logits = joint(parts)
        return logits if self.temperature == 1 else logits.float() / self.temperature

    def zero_state(self, rows: int) -> Tensor:
        """Return the state of zeros, (P, L * D, B, hidden)."""
        parts, layers, hidden = state_shape(self.config)
        return self.head.weight.new_zeros(parts, layers, rows, hidden)

    @property
    def looks_ahead(self) -> bool:
        """Whether states depend on steps still to come: then each prefix has to be run anew."""
        return self.why_it_looks_ahead is not None

    @property
    def why_it_looks_ahead(self) -> str | None:
        """Which part makes states depend on steps still to come; None: none does."""
        if self.config.bidirectional:
            return "bidirectional"
        if self.convolutions is not None:
            return "convolutions"
        return "standardize" if self.inputs.series is not None else None

    def step_logits(
        self,
        packed: PackedSequence,
        start: Tensor | None = None,
        spellings: Spellings | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Classify after every step: row n holds the answer had its sequence ended with step n.

        Args:
            packed: as for `forward`; the model doesn't look ahead.
            start: as for `carry_parts`, row by packed row.
            spellings: as for `forward`.

        Shape:
            packed.data: (N,) int64, or (N, F) float32. Returns: logits (N, C), packed, and the
            states that the sequences end in, shaped as start.

        Raises:
            ValueError: the model looks ahead: its states depend on steps still to come.
        """
        if self.looks_ahead:
            raise ValueError(
                f"these states know steps still to come ({self.why_it_looks_ahead}); "
                "run each prefix on its own"
            )
        start = self.start(int(packed.batch_sizes[0])) if start is None else start
        read = self.inputs.numbered(packed, spellings)
        states, last = self._encode(
            read, start, vocabulary=None, need_outputs=True, noise=None, grams=_grams(spellings)
        )
        assert states is not None
        seen = [states] if "last" in pooling_names(self.config.pooling) else []
        if self.pooling is not None:
            seen.append(self.pooling.running(states, packed.batch_sizes))
        parts = [self.head(torch.cat(seen, dim=1))]
        if self.ngrams is not None:
            parts.append(self.ngrams.step_logits(packed))
        return self.answer(parts), last

    def _classify(
        self,
        packed: PackedSequence,
        start: Tensor | None,
        vocabulary: ProjectedTable | None,
        bptt: int | None,
        noise: Noise | None,
        spellings: Spellings | None,
    ) -> tuple[list[Tensor], Tensor]:
        """Return the parts' logits (B, C) and last states, row by packed row."""
        grams = _grams(spellings)
        wide = [] if self.ngrams is None else [self.ngrams(self.ngrams.find(packed))]
        own = None if noise is None else PackedNoise(noise, packed.batch_sizes)
        packed = self.inputs.numbered(packed, spellings)
        packed = self.inputs.read_whole(packed, grams, self.engine, own)
        rows = int(packed.batch_sizes[0])
        run = partial(
            self._encode,
            vocabulary=vocabulary,
            need_outputs=self.pooling is not None,
            noise=noise,
            grams=grams,
        )
        start = self.start(rows, noise) if start is None else start
        seen, state = self._pooled(run, packed, start, bptt)
        if noise is not None:
            seen = noise.drop(seen, self.config.dropout, Site.HEAD, noise.examples)
        return [self.head(seen), *wide], state

    def _pooled(
        self, run: RunPacked, packed: PackedSequence, start: Tensor | None, bptt: int | None
    ) -> tuple[Tensor, Tensor]:
        """Return what the head sees, (B, P * H) for P poolings, and last states."""
        rows, longest = int(packed.batch_sizes[0]), len(packed.batch_sizes)
        pooled: Tensor | None = None
        steps = bptt if torch.is_grad_enabled() else self._prediction_steps
        if steps is not None and steps < longest:
            start = self.zero_state(rows) if start is None else start
            if self.config.bidirectional:
                pooled, state = both_directions(run, self.pooling, packed, start, steps)
            elif self.pooling is None:
                state = last_states(run, packed, start, steps)
            else:
                pooled, state = pooled_states(run, self.pooling, packed, start, steps)
        else:
            outputs, state = run(packed, start, None)
            if outputs is not None and self.pooling is not None:
                pooled = self.pooling(outputs, packed.batch_sizes)
        seen = [] if pooled is None else [pooled]
        if "last" in pooling_names(self.config.pooling):
            last = last_valid_state(only(state, 0), bidirectional=self.config.bidirectional)
            seen.insert(0, self.join(last))
        return torch.cat(seen, dim=1) if len(seen) > 1 else seen[0], state

    def _encode(
        self,
        packed: PackedSequence,
        start: Tensor | None,
        begin: Tensor | None = None,
        *,
        vocabulary: ProjectedTable | None,
        need_outputs: bool,
        noise: Noise | None,
        grams: Grams | None = None,
    ) -> tuple[Tensor | None, Tensor]:
        """Embed and encode packed steps: states of all steps, directions joined; last states."""
        own = None if noise is None else PackedNoise(noise, packed.batch_sizes, begin)
        inputs = self.inputs.read(packed, grams, self.engine, own, vocabulary)
        outputs, state = self.engine.run(
            self.encoder,
            inputs,
            start,
            need_outputs=need_outputs,
            between=self.dropout_between_layers(own),
        )
        return None if outputs is None else self.join(outputs), state

    def dropout_between_layers(self, noise: PackedNoise | None) -> Between | None:
        """Return what drops units between two layers; None: nothing does."""
        rate = self.config.dropout
        if noise is None or not rate or self.config.num_layers == 1:
            return None
        return lambda states, layer: noise.drop(states, rate, Site.ABOVE_LAYER + layer)

    def check_noise(self, noise: Noise | None) -> None:
        """Refuse to train without the noise that the config asks for.

        Raises:
            ValueError: it is missing.
        """
        config = self.config
        wanted = config.dropout or config.embedding_dropout or config.initial_state == "random"
        if self.training and wanted and noise is None:
            raise ValueError(
                "noise: missing; dropout and random initial states need it in training; "
                "to classify, switch the model to evaluation"
            )

    def start(self, rows: int, noise: Noise | None = None) -> Tensor | None:
        """Return the states before the first step; None: zeros, as carried ones begin too."""
        if self.config.initial_state == "learned":
            return self.initial_state.unsqueeze(2).expand(-1, -1, rows, -1)
        if self.config.initial_state == "random" and noise is not None:
            zeros = self.zero_state(rows)
            parts, layers, _, hidden = zeros.shape
            drawn = noise.normals(Site.INITIAL_STATE, parts * layers * hidden)
            drawn = drawn.view(rows, parts, layers, hidden).permute(1, 2, 0, 3)
            return self.config.initial_scale * drawn.to(zeros)
        return None

    @property
    def _prediction_steps(self) -> int | None:
        """Time steps of a segment without gradients; None where the whole must be seen at once."""
        stacked = self.config.bidirectional and self.config.num_layers > 1
        whole = stacked or self.config.unroll == "padded"
        return None if whole else PREDICTION_STEPS

    def join(self, states: Tensor) -> Tensor:
        """Join the directions' states, (…, D * hidden), as model.join has it."""
        return join_directions(states, self.config.join) if self.config.bidirectional else states


def _grams(spellings: Spellings | None) -> Grams | None:
    return None if spellings is None else spellings.grams
