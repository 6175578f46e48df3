"""The classifier: input → recurrent encoder → pooling → head; n-grams or kernels beside it.

B batch, T longest length, N time steps of all sequences, H state (both directions), C classes,
F features, K poolings.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import ModelConfig
from seqtrain.data.batch import Batch, Grams, Spellings, sort_and_pack
from seqtrain.data.store import SequenceStore
from seqtrain.model.cells import zero_state
from seqtrain.model.column_embedding import ColumnEmbedding
from seqtrain.model.encoder import (
    RunPacked,
    make_encoder,
    run_in_segments,
)
from seqtrain.model.engines.choice import choose_engine
from seqtrain.model.engines.interface import Between, Engine
from seqtrain.model.engines.operations import SparseRows
from seqtrain.model.initialization import draw_as_torch, initialize, undrawn
from seqtrain.model.inputs import FittedLayers, Inputs
from seqtrain.model.kernels import KernelBank
from seqtrain.model.ngrams import MOST_STEPS, NgramClassifier, ngrams_of_store
from seqtrain.model.packing import rows_and_steps
from seqtrain.model.pooling import (
    join_directions,
    last_valid_state,
    make_pooling,
    only,
    pool_after_each_step,
    pool_at_once,
    pooling_names,
)
from seqtrain.model.randomness import Purpose, RandomNumbers
from seqtrain.model.subwords import Subwords

PREDICTION_STEPS = 16384
"""Time steps of a segment where no gradients are wanted: memory stays flat at any length."""


class ClassifierNetwork(nn.Module):
    """Many-to-one classifier on the last valid hidden state, or on pooled valid states.

    A linear classifier on n-grams (model.ngrams) or on kernels (model.kernels) is a branch with
    logits of its own. A new model has weights of any content: `initialize` it, or load them.

    Attributes:
        input_size: size of the vocabulary, or width F of a feature vector.
        kernels: the bank of kernels, or None; it is fitted, and has no branch in training mode.
        multi_label: True if a sequence can have any number of the classes.
        temperature: divides the logits of every prediction, each class's where there are several
            numbers; 1 while it learns.
        shares: of each branch in a prediction, 1 together; None: equal ones, as while it learns.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        input_size: int,
        num_classes: int,
        features: bool,
        fitted: FittedLayers | None = None,
        multi_label: bool = False,
    ) -> None:
        super().__init__()
        self.config = config
        self.input_size = input_size
        self.multi_label = multi_label
        self.temperature: float | Sequence[float] = 1.0
        self.shares: Sequence[float] | None = None
        self.shift: Sequence[float] | None = None
        self._engine: Engine | None = None
        self._engine_for: tuple[torch.device, torch.dtype] | None = None
        fitted = fitted or FittedLayers()
        both = config.bidirectional and config.join == "concat"
        width = config.hidden_size * (2 if both else 1)
        with undrawn():
            self.inputs = Inputs(config, input_size, features=features, fitted=fitted)
            self.embedding = self.inputs.embedding
            self.subwords = self.inputs.subwords
            self.convolutions = self.inputs.convolutions
            self.encoder = make_encoder(config, self.inputs.width)
            self.pooling = make_pooling(config.pooling, width, config.attention_size)
            beside = fitted.static
            self.static = None if beside is None else ColumnEmbedding(beside, beside.width)
            pooled = width * len(pooling_names(config.pooling))
            pooled += 0 if self.static is None else self.static.width
            self.head = nn.Linear(pooled, num_classes)
            if config.initial_state == "learned":
                self.initial_state = nn.Parameter(self.zero_state(1).squeeze(2))
            self.ngrams = None
            if fitted.ngrams is not None:
                self.ngrams = NgramClassifier(fitted.ngrams, num_classes, fitted.words)
            self.kernels = None
            if fitted.kernels is not None:
                self.kernels = KernelBank(fitted.kernels, num_classes)

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

    def computed_by(self, **keys: str) -> ClassifierNetwork:
        """Return a model that shares these weights, with another engine or unroll in its config."""
        other = copy.copy(self)
        other.config, other._engine = self.config.model_copy(update=keys), None
        return other

    def initialize(self, seed: int) -> None:
        """Draw the initial weights, on the CPU; torch's global generator has no part in it."""
        generator = torch.Generator("cpu").manual_seed(seed)
        std = self.config.embedding_std
        draw_as_torch(self, generator)
        initialize(self.embedding, self.encoder, self.head, embedding_std=std, generator=generator)
        for part in (self.embedding, self.subwords, self.static):
            if isinstance(part, Subwords | ColumnEmbedding):
                part.initialize(std, generator)
        if self.convolutions is not None:
            self.convolutions.initialize(generator)
        if self.ngrams is not None:
            self.ngrams.initialize()

    def set_sparse_gradients(self, sparse: bool) -> list[Tensor]:
        """Say whether gradients of tables hold the rows of a batch alone; return tables that do."""
        tables: list[nn.Module | None] = [self.embedding, self.subwords, self.ngrams]
        for part in (self.embedding, self.static):
            tables += part.embeddings if isinstance(part, ColumnEmbedding) else []
        found = [t for t in tables if isinstance(t, nn.Embedding | Subwords | NgramClassifier)]
        for table in found:
            table.sparse = sparse
        return [table.weight for table in found] if sparse else []

    def remember_ngrams(self, train: SequenceStore) -> None:
        """Find the n-grams of all rows once, for updates whose random numbers are of these rows."""
        ngrams = self.ngrams
        if ngrams is None or len(train.values) > MOST_STEPS:
            return

        def find(batch: Batch) -> SparseRows:
            batch = batch.to(self.head.weight.device)
            packed = self.inputs.numbered(batch.packed, batch.spellings)
            return ngrams.find(packed, batch.spellings)

        ngrams.rows = ngrams_of_store(train, find)

    @property
    def branch_names(self) -> list[str]:
        """Names of the branches in evaluation, in the order of their logits."""
        beside = {"ngrams": self.ngrams, "kernels": self.kernels}
        return ["recurrent", *(name for name, branch in beside.items() if branch is not None)]

    def forward(self, *inputs: Any, **options: Any) -> Tensor:
        """Classify sequences: all branches together, (B, C); arguments are those of `branches`."""
        return combined(self.branches(*inputs, **options)[0])

    def branches(
        self,
        inputs: PackedSequence | Tensor,
        lengths: Tensor | None = None,
        start: Tensor | None = None,
        *,
        bptt: int | None = None,
        random: RandomNumbers | None = None,
        spellings: Spellings | None = None,
        static: Tensor | None = None,
    ) -> tuple[list[Tensor], Tensor]:
        """Classify sequences; return logits of each branch, the recurrent one first, and states.

        Args:
            inputs: ids or feature vectors: packed, longest sequence first; or padded, in any order.
            lengths: steps of each padded row, on the CPU.
            start: state before the first step of each row; None: as model.initial_state has it.
            bptt: time steps of truncated BPTT; None: all.
            random: for dropout and random initial states, its examples row by row of the inputs;
                None: neither (evaluation).
            spellings: of the words that the vocabulary lacks, for model.subwords; None: <unk>.
            static: what stands beside each sequence (data.static), row by row of the inputs.

        Shape:
            inputs: packed (N,) int64 or (N, F) float32; padded (B, T) or (B, T, F). lengths: (B,).
            static: (B, K). start: (S, L * D, B, hidden): tensors of a state, layers, directions.
            Returns: logits (B, C) of each branch, and last states shaped as start, row by row.

        Raises:
            ValueError: lengths don't fit padded inputs; random numbers are missing in training.
        """
        self.check_random(random)
        if not isinstance(inputs, PackedSequence):
            if lengths is None:
                raise ValueError("lengths: missing; padded inputs need them")
            packed, order, back = sort_and_pack(inputs, lengths)
            branches, state = self.branches(
                packed,
                start=None if start is None else start[:, :, order],
                bptt=bptt,
                random=None if random is None else random.rows(order),
                spellings=None if spellings is None else spellings.packed(lengths),
                static=None if static is None else static[order],
            )
            return [logits[back] for logits in branches], state[:, :, back]
        packed = self.inputs.numbered(inputs, spellings)
        beside = [*self._beside_network(packed, spellings, random)]
        run = self._run_packed(self.pooling is not None, random, spellings)
        packed = self.inputs.read_whole(packed, spellings, random)
        start = self.start(int(packed.batch_sizes[0]), random) if start is None else start
        seen, state = self._pooled(run, packed, start, bptt)
        if self.static is not None:
            seen = torch.cat((seen, self._beside(static)), dim=1)
        if random is not None:
            seen = random.drop(seen, self.config.dropout, Purpose.HEAD, random.examples)
        return [self.head(seen), *beside], state

    def _beside_network(
        self, packed: PackedSequence, grams: Grams | None, random: RandomNumbers | None
    ) -> Iterator[Tensor]:
        """Yield the logits of the branches beside the recurrent network."""
        if self.ngrams is not None and self.ngrams.rows is not None and random is not None:
            yield self.ngrams(self.ngrams.rows, random.examples)
        elif self.ngrams is not None:
            yield self.ngrams(self.ngrams.find(packed, grams))
        if self.kernels is not None and not self.training:
            yield self.kernels(packed)

    def combine(self, branches: Sequence[Tensor]) -> Tensor:
        """Return the calibrated logits of one prediction, (B, C), of the branches' logits."""
        logits = combined(branches, self.shares)
        if self.temperature != 1:
            divisor = torch.tensor(self.temperature, dtype=torch.float32, device=logits.device)
            logits = logits.float() / divisor
        return logits if self.shift is None else logits + logits.new_tensor(self.shift)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the probability of each class, (…, C) float64; of one class the sum is 1."""
        return logits.double().sigmoid() if self.multi_label else logits.double().softmax(-1)

    def zero_state(self, rows: int) -> Tensor:
        """Return the state of zeros, (S, L * D, B, hidden)."""
        return zero_state(self.encoder, rows, like=self.head.weight)

    @property
    def why_prefixes_are_read_again(self) -> str | None:
        """Which key keeps `step_logits` from what holds after every step; None: none does."""
        if self.config.bidirectional:
            return "bidirectional"
        for name in ("convolutions", "kernels", "ngrams"):
            if getattr(self, name) is not None:
                return name
        return "standardize" if self.inputs.series is not None else None

    def step_logits(
        self,
        packed: PackedSequence,
        start: Tensor | None = None,
        spellings: Spellings | None = None,
        static: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Classify after every step, where no prefix is read again; arguments as of `branches`.

        Shape:
            packed.data: (N,) int64, or (N, F) float32. Returns: logits (N, C), packed, each as if
            the sequence ended there, and last states, shaped as start.
        """
        start = self.start(int(packed.batch_sizes[0])) if start is None else start
        run = self._run_packed(need_outputs=True, grams=spellings)
        packed = self.inputs.numbered(packed, spellings)
        states, last = run(packed, start, None)
        assert states is not None
        seen = [states] if "last" in pooling_names(self.config.pooling) else []
        if self.pooling is not None:
            seen.append(pool_after_each_step(self.pooling, states, packed.batch_sizes))
        if self.static is not None:
            row, _ = rows_and_steps(packed.batch_sizes)
            seen.append(self._beside(static)[row.to(states.device)])
        return self.combine([self.head(torch.cat(seen, dim=1))]), last

    def _beside(self, static: Tensor | None) -> Tensor:
        if static is None or self.static is None:
            raise ValueError("static: missing; the model was trained with data.static")
        beside: Tensor = self.static(static)
        return beside

    def _run_packed(
        self,
        need_outputs: bool,
        random: RandomNumbers | None = None,
        grams: Grams | None = None,
    ) -> RunPacked:
        """Return what embeds and encodes packed steps: states of all steps, and last ones."""

        def run(
            packed: PackedSequence, start: Tensor | None, begin: Tensor | None
        ) -> tuple[Tensor | None, Tensor]:
            outputs, state = self.engine.run(
                self.encoder,
                self.inputs.read(packed, grams, random, begin),
                start,
                need_outputs=need_outputs,
                between=self.dropout_between_layers(random, packed.batch_sizes, begin),
            )
            return None if outputs is None else self.join(outputs), state

        return run

    def _pooled(
        self, run: RunPacked, packed: PackedSequence, start: Tensor | None, bptt: int | None
    ) -> tuple[Tensor, Tensor]:
        rows, longest = int(packed.batch_sizes[0]), len(packed.batch_sizes)
        pooled = None
        steps = bptt if torch.is_grad_enabled() else self._prediction_steps
        if steps is not None and steps < longest:
            start = self.zero_state(rows) if start is None else start
            pooled, state = run_in_segments(run, self.pooling, packed, start, steps)
        else:
            outputs, state = run(packed, start, None)
            if outputs is not None and self.pooling is not None:
                pooled = pool_at_once(self.pooling, outputs, packed.batch_sizes)
        seen = [] if pooled is None else [pooled]
        if "last" in pooling_names(self.config.pooling):
            last = last_valid_state(only(state, 0), bidirectional=self.config.bidirectional)
            seen.insert(0, self.join(last))
        return torch.cat(seen, dim=1) if len(seen) > 1 else seen[0], state

    def dropout_between_layers(
        self, random: RandomNumbers | None, batch_sizes: Tensor, begin: Tensor | None = None
    ) -> Between | None:
        """Return what drops units between two layers; None: nothing does."""
        rate, first = self.config.dropout, Purpose.ABOVE_LAYER
        if random is None or not rate or self.config.num_layers == 1:
            return None
        return lambda states, layer: random.drop_steps(
            states, rate, first + layer, batch_sizes, begin
        )

    def check_random(self, random: RandomNumbers | None, dropout: float = 0.0) -> None:
        """Raise ValueError where training lacks the random numbers that its dropouts ask for."""
        config = self.config
        wanted = dropout or config.dropout or config.embedding_dropout
        if self.training and random is None and (wanted or config.initial_state == "random"):
            raise ValueError("random: missing; dropout and random initial states need it to train")

    def start(self, rows: int, random: RandomNumbers | None = None) -> Tensor | None:
        """Return the states before the first step; None: zeros, as carried ones begin too."""
        if self.config.initial_state == "learned":
            return self.initial_state.unsqueeze(2).expand(-1, -1, rows, -1)
        if self.config.initial_state == "random" and random is not None:
            zeros = self.zero_state(rows).permute(2, 0, 1, 3)
            drawn = random.normals(Purpose.INITIAL_STATE, zeros[0].numel()).view(zeros.shape)
            return self.config.initial_scale * drawn.permute(1, 2, 0, 3).to(zeros)
        return None

    @property
    def _prediction_steps(self) -> int | None:
        """Time steps of a segment without gradients; None where the whole must be seen at once."""
        whole = self.config.bidirectional or self.config.unroll == "padded"
        return None if whole else PREDICTION_STEPS

    def join(self, states: Tensor) -> Tensor:
        """Join the directions' states, (…, D * hidden), as model.join has it."""
        return join_directions(states, self.config.join) if self.config.bidirectional else states


def combined(branches: Sequence[Tensor], shares: Sequence[float] | None = None) -> Tensor:
    """Return the weighted mean of the branches' logits, (…, C) each; None: equal shares.

    Of one class per sequence it is the mean of log-probabilities, for softmax takes out what all
    classes have in common. The logits of one branch stay as they are.
    """
    if len(branches) == 1:
        return branches[0]
    each = torch.stack([logits.float() for logits in branches])
    if shares is None:
        return each.mean(0)
    total: Tensor = torch.tensordot(each.new_tensor(shares), each, 1)
    return total
