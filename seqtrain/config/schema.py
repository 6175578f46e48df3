"""Every key of a config: its type, default, range and meaning. The only list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from seqtrain.config.document import brief
from seqtrain.config.formats import (
    NUMBER_FORMATS,
    is_text_encoding,
    names_of,
    resolve_format,
)
from seqtrain.config.rules import broken_rules
from seqtrain.metrics import MONITORED

BROKEN_RULE = "broken_rule"
"""Type of the errors whose text is a message already."""


def _wanted(words: str, **limits: Any) -> Any:
    """Limits of a type, and the words in which messages name it (kept as JSON Schema comment)."""
    return Field(json_schema_extra={"$comment": words}, **limits)


def _broken(text: str) -> PydanticCustomError:
    return PydanticCustomError(BROKEN_RULE, "{text}", {"text": text})


def _must(words: str, test: Callable[[Any], bool]) -> AfterValidator:
    def check(value: Any) -> Any:
        if not test(value):
            raise _broken(f"found {brief(value)}; expected {words}")
        return value

    return AfterValidator(check)


NO_NUL = r"^[^\x00]+$"
PositiveInt = Annotated[int, Field(ge=1, le=2**31 - 1)]
LARGEST_WIDTH = 65536
Width = Annotated[int, Field(ge=1, le=LARGEST_WIDTH)]
Epochs = Annotated[int, Field(ge=1, le=1_000_000)]
LearningRate = Annotated[float, Field(gt=0.0, le=1000.0)]
Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
HeldOut = Annotated[float, Field(gt=0.0, lt=1.0)]
Fold = Annotated[
    dict[Literal["fold", "of"], PositiveInt],
    _wanted("{fold: I, of: N}", min_length=2, max_length=2),
    _must("fold from 1 to of, and of from 2 on", lambda fold: 2 <= fold["of"] >= fold["fold"]),
]
Positive = Annotated[float, Field(gt=0.0, le=1e9)]
Encoding = Annotated[
    str, _must("the name of a text encoding, such as cp1252, gbk or utf-16", is_text_encoding)
]
Path = Annotated[str, _wanted("a file path", pattern=NO_NUL)]
Column = (
    Annotated[str, _wanted("a column name", pattern=NO_NUL)]
    | Annotated[int, _wanted("a column index from 0", ge=0, le=2**31 - 1)]
)
Columns = Annotated[list[Column], _wanted("a list of columns", min_length=1)]
ColumnName = Annotated[str, _wanted("a column name", pattern=NO_NUL, min_length=1)]
TokenColumn = Annotated[
    dict[Literal["token", "min_count"], Literal[True] | PositiveInt],
    _wanted("{token: true, min_count: N}", min_length=2, max_length=2),
    _must(
        "{token: true, min_count: N}",
        lambda column: column["token"] is True and column["min_count"] is not True,
    ),
]
StepColumns = Annotated[
    dict[ColumnName, Literal["token", "number", "order"] | TokenColumn],
    _wanted("{column: token, number or order}", min_length=1),
]
StaticColumns = Annotated[
    dict[ColumnName, Literal["token", "number"] | TokenColumn],
    _wanted("{column: token or number}", min_length=1),
]
Files = Annotated[list[Path], _wanted("a list of file paths", min_length=1)]
Paths = Annotated[
    Files, BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]
Label = Annotated[str, Field(min_length=1)]
ClassWeights = Annotated[dict[Label, Positive], _wanted("{label: weight above 0}")]
Interval = Annotated[
    dict[Literal["steps", "minutes"], Positive],
    _wanted("{steps: N} or {minutes: M} above 0", min_length=1, max_length=1),
    _must("a whole number of steps", lambda every: every.get("steps", 1.0).is_integer()),
]
CudaIndex = Annotated[str, _wanted("cuda:N", pattern=r"^cuda:[0-9]{1,3}$")]
GramSizes = Annotated[
    list[Annotated[int, Field(ge=1, le=16)]],
    _wanted("[shortest, longest] from 1 to 16", min_length=2, max_length=2),
    _must("the shorter size first", lambda sizes: sizes[0] <= sizes[1]),
]
GramColumns = Annotated[
    dict[ColumnName, GramSizes], _wanted("{column: [shortest, longest]}", min_length=1)
]
Convolution = Annotated[
    list[Annotated[int, Field(ge=1, le=4096)]],
    _wanted("[width, kernel, stride]", min_length=3, max_length=3),
    _must("an odd kernel, which has a middle", lambda layer: layer[1] % 2 == 1),
]
Convolutions = Annotated[
    list[Convolution],
    _wanted("a list of [width, kernel, stride] up to 4096", min_length=1, max_length=16),
]
Pooling = Literal["last", "mean", "max", "attention"]
Poolings = Annotated[
    list[Pooling],
    _wanted("a list of these", min_length=1, max_length=4),
    _must("each of them once", lambda names: len(set(names)) == len(names)),
]
Augmentation = Annotated[
    dict[Literal["shift", "slice"], Annotated[float, Field(ge=0, le=10)]],
    _wanted("{shift: deviations, slice: share}", min_length=1, max_length=2),
    _must("slice below 1", lambda augment: augment.get("slice", 0.0) < 1.0),
]
Between = Annotated[
    dict[Literal["low", "high"], int | Annotated[float, Field(allow_inf_nan=False)]],
    _wanted("{low: number, high: number}", min_length=2),
]
Tried = Annotated[list[JsonValue], _wanted("a list of values", min_length=1)] | Between | None
TunedKeys = Annotated[
    dict[str, Tried],
    _wanted("a mapping of section.key to a list of values or {low: number, high: number}"),
]
if TYPE_CHECKING:
    Metric: TypeAlias = str
else:
    Metric = Literal[MONITORED]
Format = Literal[
    "auto", "csv", "tsv", "jsonl", "fasttext", "txt", "fasta", "ts", "npz", "parquet", "arrow"
]


OF_TRAINING = {
    *("embedding_std", "max_ngrams", "initial_scale", "unroll", "engine", "dropout"),
    *("embedding_dropout", "vectors", "vectors_keep", "freeze"),
}
"""Keys of the model section that change no prediction of a trained model."""


class Section(BaseModel):
    """A frozen group of keys; unknown keys and loose types are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class DataConfig(Section):
    """Which files hold the sequences, and how a sequence becomes ids."""

    train: Path | Files
    """Labelled sequences to train on: a file, a pattern such as part-*.jsonl, a list of these, or
    (txt) a folder."""
    validation: Path | Files | HeldOut | Fold | None = None
    """Validation data: files; a fraction of train, held out at random and stratified by label; or
    {fold: I, of: N}, one of N such parts of train. null: none."""
    test: Path | Files | HeldOut | None = None
    """Test data: files, or a fraction of train. It is scored once, at the end. null: none."""
    format: Format = "auto"
    """Format of the files. auto: by their names; .gz or .zst after the ending: compressed."""
    header: Literal["auto"] | bool = "auto"
    """csv, tsv: whether the first row names the columns. auto: true if a key names a column."""
    quoting: Literal["auto", "standard", "none"] = "auto"
    """csv, tsv: standard reads "…" as one field. auto: standard for csv, none for tsv."""
    delimiter: Literal["auto", "comma", "semicolon", "tab", "pipe"] = "auto"
    """csv, tsv: what separates fields. auto: a tab for tsv; found from the first lines for csv."""
    encoding: Encoding = "utf-8"
    """Encoding of lines that aren't UTF-8, such as cp1252 or gbk; utf-16: of the whole file."""
    kind: Literal["auto", "text", "tokens", "features", "steps"] = "auto"
    """What sequences are made of: text, tokens (symbols, already split), features (a vector of
    numbers per time step) or steps (a row per time step: data.steps). auto: steps with data.steps,
    features for ts and npz, else text."""
    sequence: Column | Columns | None = None
    """Column of the sequence: its name, or its index from 0. Of a list, texts are joined by spaces;
    features are channels, or, as single numbers, time steps (null: all columns of a csv)."""
    id: Column | None = None
    """Column of the sequence's name, where a row is a time step: rows of one id are a sequence."""
    order: Column | None = None
    """id: column that sorts the rows of an id: numbers or ISO dates. null: as in the file."""
    steps: StepColumns | None = None
    """id: columns of a time step, in place of data.sequence. token: a symbol (with min_count:
    {token: true, min_count: N}); number; order: what data.order grew by since the step before, in
    seconds for dates, under a name of your choice."""
    static: StaticColumns | None = None
    """Columns beside the sequence, one value for each sequence: token or number, as in steps."""
    label: Column | None = None
    """Column of the label: its name, or its index from 0."""
    label_separator: Annotated[str, Field(min_length=1, max_length=16)] | None = None
    """What stands between the labels of a row that may have several, or none, such as "|". null:
    one label per row, or lists of labels in jsonl and parquet."""
    group: Column | None = None
    """Column that says which rows follow one another (with model.initial_state: carried)."""
    tokenizer: Literal["word", "whitespace", "char", "byte", "bpe"] = "word"
    """text: how it is split; word: runs of letters and digits, and single marks."""
    lowercase: bool = True
    """text: convert to lower case before splitting."""
    min_count: PositiveInt = 1
    """Least number of occurrences in train (and pretraining.data) of a token of the vocabulary."""
    max_vocab_size: Annotated[int, Field(ge=3, le=2**31 - 1)] = 30000
    """Largest vocabulary, <pad> and <unk> included; the most frequent tokens stay."""
    max_length: PositiveInt | None = None
    """Largest number of time steps; longer sequences are cut (see overlong). null: no limit."""
    overlong: Literal["head", "tail", "middle", "error"] = "head"
    """Part of an overlong sequence that is kept, or error."""
    empty: Literal["error", "drop", "unk"] = "error"
    """Sequence of no time steps: error, drop the row, or read one <unk> (features: zeros)."""
    missing: Literal["error", "mask"] = "error"
    """A missing number is an error, or 0 with a channel beside it that marks it."""
    standardize: Literal["train", "series", "both"] = "train"
    """numbers: scale by mean and deviation of train, of each sequence, or both side by side."""
    bad_rows: Literal["error", "drop"] = "error"
    """Row that can't be read: error, or drop (fit and eval name and count them)."""

    @model_validator(mode="after")
    def _name_the_kind(self) -> DataConfig:
        """Replace auto by the kind that it stands for; it still counts as not given."""
        if self.kind == "auto":
            of_numbers = resolve_format(names_of(self.train)[0], self.format) in NUMBER_FORMATS
            kind = "features" if of_numbers else "text"
            self.__dict__["kind"] = kind if self.steps is None else "steps"
        return self


class BatchingConfig(Section):
    """How sequences are grouped into batches."""

    batch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    """Sequences per batch, where max_tokens is null."""
    max_tokens: PositiveInt | None = None
    """Time steps per batch, padding included (sequences times the longest). null: batch_size."""
    bucketing: bool = True
    """Put sequences of similar length into the same batch. false: random batches."""
    sort: Literal["collate", "module"] = "collate"
    """Where a batch is sorted by length: as it is put together, or inside the model, padded."""


class ModelConfig(Section):
    """The network: input, recurrent encoder, pooling, head."""

    embedding_dim: Width | None = None
    """Size of the vector for a token or feature vector. null: that of model.vectors, else 128."""
    embedding_std: Annotated[float, Field(gt=0.0, le=10.0)] = 0.3
    """Standard deviation of the initial embedding: 0.1 to 0.3 for words, 1 for small alphabets."""
    vectors: Path | None = None
    """text, tokens: file of initial word vectors (.vec, text of GloVe or word2vec). null: none."""
    vectors_keep: Annotated[int, Field(ge=0, le=2**24)] = 20_000
    """How many words of vectors that train lacks enter the vocabulary: the file's first ones."""
    freeze: bool | PositiveInt = False
    """text, tokens: keep the embedding fixed; a number: for the first N epochs."""
    subwords: GramSizes | None = None
    """text: add the vectors of a word's character n-grams to its own. null: none."""
    convolutions: Convolutions | None = None
    """Convolutions before the encoder (features: in place of the linear map). null: none."""
    ngrams: GramSizes | GramColumns | None = None
    """text, tokens, steps: add a linear classifier on n-grams of tokens to the network; of several
    columns of tokens: {column: [shortest, longest]}. null: none."""
    ngrams_spelling: bool = False
    """ngrams with subwords: also count n-grams of characters within words, of subwords' sizes."""
    max_ngrams: Annotated[int, Field(ge=1, le=2**24)] = 300_000
    """Largest number of n-grams; the most frequent of train stay."""
    kernels: bool = False
    """Numbers alone: add a bank of fixed convolution kernels with a linear classifier."""
    rnn: Literal["gru", "lstm", "rnn"] = "gru"
    """Recurrent cell."""
    hidden_size: Width = 128
    """Size of the hidden state of each layer and direction."""
    num_layers: Annotated[int, Field(ge=1, le=64)] = 1
    """Number of recurrent layers."""
    bidirectional: bool = False
    """Also read each sequence backward."""
    join: Literal["concat", "sum", "mean"] = "concat"
    """bidirectional: how the states of both directions are combined."""
    pooling: Pooling | Poolings = "last"
    """What the head sees: the last valid state; mean, max or attention over all of them; a list."""
    attention_size: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """attention: size of its hidden layer. null: that of the states."""
    initial_state: Literal["zeros", "random", "learned", "carried"] = "zeros"
    """State before the first time step: random in training, learned, or carried from the row
    before in data.group."""
    initial_scale: Positive = 0.1
    """Standard deviation of a random initial state."""
    unroll: Literal["packed", "padded", "masked"] = "packed"
    """How the encoder handles unequal lengths. All give equal results; packed is the fastest."""
    engine: Literal["auto", "native", "torch"] = "auto"
    """What computes the recurrence: native (C++) or torch. auto: native where it can run."""
    dropout: Fraction = 0.5
    """Fraction of units dropped before the head and between layers."""
    embedding_dropout: Fraction = 0.5
    """Fraction of embedding units dropped, the same ones for a token anywhere in the batch."""

    @model_validator(mode="after")
    def _name_the_width(self) -> ModelConfig:
        """Put 128 where no file gives the width; it still counts as not given."""
        if self.vectors is None and self.embedding_dim is None:
            self.__dict__["embedding_dim"] = 128
        return self

    @property
    def width(self) -> int:
        """Size of an embedded time step."""
        if self.embedding_dim is None:
            raise ValueError("model.embedding_dim: read the file of model.vectors first")
        return self.embedding_dim

    @property
    def architecture(self) -> ModelConfig:
        """The keys that a trained model needs; those for training have their defaults."""
        of_training = ("vectors", "vectors_keep", "freeze")
        fields = ModelConfig.model_fields
        return self.model_copy(update={name: fields[name].default for name in of_training})


class TrainingConfig(Section):
    """How the model is trained, and when training stops."""

    max_epochs: Epochs | Literal["auto"] = "auto"
    """Largest number of passes over train. auto: 10, or up to 100 if 10 are under 2,000 updates."""
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    """Optimizer. sgd has momentum 0.9."""
    sparse_embedding: bool = True
    """Update, and decay, only the rows of tables that a batch touches; false: all rows."""
    lr: LearningRate = 0.004
    """Peak learning rate."""
    ngrams_lr: LearningRate | None = None
    """ngrams: learning rate of plain SGD, per example. null: they learn as all other weights."""
    weight_decay: Annotated[float, Field(ge=0.0, le=1000.0)] = 0.0
    """Decay of weight matrices, not biases: decoupled in adamw, an L2 term in adam and sgd."""
    schedule: Literal["constant", "linear", "cosine", "plateau"] = "linear"
    """Learning rate after warm-up; plateau: halved after each epoch without a better monitor."""
    warmup: Fraction = 0.0
    """Fraction of all updates in which the learning rate rises from 0."""
    bptt: PositiveInt | None = None
    """Truncated backpropagation: gradients reach back at most N time steps. null: all of them."""
    max_grad_norm: Positive | None = 1.0
    """Largest norm of the gradients; larger ones are scaled down. null: no clipping."""
    patience: PositiveInt | Literal["auto"] | None = "auto"
    """Epochs without a better monitor before training stops. auto: 3 or a fifth of all epochs,
    counted from the last fall of the validation loss; or half of them, if none beats always the
    largest class. null: never, unless all of validation, 100 rows or more, is right for as long."""
    monitor: Metric = "accuracy"
    """Validation score that chooses the best epoch (without validation: score of train)."""
    class_weights: Literal["balanced"] | ClassWeights | None = None
    """Weight of each class in the loss. balanced: inverse to its frequency. null: equal."""
    logit_adjustment: Fraction = 0.0
    """Predictions lean to rare classes: logits minus this times the log of a class's share."""
    label_smoothing: Fraction = 0.0
    """Share of the target probability that is spread over all classes."""
    augment: Augmentation | None = None
    """Numbers alone: in training, shift each channel by a normal random number (in deviations), and
    slice off at most a share of the series. null: neither."""
    refit: bool = False
    """At the end, train a new model on train and validation together, up to the last epoch within
    one standard error of the best."""
    calibration: Literal["temperature", "none"] = "temperature"
    """temperature: at the end, divide the logits by the number with the least validation loss; of
    several labels per row each class's, and choose the thresholds."""
    thresholds: Literal["one", "class"] = "class"
    """Several labels per row: the probability from which on a label is predicted, chosen by F1 on
    validation; one for all classes, or one per class that has 10 rows there."""
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    """Matrix products while training. tf32: on CUDA, faster with 10 bits of mantissa; elsewhere as
    float32. bfloat16: under autocast. Predictions are always computed in float32."""
    checkpoint_every: Interval | None = None
    """How often to save a checkpoint within an epoch. null: only at the end of each epoch."""
    deterministic: bool = False
    """cuda: use slower algorithms that give equal bits. (A CPU always gives them.)"""
    device: Literal["auto", "cpu", "cuda", "mps"] | CudaIndex = "auto"
    """Device to train on. auto: cuda, else mps, else cpu."""


class PretrainingConfig(Section):
    """What the encoder learns from sequences without labels, before training."""

    objective: Literal["autoencoder", "language_model"] | None = None
    """language_model predicts each next token, autoencoder the sequence itself. null: none."""
    data: Paths | None = None
    """Files of more sequences, read as train is. They need no labels."""
    max_epochs: Epochs = 5
    """Number of passes over train and these files."""
    lr: LearningRate = 0.002
    """Peak learning rate."""
    max_length: PositiveInt | None = 100
    """Longer sequences are cut into pieces of N time steps, each on its own. null: whole."""
    dropout: Fraction = 0.2
    """Fraction of units dropped from the embedding and before the output."""


class TuneConfig(Section):
    """What `seqtrain tune` tries. fit ignores it."""

    space: TunedKeys | None = None
    """Values to try for a key: a list, or {low: number, high: number}. null: don't tune it."""


class Config(Section):
    """A whole training run."""

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """Seed of the splits, the initial weights, the order of batches and dropout."""
    data: DataConfig
    batching: BatchingConfig = BatchingConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    pretraining: PretrainingConfig = PretrainingConfig()
    tune: TuneConfig = TuneConfig()

    @model_validator(mode="after")
    def _check_rules(self) -> Config:
        """Check the rules between keys, each of which is right by itself; raise all errors."""
        errors: list[InitErrorDetails] = [
            {"type": _broken(text), "loc": tuple(key.split(".")), "input": None}
            for key, text in broken_rules(values_by_key(self))
        ]
        if errors:
            raise ValidationError.from_exception_data("config", errors)
        return self

    def with_keys(self, **sections: Mapping[str, Any]) -> Config:
        """Return it with other values, which are right, at some keys of some sections."""
        made = {x: getattr(self, x).model_copy(update={**keys}) for x, keys in sections.items()}
        return self.model_copy(update=made)


SECTIONS: dict[str, type[Section]] = {
    name: field.annotation
    for name, field in Config.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}
"""The sections of a config, by name."""


def values_by_key(config: Config) -> dict[str, Any]:
    """Return every value of a config by its dotted key."""
    dotted = {f"{name}.{key}": value for name in SECTIONS for key, value in getattr(config, name)}
    return {"seed": config.seed, **dotted}
