"""The recurrent branch: input layers, recurrent encoder, pooling, and a linear classifier.

B sequences, T longest length, N packed time steps, H width of a state (both directions). C classes,
K poolings, L layers, D directions, S tensors of a state.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.cells import zero_state
from seqtrain.engines.choice import choose_engine
from seqtrain.engines.interface import Between, Engine
from seqtrain.engines.layout import Layout, Packed
from seqtrain.model.branches.branch import Branch, ForwardContext, VectorTable
from seqtrain.model.column_embedding import ColumnEmbedding
from seqtrain.model.encoder import make_encoder, run_in_segments
from seqtrain.model.initialization import draw_embedding, draw_head, draw_recurrence
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.inputs import Inputs, SideInputs
from seqtrain.model.pooling import LAST_STATE, PoolingList, pooling_names
from seqtrain.model.randomness import Purpose, RandomNumbers
from seqtrain.sequences.transfer import to_device

PREDICTION_STEPS = 16384
"""Largest number of time steps of a segment in prediction, which limits the memory."""


class RecurrentBranch(Branch):
    """Many-to-one classifier on the last valid hidden state, on pooled valid states, or on both.

    Args:
        config: the section model of a config.
        spec: description of inputs and classes.

    Attributes:
        inputs: the layers before the encoder.
        encoder: torch's recurrent module, which holds the parameters for all engines.
        pooling: pooling of all states, or None if only the last valid state is used.
        takes_last: True if the last valid state is used.
        static: embedding of row features, or None without any.
        head: linear classifier of the pooled states and the row features.
        pooled_width: size of the pooled vector, K * H.
        initial_state: learned initial state, (S, L * D, hidden). It only exists if
            model.initial_state is learned.
    """

    name = "recurrent"
    title = "recurrent network"

    def __init__(self, config: ModelConfig, spec: InputSpec) -> None:
        super().__init__()
        self.config = config
        self._engines: dict[tuple[torch.device, torch.dtype], Engine] = {}
        width = config.hidden_size
        if config.bidirectional and config.join == "concat":
            width *= 2
        self.inputs = Inputs(config, spec)
        self.embedding = self.inputs.embedding
        self.subwords = self.inputs.subwords
        self.convolutions = self.inputs.convolutions
        self.encoder = make_encoder(config, self.inputs.width)
        names = pooling_names(config.pooling)
        self.takes_last = LAST_STATE in names
        pooled = [name for name in names if name != LAST_STATE]
        self.pooling = None
        if pooled:
            self.pooling = PoolingList(pooled, width, config.attention_size)
        self.static = None
        self.pooled_width = width * len(names)
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

    def freeze_embedding(self, *, frozen: bool) -> None:
        """Freeze the vectors of tokens if `frozen` is True; let them learn if it is False.

        Only an embedding of single tokens can be frozen. Any other input layer, such as that of
        numbers, always learns.
        """
        if isinstance(self.embedding, nn.Embedding):
            self.embedding.weight.requires_grad_(not frozen)

    def tables(self) -> list[VectorTable]:
        """Return the tables of tokens, of character n-grams, and of all token columns.

        The columns are step columns and row features.
        """
        found: list[VectorTable] = []
        if isinstance(self.embedding, nn.Embedding):
            found.append(self.embedding)
        if self.subwords is not None:
            found.append(self.subwords)
        for part in (self.embedding, self.static):
            found += part.embeddings if isinstance(part, ColumnEmbedding) else []
        return found

    def forward(
        self, steps: Tensor, layout: Layout, side: SideInputs, context: ForwardContext
    ) -> Tensor:
        """Return the logits, and set the final states of the context; see `Branch.forward`.

        Raises:
            ValueError: If random numbers that training needs are missing, or if the batch lacks row
                features.
            ConfigError: If model.engine asks for an engine that can't run here.
        """
        random = context.random
        if self.training:
            self.check_random(random)
        pooled = self.embed(steps, layout, side, context)
        if self.static is not None:
            if side.static is None:
                raise ValueError("static: missing; the model was trained with data.static")
            embedded = self.static(side.static)
            if layout.every_step:
                embedded = layout.spread(embedded)
            pooled = torch.cat((pooled, embedded), dim=1)
        if random is not None:
            pooled = random.drop(pooled, self.config.dropout, Purpose.HEAD, random.examples)
        logits: Tensor = self.head(pooled)
        return logits

    def embed(
        self, steps: Tensor, layout: Layout, side: SideInputs, context: ForwardContext
    ) -> Tensor:
        """Return the pooled vectors before the head, (B, K * H), and set the final states.

        Row features and the dropout before the head aren't part of the vectors. The vectors are in
        the order of `pooling_names`. The arguments are as in `forward`.
        """
        weight, random = self.head.weight, context.random
        engine = context.engine or self._engine_for(weight)
        need_outputs = self.pooling is not None or layout.every_step

        def run(
            steps: Tensor, layout: Layout, start: Tensor | None, begin: Tensor | None
        ) -> tuple[Tensor | None, Tensor]:
            vectors = self.inputs.read(steps, layout, side, random, begin)
            if random is None:
                between = None
            else:
                between = self.dropout_between_layers(random, layout, begin)
            states, last = engine.run(
                self.encoder, vectors, layout, start, need_outputs=need_outputs, between=between
            )
            return None if states is None else self.join(states), last

        steps, layout = self.inputs.read_whole(steps, layout, side, random)
        rows = layout.rows
        if context.start is None:
            start = self.start(rows, random)
        else:
            start = context.start
        if torch.is_grad_enabled():
            length = context.bptt
        else:
            length = PREDICTION_STEPS
        in_segments = torch.is_grad_enabled() or not (self.config.bidirectional or engine.pads)
        in_segments = in_segments and not layout.every_step
        parts: list[Tensor] = []
        if in_segments and isinstance(layout, Packed) and length and layout.longest > length:
            start = self.zero_state(rows) if start is None else start
            pooled, state = run_in_segments(run, self.pooling, steps, layout, start, length)
            if pooled is not None:
                parts.append(pooled)
        else:
            states, state = run(steps, layout, start, None)
            if states is not None and self.pooling is not None:
                parts.append(self.pooling(states, layout))
            if states is not None and layout.every_step and self.takes_last:
                parts.insert(0, states)
        if self.takes_last and not layout.every_step:
            h_n = select_state(state, 0)
            last = select_state(h_n, -1)
            if self.config.bidirectional:
                last = torch.cat((h_n[-2], last), dim=1)
            parts.insert(0, self.join(last))
        context.final_states = state
        if len(parts) > 1:
            return torch.cat(parts, dim=1)
        return parts[0]

    def _engine_for(self, weight: Tensor) -> Engine:
        """Return the engine for weights like this one, which is chosen once."""
        kind = weight.device, weight.dtype
        if kind not in self._engines:
            self._engines[kind] = choose_engine(self.config, *kind)
        return self._engines[kind]

    @property
    def whole_sequence_key(self) -> str | None:
        """Config key that makes the branch need whole sequences, or None."""
        if self.config.bidirectional:
            return "model.bidirectional"
        if self.convolutions is not None:
            return "model.convolutions"
        if self.inputs.series is not None:
            return "data.standardize"
        return None

    def dropout_between_layers(
        self, random: RandomNumbers, layout: Layout, begin: Tensor | None = None
    ) -> Between | None:
        """Return a function that applies dropout between two layers, or None without such dropout.

        Args:
            random: random numbers of the update.
            layout: positions of the time steps.
            begin: time step at which each row begins in its sequence, (B,), or None for 0.
        """
        rate = self.config.dropout
        if not rate or self.config.num_layers == 1:
            return None
        assert isinstance(layout, Packed)

        def drop(states: Tensor, layer: int) -> Tensor:
            purpose = Purpose.ABOVE_LAYER + layer
            return random.drop_steps(states, rate, purpose, layout, begin)

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
        if not self.config.bidirectional or self.config.join == "concat":
            return states
        forward, backward = states.chunk(2, dim=-1)
        total = forward + backward
        if self.config.join == "mean":
            return total / 2
        return total


def select_state(states: Tensor, index: int) -> Tensor:
    """Return states[index]. If `states` has one entry, `squeeze` avoids a copy of its gradient."""
    if len(states) == 1:
        return states.squeeze(0)
    return states[index]


def recurrent_branch(network: nn.Module) -> RecurrentBranch:
    """Return the recurrent branch of a classifier."""
    branch = network.get_submodule(RecurrentBranch.name)
    assert isinstance(branch, RecurrentBranch)
    return branch
