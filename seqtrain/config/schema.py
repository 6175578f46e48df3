"""Every key of a configuration: its type, default, range and meaning. The only list of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from seqtrain.config.formats import resolve_kind


def _wanted(words: str, **limits: Any) -> Any:
    """Limits of a type, and the words in which messages name it (kept as JSON Schema comment)."""
    return Field(json_schema_extra={"$comment": words}, **limits)


NO_NUL = r"^[^\x00]+$"
PositiveInt = Annotated[int, Field(ge=1, le=2**31 - 1)]
LARGEST_WIDTH = 65536
Width = Annotated[int, Field(ge=1, le=LARGEST_WIDTH)]
Fraction = Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False)]
HeldOut = Annotated[float, Field(gt=0.0, lt=1.0, allow_inf_nan=False)]
Fold = Annotated[
    dict[Literal["fold", "of"], PositiveInt],
    _wanted("{fold: I, of: N}", min_length=2, max_length=2),
]
Positive = Annotated[float, Field(gt=0.0, le=1e9, allow_inf_nan=False)]
Path = Annotated[str, _wanted("a file path", pattern=NO_NUL)]
Column = (
    Annotated[str, _wanted("a column name", pattern=NO_NUL)]
    | Annotated[int, _wanted("a column index from 0", ge=0, le=2**31 - 1)]
)
Columns = Annotated[list[Column], _wanted("a list of columns", min_length=1)]
Paths = Annotated[
    list[Path],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    _wanted("a file path, a list of file paths", min_length=1),
]
Files = Annotated[list[Path], _wanted("a list of file paths", min_length=1)]
Label = Annotated[str, Field(min_length=1)]
ClassWeights = Annotated[dict[Label, Positive], _wanted("{label: weight}")]
Interval = Annotated[
    dict[Literal["steps", "minutes"], Positive],
    _wanted("{steps: N} or {minutes: M}", min_length=1, max_length=1),
]
CudaIndex = Annotated[str, _wanted("cuda:N", pattern=r"^cuda:[0-9]{1,3}$")]
_GramSize = Annotated[int, Field(ge=1, le=16)]
GramSizes = Annotated[list[_GramSize], _wanted("[shortest, longest]", min_length=2, max_length=2)]
_LayerNumber = Annotated[int, Field(ge=1, le=4096)]
Convolution = Annotated[
    list[_LayerNumber], _wanted("[width, kernel, stride]", min_length=3, max_length=3)
]
Convolutions = Annotated[
    list[Convolution], _wanted("a list of [width, kernel, stride]", min_length=1, max_length=16)
]
Pooling = Literal["last", "mean", "max", "attention"]
Poolings = Annotated[list[Pooling], _wanted("a list of these", min_length=1, max_length=4)]
_Amount = Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)]
Augmentation = Annotated[
    dict[Literal["shift", "slice"], _Amount],
    _wanted("{shift: deviations, slice: share}", min_length=1, max_length=2),
]
_Between = Annotated[
    dict[Literal["low", "high"], int | Annotated[float, Field(allow_inf_nan=False)]],
    _wanted("{low: number, high: number}", min_length=2),
]
_Tried = Annotated[list[Any], _wanted("a list of values", min_length=1)] | _Between | None
TunedKeys = Annotated[dict[str, _Tried], _wanted("a mapping of section.key to what is tried")]
Metric = Literal["accuracy", "macro_f1", "weighted_f1", "loss"]
Format = Literal["auto", "csv", "tsv", "jsonl", "fasttext", "txt", "ts", "npz", "parquet"]


class Section(BaseModel):
    """A frozen group of keys; unknown keys and loose types are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


class DataConfig(Section):
    """Which files hold the sequences, and how a sequence becomes ids."""

    train: Path | Files
    """File of labelled sequences to learn from (for format txt also a folder); or a pattern such as
    part-*.jsonl, or a list of these, which read as one file."""
    validation: Path | Files | HeldOut | Fold | None = None
    """File or files, or a fraction of train held out by a seeded, stratified split, or
    {fold: I, of: N}: one of N such parts of train; null: none."""
    test: Path | Files | HeldOut | None = None
    """File or files, or a fraction of train held out, scored once at the end, at the best epoch;
    null: none."""
    format: Format = "auto"
    """File format; auto goes by the file name, also under .gz or .zst."""
    header: Literal["auto"] | bool = "auto"
    """csv, tsv: whether the first row names the columns; auto: true where a column is named."""
    quoting: Literal["auto", "standard", "none"] = "auto"
    """csv, tsv: standard reads "…" as one field; auto: standard for csv, none for tsv."""
    delimiter: Literal["auto", "comma", "semicolon", "tab", "pipe"] = "auto"
    """csv, tsv: what separates fields; auto: tab in tsv, found from the first lines in csv."""
    kind: Literal["auto", "text", "tokens", "features"] = "auto"
    """text; tokens (symbols, already split); features (one vector of floats per step); auto:
    features where train is ts or npz, else text."""
    sequence: Column | Columns | None = None
    """Column of the sequence: a name or an index from 0; a list is joined by a space."""
    label: Column | None = None
    """Column of the label: a name or an index from 0."""
    group: Column | None = None
    """csv, tsv, jsonl: column of the group (conversation, session) whose rows stand in order."""
    tokenizer: Literal["word", "whitespace", "char", "byte", "bpe"] = "word"
    """text: word (runs of letters and digits, or single marks), whitespace, char, byte, bpe."""
    lowercase: bool = True
    """text: lower-case before splitting."""
    min_count: PositiveInt = 1
    """Occurrences in train (and pretraining.data) that a token needs to enter the vocabulary."""
    max_vocab_size: Annotated[int, Field(ge=3, le=2**31 - 1)] = 30000
    """Largest vocabulary, <pad> and <unk> included; the most frequent tokens stay."""
    max_length: PositiveInt | None = None
    """Longest sequence in steps; longer ones are cut by overlong; null: no limit."""
    overlong: Literal["head", "tail", "middle", "error"] = "head"
    """Which part of an overlong sequence is kept, or error."""
    empty: Literal["error", "drop", "unk"] = "error"
    """A sequence of no steps: error, drop the row, or read it as one <unk> (features: zeros)."""
    missing: Literal["error", "mask"] = "error"
    """features: a missing value is an error, or 0 with an indicator channel beside it."""
    standardize: Literal["train", "series", "both"] = "train"
    """features: by train's mean and deviation, by each series' own, or both side by side."""
    bad_rows: Literal["error", "drop"] = "error"
    """A row that can't be read: error, or (in fit and eval) drop, which names and counts it."""

    @model_validator(mode="after")
    def _name_the_kind(self) -> DataConfig:
        """Put the kind that auto stands for in its place; it still counts as not given."""
        self.__dict__["kind"] = resolve_kind(self.train, self.format, self.kind)
        return self


class BatchingConfig(Section):
    """How sequences are grouped into batches."""

    batch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    """Sequences per batch, where max_tokens is null."""
    max_tokens: PositiveInt | None = None
    """Steps per batch with padding (rows times the longest); null: batch_size decides."""
    bucketing: bool = True
    """Put sequences of similar length together; false: random batches."""
    sort: Literal["collate", "module"] = "collate"
    """Where a batch is sorted by length: as it is put together, or padded, in the model."""


class ModelConfig(Section):
    """The network: input, recurrent encoder, pooling, head."""

    embedding_dim: Width | None = None
    """Size of the vector a token (or a feature vector) is mapped to; null: that of vectors, or
    128."""
    embedding_std: Annotated[float, Field(gt=0.0, le=10.0, allow_inf_nan=False)] = 0.3
    """Standard deviation of initial token vectors: 0.1 to 0.3 for words, 1 for small alphabets."""
    vectors: Path | None = None
    """text, tokens: file of word vectors to begin with, .vec, GloVe's or word2vec's text, also .gz
    or .zst; null: none."""
    vectors_keep: Annotated[int, Field(ge=0, le=2**24)] = 20_000
    """Words of vectors that train lacks and the model knows anyway: so many, the first ones."""
    freeze: bool | PositiveInt = False
    """text, tokens: whether the tokens' vectors stay as they are; a number: for so many epochs."""
    subwords: GramSizes | None = None
    """text: add vectors of each word's character n-grams, of so many characters; null: none."""
    convolutions: Convolutions | None = None
    """[width, kernel, stride] of each layer before the encoder (features: in place of the linear
    map); null: none."""
    ngrams: GramSizes | None = None
    """text, tokens: a linear classifier on n-grams of so many tokens beside it; null: none."""
    max_ngrams: Annotated[int, Field(ge=1, le=2**24)] = 300_000
    """n-grams at most; the most frequent of train stay."""
    rnn: Literal["gru", "lstm", "rnn"] = "gru"
    """Recurrent cell."""
    hidden_size: Width = 128
    """Size of the hidden state of each layer and direction."""
    num_layers: Annotated[int, Field(ge=1, le=64)] = 1
    """Recurrent layers, one above the other."""
    bidirectional: bool = False
    """Also read each sequence backward and join both states."""
    join: Literal["concat", "sum", "mean"] = "concat"
    """bidirectional: how the states of both directions become what pooling sees."""
    pooling: Pooling | Poolings = "last"
    """What the head sees: last valid state, mean, max or attention over valid steps; or a list."""
    initial_state: Literal["zeros", "random", "learned", "carried"] = "zeros"
    """State before the first step: random (in training), learned, carried on in data.group."""
    initial_scale: Positive = 0.1
    """Standard deviation of a random initial state."""
    unroll: Literal["packed", "padded", "masked"] = "packed"
    """How the encoder runs over unequal lengths; the results are equal; packed is the fastest."""
    engine: Literal["auto", "native", "torch"] = "auto"
    """What computes the recurrence: native (C++) or torch; auto: native where it can run."""
    dropout: Fraction = 0.5
    """Fraction of units dropped before the head and between layers."""
    embedding_dropout: Fraction = 0.5
    """Fraction of embedded units dropped; of a token the same wherever it stands in the batch."""

    @model_validator(mode="after")
    def _name_the_width(self) -> ModelConfig:
        """Put 128 where no file says the width; it still counts as not given."""
        if self.vectors is None and self.embedding_dim is None:
            self.__dict__["embedding_dim"] = 128
        return self

    @property
    def width(self) -> int:
        """Size of an embedded step."""
        if self.embedding_dim is None:
            raise ValueError("model.embedding_dim: read the file of model.vectors first")
        return self.embedding_dim

    @property
    def architecture(self) -> ModelConfig:
        """What a model on its own is told: it needs no file, and doesn't learn."""
        return self.model_copy(update=_OF_TRAINING)


_OF_TRAINING = {
    name: ModelConfig.model_fields[name].default for name in ("vectors", "vectors_keep", "freeze")
}


class TrainingConfig(Section):
    """The optimization and when it stops."""

    max_epochs: Annotated[int, Field(ge=1, le=1_000_000)] | Literal["auto"] = "auto"
    """Passes over train at most; auto: 10, or up to 100 where 10 are fewer than 2,000 updates."""
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    """Update rule; sgd has momentum 0.9."""
    sparse_embedding: bool = True
    """Update only tokens of the batch, make up for skipped steps later; false: update all."""
    lr: Annotated[float, Field(gt=0.0, le=1000.0, allow_inf_nan=False)] = 0.004
    """Peak learning rate."""
    weight_decay: Annotated[float, Field(ge=0.0, le=1000.0, allow_inf_nan=False)] = 0.0
    """Decay of weight matrices (biases never): decoupled in adamw, an L2 term in adam and sgd."""
    schedule: Literal["constant", "linear", "cosine", "plateau"] = "linear"
    """Learning rate after warm-up; plateau: halved after each epoch without a better monitor."""
    warmup: Fraction = 0.0
    """Fraction of all steps over which the learning rate rises from 0."""
    bptt: PositiveInt | None = None
    """Steps that gradients reach back at most, which bounds memory too; null: all."""
    max_grad_norm: Positive | None = 1.0
    """Gradients are scaled down to this norm; null: no clipping."""
    patience: PositiveInt | Literal["auto"] | None = "auto"
    """Epochs without a better monitored value before stopping; auto: 3 or a fifth of all epochs,
    counted anew whenever the validation loss falls; null: never stop early."""
    monitor: Metric = "accuracy"
    """Validation metric that chooses the best epoch (of train where there is no validation)."""
    class_weights: Literal["balanced"] | ClassWeights | None = None
    """Weight of each class in the loss: balanced (inverse frequency), {label: weight}, or null."""
    label_smoothing: Fraction = 0.0
    """Probability mass of the target spread over all classes."""
    augment: Augmentation | None = None
    """features, in training: shift each series by a normal number a channel, in deviations; slice
    off at most this share; null: neither."""
    refit: bool = False
    """Train anew on train and validation together, up to the last epoch within one standard error
    of the best."""
    calibration: Literal["temperature", "none"] = "temperature"
    """temperature: in the end, divide the logits by the number that suits validation best; none."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """bfloat16 runs matrix products under autocast."""
    checkpoint_every: Interval | None = None
    """{steps: N} or {minutes: M} between checkpoints; null: only at the end of each epoch."""
    deterministic: bool = False
    """cuda: slower algorithms that give equal bits; a run on the CPU gives them anyway."""
    device: Literal["auto", "cpu", "cuda", "mps"] | CudaIndex = "auto"
    """auto (cuda, else mps, else cpu), cpu, cuda, cuda:N, mps."""


class PretrainingConfig(Section):
    """What the encoder learns from sequences without labels, before training."""

    objective: Literal["autoencoder", "language_model"] | None = None
    """language_model: predict each next token; autoencoder: the read sequence; null: none."""
    data: Paths | None = None
    """Files of more sequences, read as train is; labels aren't needed."""
    max_epochs: Annotated[int, Field(ge=1, le=1_000_000)] = 5
    """Passes over train and these files."""
    lr: Annotated[float, Field(gt=0.0, le=1000.0, allow_inf_nan=False)] = 0.002
    """Peak learning rate."""
    max_length: PositiveInt | None = 100
    """Longer sequences are read in pieces of this many steps, each on its own; null: whole."""
    dropout: Fraction = 0.2
    """Fraction of units dropped from embedded steps and from the states that predict."""


class TuneConfig(Section):
    """What `seqtrain tune` tries; fit leaves it alone."""

    space: TunedKeys | None = None
    """Values to try by `section.key`: a list, or {low: number, high: number}; null: not this key.
    Other keys as for the kind of data."""


class Config(Section):
    """One whole run of training."""

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """Seed of the split, the initial weights, the batch order and dropout."""
    data: DataConfig
    batching: BatchingConfig = BatchingConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    pretraining: PretrainingConfig = PretrainingConfig()
    tune: TuneConfig = TuneConfig()
