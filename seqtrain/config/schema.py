"""All keys of a config: type, default, range and meaning of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails

from seqtrain.config.rules import broken_rules, reset_unused_keys
from seqtrain.config.value_types import (
    Augmentation,
    ClassWeights,
    Column,
    Columns,
    Convolutions,
    CudaIndex,
    Encoding,
    Epochs,
    Files,
    Fold,
    Fraction,
    GramColumns,
    GramSizes,
    HeldOut,
    Interval,
    LearningRate,
    Metric,
    Path,
    Paths,
    Pooling,
    Poolings,
    Positive,
    PositiveInt,
    Section,
    StaticColumns,
    StepColumns,
    TunedKeys,
    Width,
    rule_error,
)
from seqtrain.files.formats import DataFormat, default_kind, names_of, resolve_format

TRAINING_ONLY = {
    *("embedding_std", "max_ngrams", "initial_scale", "unroll", "engine", "dropout"),
    *("embedding_dropout", "vectors", "vectors_keep", "freeze"),
}
"""Keys of the model section that change no prediction of a trained model."""


class DataConfig(Section):
    """Data files, and how their sequences are read and encoded."""

    train: Path | Files
    """Labelled sequences to train on: a file, a pattern such as part-*.jsonl, a list of these, or
    a folder of text files."""
    validation: Path | Files | HeldOut | Fold | None = None
    """Validation data: files; a fraction of train, held out at random and stratified by label; or
    {fold: I, of: N}, the I-th of N equal parts of train. null: none."""
    test: Path | Files | HeldOut | None = None
    """Test data: files, or a fraction of train. They are scored once, at the end. null: none."""
    format: DataFormat = "auto"
    """Format of the files. auto: by the file name; .gz and .zst files are decompressed."""
    header: Literal["auto"] | bool = "auto"
    """csv, tsv: true if the first row holds the column names. auto: true if a key names one."""
    quoting: Literal["auto", "standard", "none"] = "auto"
    """csv, tsv: standard reads "…" as one field. auto: standard for csv, none for tsv."""
    delimiter: Literal["auto", "comma", "semicolon", "tab", "pipe"] = "auto"
    """csv, tsv: separator of the fields. auto: a tab for tsv; for csv, found in the first lines."""
    encoding: Encoding = "utf-8"
    """Encoding of lines that are not UTF-8, such as cp1252 or gbk. utf-16: the whole file."""
    decimal: Literal[".", ","] = "."
    """Decimal mark of numbers in text. With ",", blanks or semicolons separate the numbers of a
    series."""
    kind: Literal["auto", "text", "tokens", "features", "steps"] = "auto"
    """Kind of the sequences: text, tokens (a list of symbols), features (a vector of numbers per
    time step) or steps (a table with one row per time step: data.steps). auto: steps if data.steps
    is set, features for ts and npz, else text."""
    sequence: Column | Columns | None = None
    """Column of the sequence: its name, or its index from 0. Of a list, texts are joined by spaces,
    columns of features are channels, and columns of single numbers are time steps (null: all
    columns of a csv)."""
    id: Column | None = None
    """steps: column of the sequence id. All rows with the same id form one sequence."""
    order: Column | None = None
    """steps: column that sorts the rows of an id: numbers, dates or times. null: file order."""
    steps: StepColumns | None = None
    """Columns of a time step, in place of data.sequence. token: a symbol (with min_count:
    {token: true, min_count: N}); number (if its meaning depends on a token of the step, such as the
    name of what was measured: {number: true, by: COLUMN}); order: increase of data.order since the
    previous step, in seconds for dates, under a name of your choice."""
    static: StaticColumns | None = None
    """Row features: columns with one value per sequence, each a token or a number as in steps."""
    label: Column | Columns | None = None
    """Column of the label: its name, or its index from 0. Of a list, each column marks the label of
    its name with 1 or 0, true or false, yes or no; blank: 0."""
    label_separator: Annotated[str, Field(min_length=1, max_length=16)] | None = None
    """Separator of the labels of a multi-label row, such as "|". null: one label per row, or lists
    of labels in jsonl and parquet."""
    group: Column | None = None
    """Column of the group, such as a customer. A group is never divided between train and held-out
    rows. With model.initial_state: carried, the rows of a group follow one another."""
    tokenizer: Literal["word", "whitespace", "char", "byte", "bpe"] = "word"
    """text: how to split it into tokens. word: runs of letters and digits, punctuation marks."""
    lowercase: bool = True
    """text: convert to lower case before splitting."""
    min_count: PositiveInt = 1
    """Least number of occurrences in train (and pretraining.data) of a token of the vocabulary."""
    max_vocab_size: Annotated[int, Field(ge=3, le=2**31 - 1)] = 30000
    """Largest size of the vocabulary, with <pad> and <unk>; the most frequent tokens are kept."""
    max_length: PositiveInt | None = None
    """Largest number of time steps; longer sequences are cut (see overlong). null: no limit."""
    overlong: Literal["head", "tail", "middle", "error"] = "head"
    """Part of a sequence longer than max_length that is kept, or error."""
    empty: Literal["error", "drop", "unk"] = "error"
    """Handling of sequences without time steps: error, drop the row, or unk: read one <unk>
    (features: zeros)."""
    missing: Literal["error", "mask", "last"] = "error"
    """Handling of missing numbers: error; mask: 0, marked by an additional channel; or last, for
    steps: the last number seen in the sequence, with this mark and the time since then (by the
    column order of data.steps, else in steps)."""
    standardize: Literal["train", "series", "both"] = "train"
    """Numbers are scaled by mean and standard deviation of train, of each sequence (series), or by
    both, as separate channels."""
    number_bins: Annotated[int, Field(ge=2, le=256)] | None = None
    """steps: numbers are also encoded piecewise linearly, with the quantiles of train as edges of
    this many bins, or with the distinct values if there are fewer. null: only scaled."""
    bad_rows: Literal["error", "drop"] = "error"
    """Handling of rows that can't be read: error, or drop (fit and eval name and count them)."""

    @model_validator(mode="after")
    def _resolve_kind(self) -> DataConfig:
        """Replace auto by the resolved kind, which still counts as not set by the user."""
        if self.kind == "auto":
            kind = default_kind(resolve_format(names_of(self.train)[0], self.format))
            self.__dict__["kind"] = kind if self.steps is None else "steps"
        return self


class BatchingConfig(Section):
    """Grouping of sequences into batches."""

    batch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    """Sequences per batch, if max_tokens is null."""
    max_tokens: PositiveInt | None = None
    """Time steps per batch, including padding. null: batch_size decides."""
    bucketing: bool = True
    """Group sequences of similar length into the same batch. false: random batches."""
    sort: Literal["collate", "module"] = "collate"
    """Place where a batch is sorted by length: in collate, or inside the module, padded."""


class ModelConfig(Section):
    """The network: input, recurrent encoder, pooling, head, and further branches."""

    embedding_dim: Width | None = None
    """Size of the embedding of a token or feature vector. null: the size of model.vectors, else
    128."""
    embedding_std: Annotated[float, Field(gt=0.0, le=10.0)] = 0.3
    """Standard deviation of the initial embedding: 0.1 to 0.3 for words, 1 for small alphabets."""
    vectors: Path | None = None
    """text, tokens: file of initial word vectors (.vec, text of GloVe or word2vec). null: none."""
    vectors_keep: Annotated[int, Field(ge=0, le=2**24)] = 20_000
    """Number of words that enter the vocabulary from model.vectors though train lacks them: the
    first ones of the file."""
    freeze: bool | PositiveInt = False
    """text, tokens: keep the embedding fixed. A number N: for the first N epochs."""
    subwords: GramSizes | None = None
    """text: add embeddings of a word's character n-grams to the word's embedding. null: none."""
    convolutions: Convolutions | None = None
    """Convolutions before the encoder (features: in place of the linear layer). null: none."""
    ngrams: GramSizes | GramColumns | None = None
    """text, tokens, steps: add a linear classifier on n-grams of tokens as a branch. For several
    columns of tokens: {column: [shortest, longest]}. null: none."""
    ngrams_spelling: bool = False
    """ngrams with subwords: also use character n-grams within words, with the sizes of subwords."""
    max_ngrams: Annotated[int, Field(ge=1, le=2**24)] = 300_000
    """Largest number of n-grams; the most frequent ones of train are kept."""
    kernels: bool = False
    """Numbers only: add a linear classifier on a bank of fixed convolution kernels as a branch."""
    trees: bool = False
    """tokens, steps, features: add boosted trees on counts and statistics of each sequence as a
    branch."""
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
    """Input of the head: the last valid state; mean, max, sum or attention over all valid states;
    or a list of these, concatenated."""
    attention_size: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """attention: size of its hidden layer. null: size of the states."""
    initial_state: Literal["zeros", "random", "learned", "carried"] = "zeros"
    """State before the first time step: zeros, random in training, learned, or carried from the
    previous row of the same data.group."""
    initial_scale: Positive = 0.1
    """Standard deviation of a random initial state."""
    unroll: Literal["packed", "padded", "masked"] = "packed"
    """How the encoder handles unequal lengths. All give equal results; packed is the fastest on
    CPUs."""
    engine: Literal["auto", "native", "torch"] = "auto"
    """Implementation of the recurrence: native (C++) or torch. auto: native if it is available."""
    dropout: Fraction = 0.5
    """Dropout before the head and between layers."""
    embedding_dropout: Fraction = 0.5
    """Dropout of the embedding; all occurrences of a token in a batch lose the same units."""

    @model_validator(mode="after")
    def _resolve_width(self) -> ModelConfig:
        """Set 128 if no file of vectors decides; it still counts as not set by the user."""
        if self.vectors is None and self.embedding_dim is None:
            self.__dict__["embedding_dim"] = 128
        return self

    @property
    def width(self) -> int:
        """Size of an embedded time step.

        Raises:
            ValueError: If the file of model.vectors, which decides it, hasn't been read yet.
        """
        if self.embedding_dim is None:
            raise ValueError("model.embedding_dim: read the file of model.vectors first")
        return self.embedding_dim

    @property
    def architecture(self) -> ModelConfig:
        """Keys that a trained model needs; keys that only serve training have their defaults."""
        of_training = ("vectors", "vectors_keep", "freeze")
        fields = ModelConfig.model_fields
        return self.model_copy(update={name: fields[name].default for name in of_training})


class TrainingConfig(Section):
    """Training of the model, and when it stops."""

    max_epochs: Epochs | Literal["auto"] = "auto"
    """Largest number of epochs. auto: 10, or up to 100 until 2,000 updates are reached."""
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    """Optimizer. sgd uses momentum 0.9."""
    sparse_embedding: bool = True
    """Update and decay only the embedding rows that a batch uses. false: all rows."""
    lr: LearningRate = 0.004
    """Peak learning rate."""
    ngrams_lr: LearningRate | None = None
    """ngrams: train the n-gram weights by plain SGD with this learning rate per example. null: by
    the optimizer."""
    weight_decay: Annotated[float, Field(ge=0.0, le=1000.0)] = 0.0
    """Weight decay of matrices (not biases): decoupled in adamw, an L2 term in adam and sgd."""
    schedule: Literal["constant", "linear", "cosine", "plateau"] = "linear"
    """Learning rate after warm-up. plateau: halved after each epoch without improvement of
    monitor."""
    warmup: Fraction = 0.0
    """Fraction of all updates during which the learning rate rises from 0."""
    bptt: PositiveInt | None = None
    """Truncated backpropagation through time: gradients reach back at most N steps. null: all."""
    max_grad_norm: Positive | None = 1.0
    """Largest norm of the gradients; larger gradients are scaled down. null: no clipping."""
    patience: PositiveInt | Literal["auto"] | None = "auto"
    """Epochs without improvement before training stops. auto: 3 or a fifth of all epochs, counted
    from the last decrease of the validation loss; half of all epochs if no epoch beats the
    majority-class baseline. null: no early stopping, unless all of validation is predicted
    correctly for as long (fewer than 100 rows: with a loss below 0.1)."""
    min_delta: Annotated[float, Field(ge=0.0, le=1000.0)] | Literal["auto"] = "auto"
    """Smallest decrease of the validation loss that counts as an improvement. auto: 1 divided by
    the number of validation rows, as if the log-likelihood of one row changed by 1."""
    monitor: Metric = "accuracy"
    """Score on validation that selects the best epoch (without validation: on train)."""
    class_weights: Literal["balanced"] | ClassWeights | None = None
    """Weight of each class in the loss. balanced: inverse to its frequency. null: equal."""
    logit_adjustment: Fraction = 0.0
    """Favour rare classes in predictions: subtract this times the log frequency of the class in
    train from its logit."""
    label_smoothing: Fraction = 0.0
    """Part of the target probability that is spread evenly over all classes."""
    augment: Augmentation | None = None
    """Numbers only, in training. shift: add a normal random number to each channel, with this
    standard deviation. slice: remove at most this fraction of the series. null: neither."""
    refit: bool = False
    """Finally train a new model on train and validation together, up to the last epoch within one
    standard error of the best (if all of validation is right: up to the last decrease of its
    loss). Validation after as many epochs calibrates it. The threshold of a rare class is chosen on
    the rows that it learned."""
    calibration: Literal["temperature", "none"] = "temperature"
    """temperature: finally divide the logits by the number that minimizes the validation loss
    (multi-label: one number and one threshold per class)."""
    thresholds: Literal["one", "class", "none"] = "class"
    """Probability from which on a label is predicted, chosen on validation. Multi-label: by F1, one
    for all classes; class: one for each class with at least 10 rows there. Of two classes, the
    smaller one, if it has less than a fifth of train, is predicted as often as it occurs in at
    least 10 rows there. none: the most probable class; multi-label: 0.5."""
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    """Precision of matrix products in training. tf32: 10 bits of mantissa on CUDA, float32
    elsewhere. bfloat16: under autocast. Predictions are always computed in float32."""
    checkpoint_every: Interval | None = None
    """Interval between checkpoints within an epoch. null: only after epochs."""
    deterministic: bool = False
    """cuda: use slower algorithms whose results are equal bit by bit. On CPUs they always are."""
    device: Literal["auto", "cpu", "cuda", "mps"] | CudaIndex = "auto"
    """Device to train on. auto: cuda, else mps, else cpu."""


class PretrainingConfig(Section):
    """Pretraining of the encoder on sequences without labels."""

    objective: Literal["autoencoder", "language_model"] | None = None
    """language_model: predict each next token; autoencoder: reproduce the sequence. null: no
    pretraining."""
    data: Paths | None = None
    """Files with additional sequences, read in the same way as train. They need no labels."""
    max_epochs: Epochs = 5
    """Number of epochs over train and these files."""
    lr: LearningRate = 0.002
    """Peak learning rate."""
    max_length: PositiveInt | None = 100
    """Longer sequences are divided into separate pieces of N time steps. null: undivided."""
    dropout: Fraction = 0.2
    """Dropout of the embedding and before the output."""


class TuneConfig(Section):
    """Settings of `seqtrain tune`. fit ignores them."""

    space: TunedKeys | None = None
    """Values to try for each key: a list, or {low: number, high: number}. null: none."""


class Config(Section):
    """Config of a whole training run."""

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
        """Reset keys without effect, then check all rules between keys and report all errors."""
        reset_unused_keys(self)
        errors: list[InitErrorDetails] = [
            {"type": rule_error(text), "loc": tuple(key.split(".")), "input": None}
            for key, text in broken_rules(self)
        ]
        if errors:
            raise ValidationError.from_exception_data("config", errors)
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _raise_config_errors(
        cls, values: Any, validate: ModelWrapValidatorHandler[Config], info: ValidationInfo
    ) -> Config:
        """Raise a ConfigError with one line per problem, in place of pydantic's error."""
        from seqtrain.config.problems import config_error

        try:
            return validate(values)
        except ValidationError as error:
            raise config_error(error, values, info.context) from None

    def value(self, key: str) -> Any:
        """Return the value of a key, such as "training.lr"."""
        section, _, name = key.rpartition(".")
        return getattr(getattr(self, section) if section else self, name)

    def with_keys(self, **sections: Mapping[str, Any]) -> Config:
        """Return a copy with other values at some keys of some sections.

        Raises:
            ConfigError: If a value is invalid, or conflicts with other keys.
        """
        values = self.model_dump(exclude_unset=True)
        for name, keys in sections.items():
            values[name] = {**values.get(name, {}), **keys}
        return Config.model_validate(values)


SECTIONS: dict[str, type[Section]] = {
    name: field.annotation
    for name, field in Config.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}
"""The sections of a config, by name."""
