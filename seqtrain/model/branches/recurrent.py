"""The recurrent branch: input layers, recurrent encoder, pooling, and a linear classifier.

B sequences, T longest length, N packed time steps, H width of a state (both directions). C classes,
K poolings, L layers, D directions, S tensors of a state.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from seqtrain.config.schema import ModelConfig
from seqtrain.model.branches.branch import (
    STATIC,
    Branch,
    ExampleInputs,
    ForwardContext,
    PaddedBatch,
    Table,
    valid_steps,
)
from seqtrain.model.cells import zero_state
from seqtrain.model.column_embedding import ColumnEmbedding
from seqtrain.model.encoder import RunPacked, encode_padded, make_encoder, run_in_segments
from seqtrain.model.engines.choice import choose_engine
from seqtrain.model.engines.interface import Between, Engine
from seqtrain.model.engines.native.native_ops import ops_for
from seqtrain.model.initialization import draw_embedding, draw_head, draw_recurrence
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.inputs import Inputs
from seqtrain.model.packing import PaddedSequences, rows_and_steps
from seqtrain.model.pooling import (
    LAST,
    join_directions,
    last_valid_state,
    make_pooling,
    pool,
    pool_after_each_step,
    pooling_names,
    select_state,
)
from seqtrain.model.randomness import Purpose, RandomNumbers
from seqtrain.sequences.batch import Batch
from seqtrain.sequences.transfer import to_device
from seqtrain.sequences.vocabulary import UNK

PREDICTION_STEPS = 16384
"""Largest number of time steps of a segment in prediction, which limits the memory."""
UNKNOWN_COUNTS, UNKNOWN_BUCKETS = "unknown_counts", "unknown_buckets"
"""Inputs of an exported model: number of n-grams of each unknown word, and the n-grams."""


class RecurrentBranch(Branch):
    """Many-to-one classifier on the last valid hidden state, on pooled valid states, or on both.

    Args:
        config: the section model of a config.
        spec: facts about inputs and classes.

    Attributes:
        inputs: the layers before the encoder.
        encoder: torch's recurrent module, which holds the parameters for all engines.
        pooling: pooling of all states, or None if only the last valid state is used.
        static: embedding of row features, or None without any.
        head: linear classifier of the pooled states and the row features.
        pooled_width: size of the pooled vector, K * H.
        initial_state: learned initial state, (S, L * D, hidden). It only exists if
            model.initial_state is learned.
    """

    name = "recurrent"

    def __init__(self, config: ModelConfig, spec: InputSpec) -> None:
        super().__init__()
        self.config = config
        self._export_vectors = torch.empty(0)
        width = config.hidden_size
        if config.bidirectional and config.join == "concat":
            width *= 2
        self.inputs = Inputs(config, spec)
        self.embedding = self.inputs.embedding
        self.subwords = self.inputs.subwords
        self.convolutions = self.inputs.convolutions
        self.encoder = make_encoder(config, self.inputs.width)
        self.pooling = make_pooling(config.pooling, width, config.attention_size)
        self.static = None
        self.pooled_width = width * len(pooling_names(config.pooling))
        head_width = self.pooled_width
        if spec.static is not None:
            self.static = ColumnEmbedding(spec.static, spec.static.input_size)
            head_width += self.static.width
        self.head = nn.Linear(head_width, spec.num_classes)
        if config.initial_state == "learned":
            self.initial_state = nn.Parameter(self.zero_state(1).squeeze(2))

    @classmethod
    def build(cls, config: ModelConfig, spec: InputSpec) -> RecurrentBranch:
        """Return the branch. Every config uses it."""
        return cls(config, spec)

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Draw the initial weights. A learned initial state starts from zeros.

        A linear map of numbers keeps the weights that `draw_defaults` has drawn.
        """
        std = self.config.embedding_std
        if isinstance(self.embedding, nn.Embedding):
            draw_embedding(self.embedding, std, generator)
        draw_recurrence(self.encoder, generator)
        draw_head(self.head, generator)
        if isinstance(self.embedding, ColumnEmbedding):
            self.embedding.initialize(std, generator)
        for part in (self.subwords, self.static):
            if part is not None:
                part.initialize(std, generator)
        if self.convolutions is not None:
            self.convolutions.initialize(generator)
        if self.config.initial_state == "learned":
            self.initial_state.zero_()

    @property
    def engine(self) -> Engine:
        """Engine that computes the recurrence, chosen for the device and type of the weights.

        Raises:
            ConfigError: If model.engine asks for an engine that can't run here.
        """
        weight = self.head.weight
        return choose_engine(self.config, weight.device, weight.dtype)

    def tables(self) -> list[Table]:
        """Return the tables of tokens, of character n-grams, and of all token columns.

        The columns are step columns and row features.
        """
        found: list[Table] = []
        if isinstance(self.embedding, nn.Embedding):
            found.append(self.embedding)
        if self.subwords is not None:
            found.append(self.subwords)
        for part in (self.embedding, self.static):
            found += part.embeddings if isinstance(part, ColumnEmbedding) else []
        return found

    def forward(self, batch: Batch, context: ForwardContext) -> Tensor:
        """Return the logits of a packed batch, (B, C), and set the final states of the context.

        Raises:
            ValueError: If random numbers that training needs are missing, or if the batch lacks row
                features.
            ConfigError: If model.engine asks for an engine that can't run here.
        """
        self.check_random(context.random)
        pooled, context.final_states = self.embed(batch, context)
        if self.static is not None:
            pooled = torch.cat((pooled, self._embedded_row_features(batch)), dim=1)
        random = context.random
        if random is not None:
            pooled = random.drop(pooled, self.config.dropout, Purpose.HEAD, random.examples)
        logits: Tensor = self.head(pooled)
        return logits

    def embed(self, batch: Batch, context: ForwardContext) -> tuple[Tensor, Tensor]:
        """Return the pooled vectors of a packed batch before the head, and the final states.

        Row features and the dropout before the head aren't part of the vectors.

        Args:
            batch: packed.
            context: settings of the forward pass. It isn't changed.

        Returns:
            The pooled vectors, (B, K * H), and the last valid states of all layers and directions,
            (S, L * D, B, hidden). The vectors are in the order of `pooling_names`.
        """
        engine = context.engine or self.engine
        run = self._encoder_run(
            batch, context.random, engine, need_outputs=self.pooling is not None
        )
        packed = self.inputs.read_whole(batch, context.random)
        rows, longest = int(packed.batch_sizes[0]), len(packed.batch_sizes)
        start = self.start(rows, context.random) if context.start is None else context.start
        segment = context.bptt if torch.is_grad_enabled() else self._prediction_steps(engine)
        pooled = None
        if segment is not None and segment < longest:
            start = self.zero_state(rows) if start is None else start
            pooled, state = run_in_segments(run, self.pooling, packed, start, segment)
        else:
            outputs, state = run(packed, start, None)
            if outputs is not None and self.pooling is not None:
                pooled = ops_for(outputs).pool(self.pooling, outputs, packed.batch_sizes)
        parts = [] if pooled is None else [pooled]
        if LAST in pooling_names(self.config.pooling):
            h_n = select_state(state, 0)
            last = last_valid_state(h_n, bidirectional=self.config.bidirectional)
            parts.insert(0, self.join(last))
        return torch.cat(parts, dim=1) if len(parts) > 1 else parts[0], state

    @property
    def whole_sequence_key(self) -> str | None:
        """Config key that makes the branch need whole sequences, or None."""
        if self.config.bidirectional:
            return "model.bidirectional"
        if self.convolutions is not None:
            return "model.convolutions"
        return "data.standardize" if self.inputs.series is not None else None

    def step_logits(self, batch: Batch, context: ForwardContext) -> Tensor:
        """Return the logits after each time step of a packed batch, (N, C), in packed order.

        Row n equals the logits of the sequence if it ended at that step. The final states of the
        context are set. Call it only if `whole_sequence_key` is None. This isn't checked.

        Raises:
            ValueError: If the batch lacks row features.
        """
        packed = self.inputs.read_whole(batch, None)
        sizes = packed.batch_sizes
        start = self.start(int(sizes[0])) if context.start is None else context.start
        engine = context.engine or self.engine
        run = self._encoder_run(batch, None, engine, need_outputs=True)
        states, context.final_states = run(packed, start, None)
        assert states is not None
        parts = [states] if LAST in pooling_names(self.config.pooling) else []
        if self.pooling is not None:
            parts.append(pool_after_each_step(self.pooling, states, sizes))
        if self.static is not None:
            row, _ = rows_and_steps(sizes)
            parts.append(self._embedded_row_features(batch)[row.to(states.device)])
        logits: Tensor = self.head(torch.cat(parts, dim=1))
        return logits

    def dropout_between_layers(
        self, random: RandomNumbers | None, batch_sizes: Tensor, begin: Tensor | None = None
    ) -> Between | None:
        """Return a function that applies dropout between two layers, or None without such dropout.

        Args:
            random: random numbers of the update, or None for prediction.
            batch_sizes: sequences at each time step, (T,), on the CPU.
            begin: time step at which each row begins in its sequence, (B,), or None for 0.
        """
        rate = self.config.dropout
        if random is None or not rate or self.config.num_layers == 1:
            return None

        def drop(states: Tensor, layer: int) -> Tensor:
            purpose = Purpose.ABOVE_LAYER + layer
            return random.drop_steps(states, rate, purpose, batch_sizes, begin)

        return drop

    def check_random(self, random: RandomNumbers | None, dropout: float = 0.0) -> None:
        """Raise ValueError if random numbers that training needs are missing.

        Dropout and random initial states need random numbers in training mode.

        Args:
            random: random numbers of the update, or None.
            dropout: rate of dropout in addition to the rates of the config.
        """
        config = self.config
        drops = dropout or config.dropout or config.embedding_dropout
        if self.training and random is None and (drops or config.initial_state == "random"):
            raise ValueError("random: missing; dropout and random initial states need it to train")

    def zero_state(self, rows: int) -> Tensor:
        """Return states of zeros for B rows, (S, L * D, B, hidden)."""
        return zero_state(self.encoder, rows, like=self.head.weight)

    def start(self, rows: int, random: RandomNumbers | None = None) -> Tensor | None:
        """Return the initial states of B rows, (S, L * D, B, hidden), or None for zeros.

        Args:
            rows: number B of rows.
            random: random numbers of the update, which model.initial_state "random" uses in
                training. If it is None, random initial states are replaced by zeros.
        """
        if self.config.initial_state == "learned":
            return self.initial_state.unsqueeze(2).expand(-1, -1, rows, -1)
        if self.config.initial_state == "random" and random is not None:
            zeros = self.zero_state(rows).permute(2, 0, 1, 3)
            drawn = random.normals(Purpose.INITIAL_STATE, zeros[0].numel()).view(zeros.shape)
            drawn = to_device(drawn.permute(1, 2, 0, 3).contiguous(), zeros.device)
            return self.config.initial_scale * drawn.to(zeros.dtype)
        return None

    def join(self, states: Tensor) -> Tensor:
        """Join the states of both directions, (…, D * hidden) -> (…, H), as model.join says.

        States of one direction are returned unchanged.
        """
        return join_directions(states, self.config.join) if self.config.bidirectional else states

    def _embedded_row_features(self, batch: Batch) -> Tensor:
        if batch.static is None or self.static is None:
            raise ValueError("static: missing; the model was trained with data.static")
        embedded: Tensor = self.static(batch.static)
        return embedded

    def _encoder_run(
        self, batch: Batch, random: RandomNumbers | None, engine: Engine, *, need_outputs: bool
    ) -> RunPacked:
        """Return a function that embeds and encodes packed steps; see `RunPacked`.

        Args:
            batch: the batch to which the packed steps belong.
            random: random numbers for dropout, or None for prediction.
            engine: engine that computes the recurrence.
            need_outputs: True if the function should return the states of all time steps. They are
                joined as by `join`.
        """

        def run(
            packed: PackedSequence, start: Tensor | None, begin: Tensor | None
        ) -> tuple[Tensor | None, Tensor]:
            outputs, state = engine.run(
                self.encoder,
                self.inputs.read(packed, batch, random, begin),
                start,
                need_outputs=need_outputs,
                between=self.dropout_between_layers(random, packed.batch_sizes, begin),
            )
            return None if outputs is None else self.join(outputs), state

        return run

    def _prediction_steps(self, engine: Engine) -> int | None:
        """Return the length of a segment in prediction, or None to run whole sequences at once.

        A bidirectional encoder and an engine that always pads run whole sequences.
        """
        return None if self.config.bidirectional or engine.pads else PREDICTION_STEPS

    def begin_export(self) -> ExampleInputs:
        """Return examples of the inputs that `export` reads besides time steps and lengths.

        These are row features, and the n-grams of unknown words if the model has subwords. For
        subwords, the method also computes the vectors of all known words, which `export` needs.
        """
        inputs: ExampleInputs = {}
        if self.static is not None:
            inputs[STATIC] = torch.ones(2, self.static.columns), ["batch"]
        if self.subwords is not None:
            inputs[UNKNOWN_COUNTS] = torch.tensor([3, 2]), ["unknown words"]
            inputs[UNKNOWN_BUCKETS] = torch.arange(5), ["unknown n-grams"]
            with torch.no_grad():
                grams = self.subwords(torch.arange(len(self.subwords)))
                self._export_vectors = self.embedding.get_parameter("weight") + grams
        return inputs

    def export(self, batch: PaddedBatch) -> Tensor:
        """Return the logits of padded sequences, (B, C). They match the result of `forward`.

        Call `begin_export` before.
        """
        steps, valid, lengths = batch.steps, batch.valid, batch.lengths
        if self.subwords is not None:
            steps = self._export_words(batch)
        else:
            if self.inputs.series is not None:
                steps = self.inputs.series(steps, batch.sequences)
            steps = self.embedding(steps)
        for layer in [] if self.convolutions is None else self.convolutions.layers:
            steps = layer.export(steps, valid)
            lengths = torch.div(lengths + layer.stride - 1, layer.stride, rounding_mode="floor")
            valid = valid_steps(steps, lengths)
        start = self.initial_state if self.config.initial_state == "learned" else None
        states, last = encode_padded(self.encoder, steps, lengths, start)
        sequences = PaddedSequences(valid, lengths)
        parts = [self.join(last)] if LAST in pooling_names(self.config.pooling) else []
        if self.pooling is not None:
            parts.append(pool(self.pooling, self.join(states), sequences))
        if self.static is not None:
            parts.append(self.static(batch.inputs[STATIC]))
        logits: Tensor = self.head(torch.cat(parts, dim=1))
        return logits

    def _export_words(self, batch: PaddedBatch) -> Tensor:
        """Return word vectors with subwords, (T, B, E).

        In a vocabulary of V words, id V + i is unknown word i of the batch.
        """
        assert self.subwords is not None
        ids, counts = batch.steps, batch.inputs[UNKNOWN_COUNTS]
        size, weight = len(self.subwords), self.subwords.weight
        grams = weight[batch.inputs[UNKNOWN_BUCKETS] % len(weight)].double()
        # The sum of neighbours is a difference of sums from the beginning.
        sums_from_start = functional.pad(grams.cumsum(0), (0, 0, 1, 0))
        ends = counts.cumsum(0)
        totals = sums_from_start[ends] - sums_from_start[ends - counts]
        scaled = totals / counts.clamp(min=1).double().sqrt()[:, None]
        unknown = functional.pad(scaled, (0, 0, 1, 0)).float()  # row 0 is for known words
        is_known = ids < size
        known = self._export_vectors[torch.where(is_known, ids, UNK)]
        return known + unknown[torch.where(is_known, 0, ids - size + 1)]


def recurrent_branch(network: nn.Module) -> RecurrentBranch:
    """Return the recurrent branch of a classifier."""
    branch = network.get_submodule(RecurrentBranch.name)
    assert isinstance(branch, RecurrentBranch)
    return branch
