"""All keys of a config: type, default, range and meaning of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from seqtrain.config.messages import Problem, config_error, key_fields, problems_of, sections_of
from seqtrain.config.rules import broken_rules
from seqtrain.config.value_types import (
    Augmentation,
    ClassWeights,
    ColumnKey,
    Columns,
    ConvolutionSizes,
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
    Joins,
    LearningRate,
    Metric,
    MissingCells,
    Path,
    PathPattern,
    Paths,
    PoolingName,
    PoolingNames,
    Positive,
    PositiveInt,
    Section,
    StaticKinds,
    StepKinds,
    TunedKeys,
    Units,
    Width,
    Window,
)
from seqtrain.tables.formats import DataFormat, default_kind, names_of, resolve_format

TRAINING_ONLY = {
    "embedding_std",
    "max_ngrams",
    "initial_scale",
    "unroll",
    "engine",
    "dropout",
    "embedding_dropout",
    "vectors",
    "vectors_keep",
    "pretrained",
    "freeze",
}
"""Keys of the model section that change no prediction of a trained model."""


class DataConfig(Section):
    """Data files, and how their sequences are read and encoded."""

    train: Path | Files
    """Labelled sequences to train on: a file, a pattern such as part-*.jsonl, a list of these, or
    a folder of text files."""
    validation: Path | Files | HeldOut | Fold | None = None
    """Validation data: files; a fraction of train, held out at random and stratified by label; or
    {fold: I, of: N}, the I-th of N equal parts of train. A fraction holds out 10 rows or more of
    each class that has 30, and one of a smaller class, so it can be more. null: none."""
    test: Path | Files | HeldOut | None = None
    """Test data: files, or a fraction of train. They are scored once, at the end. null: none."""
    format: DataFormat = "auto"
    """Format of the files. auto: by the file name; .gz and .zst files are decompressed."""
    header: Literal["auto"] | bool = "auto"
    """csv, tsv: true if the first row has the names of the columns. auto: true if a key of this
    section names a column."""
    quoting: Literal["auto", "standard", "none"] = "auto"
    """csv, tsv: standard: double quotes enclose fields. none: they are ordinary characters. auto:
    standard for csv, none for tsv."""
    delimiter: Literal["auto", "comma", "semicolon", "tab", "pipe"] = "auto"
    """csv, tsv: separator of the fields. auto: a tab for tsv; for csv, found in the first lines."""
    encoding: Encoding = "utf-8"
    """Encoding of lines that are not UTF-8, such as cp1252 or gbk. utf-16 applies to the whole
    file."""
    decimal: Literal[".", ","] = "."
    """Decimal mark of numbers in text. With ",", blanks or semicolons separate the numbers of a
    series."""
    kind: Literal["auto", "text", "tokens", "features", "steps"] = "auto"
    """Kind of the sequences: text, tokens (a list of symbols), features (a vector of numbers per
    time step) or steps (a table with one row per time step: data.steps). auto: steps if data.steps
    is set, features for ts and npz, else text."""
    sequence: ColumnKey | Columns | None = None
    """Column of the sequence: its name, or its index from 0. With a list of columns, texts are
    joined by spaces (with data.id by " : ", such as a speaker and a message), columns of series are
    channels, and columns of single numbers are the time steps of a series. rest, in csv and tsv:
    the list of the fields after all columns with a meaning, unless a column has this name. steps
    without data.id: the column whose cells are lists of objects, one for each time step. null, in a
    csv of single numbers: all other columns."""
    symbol_separator: Annotated[str, Field(min_length=1, max_length=16)] | None = None
    """tokens: text between the symbols of a cell, such as ">". null: blanks."""
    id: ColumnKey | Columns | None = None
    """Column of the sequence id. All rows with the same id form one sequence: their time steps
    (steps), or their texts, joined as the turns of a chat (text). A list of columns is one id
    together, such as a subject and the number of a trial."""
    order: ColumnKey | Columns | None = None
    """Column that sorts the rows of an id: numbers, dates or times. Of a list of columns, the next
    one sorts rows that are equal in those before; a date and a time of day after it are one time.
    null: file order."""
    steps: StepKinds | None = None
    """Columns of a time step, in place of data.sequence. token: a symbol; {token: true, min_count:
    N} sets its min_count. number: a number; write {number: true, by: COLUMN} if its meaning depends
    on a token of the step, such as the name of what was measured. order: the increase of data.order
    (of its first column) since the previous step, in seconds for dates; any name will do for this
    column."""
    static: StaticKinds | None = None
    """Row features: columns with one value per sequence, each a token or a number as in steps."""
    window: Window | None = None
    """steps: cut the rows of an id into windows of N steps, which are the sequences: {steps: N,
    stride: M, label: last}. A window begins every M steps (default: N). label: that of the last
    step (the default), of most steps (majority), or constant: a window ends where the label
    changes, which predict doesn't know. null: an id is one sequence."""
    label: ColumnKey | Columns | None = None
    """Column of the label: its name, or its index from 0. A list of columns is multi-label: each
    column is named after a label. A row has the label if the cell is 1, true or yes, and lacks it
    if the cell is 0, false, no or blank. Yes and no may be in other languages, such as ja, nein."""
    label_separator: Annotated[str, Field(min_length=1, max_length=16)] | None = None
    """Separator of the labels of a multi-label row, such as "|". null: one label per row, or lists
    of labels in jsonl and parquet."""
    group: ColumnKey | None = None
    """Column of the group, such as a customer. A group is never divided between train and held-out
    rows. With model.initial_state: carried, the rows of a group follow one another."""
    weight: ColumnKey | None = None
    """Column with the weight of each row of train: 2 counts as the row twice, 0 as no row."""
    path: PathPattern | None = None
    """Regular expression that is searched in the path of a file. Its named groups are columns, as
    `file` and `folder` are. null: none."""
    join: Joins | None = None
    """Further files whose columns are joined: [{file: y_train.csv, on: series_id}]. on: a column, a
    list of columns that are one key together, {left: COLUMN, right: COLUMN of the file} (or lists),
    or row for files that are aligned row by row. header: false, if the first row of such a file is
    data. If test is X_test.csv, y_test.csv is joined in place of y_train.csv."""
    sheet: Annotated[str, Field(min_length=1)] | None = None
    """xlsx: name of the sheet. null: the first one."""
    tokenizer: Literal["word", "whitespace", "char", "byte", "bpe"] = "word"
    """text: how to split it into tokens. word: words of letters (with accents and vowel signs) and
    digits, and punctuation marks. whitespace: at blanks only. char: characters. byte: bytes of
    UTF-8. bpe: byte-pair encoding, learned from train. An accent after its letter is read as the
    letter with the accent (NFC), but not for byte and bpe."""
    lowercase: bool = True
    """text: convert to lower case before splitting."""
    min_count: PositiveInt = 1
    """Smallest number of occurrences, in train and pretraining.data, of a token that gets into the
    vocabulary."""
    max_vocab_size: Annotated[int, Field(ge=3, le=2**31 - 1)] = 30000
    """Largest size of the vocabulary, with <pad> and <unk>. The most frequent tokens are kept."""
    max_length: PositiveInt | None = None
    """Largest number of time steps. Longer sequences are cut (see overlong). null: no limit."""
    overlong: Literal["head", "tail", "middle", "error"] = "head"
    """Part that is kept of a sequence longer than max_length. error: stop with an error."""
    empty: Literal["error", "drop", "unk"] = "error"
    """Handling of sequences without time steps. error: stop with an error. drop: skip the row. unk:
    read one <unk> instead (features: one step of zeros)."""
    missing: Literal["error", "mask", "last"] = "error"
    """Handling of missing numbers. error: stop with an error. mask: read 0, marked in an additional
    channel. last (only with data.steps): read the last number before it in the sequence, marked in
    the same way. A further channel has the time since that number: by the column order of
    data.steps, or in steps without this column."""
    na_values: MissingCells | None = None
    """Further cells of columns that mean a missing value: {label: ["?"], temperature: [-999]}. "*"
    is every column but the label's. Rows without a label can't be read (bad_rows); missing says
    what becomes of missing numbers. null: none."""
    units: Units | None = None
    """Text before or after the numbers of columns: {price: €, share: "%"}. null: none."""
    standardize: Literal["train", "series", "both"] = "train"
    """Mean and standard deviation by which numbers are scaled: of train, of each sequence (series),
    or both, as separate channels."""
    number_bins: Annotated[int, Field(ge=2, le=256)] | None = None
    """steps: number of bins of a piecewise linear encoding of numbers, in addition to the scaled
    numbers. The edges of the bins are quantiles of train, or the distinct values if there are
    fewer. null: numbers are only scaled."""
    bad_rows: Literal["error", "drop"] = "error"
    """Handling of rows that can't be read. error: stop with an error. drop: skip them; fit and eval
    name and count them."""

    @model_validator(mode="after")
    def _resolve_kind(self) -> DataConfig:
        """Replace ``kind: auto`` by the kind of the data."""
        if self.kind == "auto":
            kind = default_kind(resolve_format(names_of(self.train)[0], self.format))
            self.reset("kind", kind if self.steps is None else "steps")
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
    """Where the rows of a batch are sorted by length. collate: when the batch is made. module: in
    the module, which then receives the padded batch."""


class ModelConfig(Section):
    """The network: input, recurrent encoder, pooling, head, and further branches."""

    embedding_dim: Width | None = None
    """Size of the embedding of a token or a feature vector. null: the size of the word vectors in
    model.vectors, or 128."""
    embedding_std: Annotated[float, Field(gt=0, le=10)] = 0.3
    """Standard deviation of the initial embedding: 0.1 to 0.3 for words, 1 for small alphabets."""
    vectors: Path | None = None
    """text, tokens: file of initial word vectors (.vec, text of GloVe or word2vec), or a folder of
    Hugging Face, whose input embeddings are averaged over the pieces of a word. null: none."""
    vectors_keep: Annotated[int, Field(ge=0, le=2**24)] = 20_000
    """Number of words in model.vectors that enter the vocabulary although train lacks them: the
    first such words of the file."""
    pretrained: Path | None = None
    """text: folder of a frozen encoder of Hugging Face (config.json, tokenizer.json,
    model.safetensors): add a linear classifier on its vectors as a branch. null: none."""
    freeze: bool | PositiveInt = False
    """text, tokens: true: the embedding isn't trained. A number N: not in the first N epochs."""
    subwords: GramSizes | None = None
    """text: add embeddings of a word's character n-grams to the word's embedding. null: none."""
    convolutions: ConvolutionSizes | None = None
    """Convolutions before the encoder (features: in place of the linear layer). Each is given as
    [width, kernel, stride]. null: none."""
    ngrams: GramSizes | GramColumns | None = None
    """text, tokens, steps: add a linear classifier on n-grams of tokens as a branch. For several
    columns of tokens: {column: [shortest, longest]}. null: none."""
    ngrams_spelling: bool = False
    """model.ngrams with model.subwords: also use character n-grams within words, with the sizes of
    model.subwords."""
    max_ngrams: Annotated[int, Field(ge=1, le=2**24)] = 300_000
    """Largest number of n-grams. The most frequent n-grams of train are kept."""
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
    """model.bidirectional: how the states of both directions are combined."""
    pooling: PoolingName | PoolingNames = "last"
    """Input of the head: the last valid state, or another pooling of all valid states; or a list of
    these, concatenated."""
    attention_size: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """pooling: attention: size of the hidden layer of the attention. null: size of the states."""
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
    def _settle(self) -> ModelConfig:
        """Replace ``embedding_dim: null`` by 128 if vectors is null, and reset unused keys.

        A key that only refines another one gets its default if the other one isn't set.
        """
        if self.vectors is None and self.embedding_dim is None:
            self.reset("embedding_dim", 128)
        if self.vectors is None:
            self.reset("vectors_keep")
        if self.ngrams is None or self.subwords is None:
            self.reset("ngrams_spelling")
        if not self.bidirectional:
            self.reset("join")
        if "attention" not in self.pooling:
            self.reset("attention_size")
        if self.initial_state != "random":
            self.reset("initial_scale")
        return self

    @property
    def width(self) -> int:
        """Value of embedding_dim, the size of an embedded time step.

        Raises:
            ValueError: If embedding_dim is null because the file of model.vectors hasn't been read
                yet.
        """
        if self.embedding_dim is None:
            raise ValueError("model.embedding_dim: read the file of model.vectors first")
        return self.embedding_dim

    @property
    def architecture(self) -> ModelConfig:
        """Copy of the section with the defaults of vectors, vectors_keep, pretrained and freeze.

        A trained model doesn't need these keys any more.
        """
        of_training = ("vectors", "vectors_keep", "pretrained", "freeze")
        fields = ModelConfig.model_fields
        return self.model_copy(update={name: fields[name].default for name in of_training})


class TrainingConfig(Section):
    """Training of the model, and when it stops."""

    max_epochs: Epochs | Literal["auto"] = "auto"
    """Largest number of epochs. auto: as many as 2,000 updates take, but from 10 to 100."""
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    """Optimizer. sgd uses momentum 0.9."""
    sparse_embedding: bool = True
    """Update and decay only the rows of an embedding that a batch uses. false, or sgd: all rows."""
    lr: LearningRate = 0.004
    """Peak learning rate."""
    weight_decay: Annotated[float, Field(ge=0, le=1000)] = 0.0
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
    """Number of epochs without improvement of monitor after which training stops. null: no early
    stopping. auto: the larger of 3 and a fifth of all epochs. With auto, a lower validation loss is
    also an improvement, and training stops after half of the epochs, at least 10, if none beat the
    majority-class baseline. Once all of validation is predicted correctly, the number of auto
    applies unless a smaller one is given, also with null (with fewer than 100 rows: once the loss
    is also below 0.1)."""
    min_delta: Annotated[float, Field(ge=0, le=1000)] | Literal["auto"] = "auto"
    """Smallest decrease of the validation loss that counts as an improvement. auto: 1 divided by
    the number of validation rows, as if the log-likelihood of one row changed by 1."""
    monitor: Metric = "accuracy"
    """Metric on validation that selects the best epoch, computed from the branch that learns by
    epochs. Without validation, it is the accuracy or loss on train."""
    class_weights: Literal["balanced"] | ClassWeights | None = None
    """Weight of the rows of each class, in the loss, solved branches, calibration and thresholds.
    balanced: inverse to its frequency. null: equal."""
    logit_adjustment: Fraction = 0.0
    """Favour rare classes in predictions: subtract this times the log frequency of the class in
    train from its logit."""
    label_smoothing: Fraction = 0.0
    """Part of the target probability that is spread evenly over all classes."""
    augment: Augmentation | None = None
    """Numbers only, in training. shift: add a normal random number to each channel, with this
    standard deviation. slice: remove at most this fraction of the series. null: neither."""
    refit: bool = False
    """Finally train a new model on train and validation together. It has as many epochs as the
    first model had up to its best epoch, or up to the last epoch that was about as good: within one
    standard error of the best, with a validation loss not clearly above the lowest. It is
    calibrated by the logits on validation of the first model after as many epochs. The threshold of
    a rare class is chosen on the rows that it learned."""
    calibration: Literal["temperature", "none"] = "temperature"
    """temperature: finally divide the logits by the number that minimizes the validation loss
    against targets of (N + 1) / (N + 2) for N validation rows, as Platt's (multi-label: one number
    and one threshold per class)."""
    thresholds: Literal["one", "class", "none"] = "class"
    """Probability from which on a label is predicted, chosen on validation. Multi-label: by F1.
    one: the same for all classes. class: one for each class with at least 10 rows there. With two
    classes: if the smaller class has less than a fifth of train and at least 10 rows there, it is
    predicted as often as it occurs there. none: the most probable class; multi-label: 0.5."""
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    """Precision of matrix products in training. tf32: 10 bits of mantissa on CUDA, float32
    elsewhere. bfloat16: under autocast. Predictions are always computed in float32."""
    checkpoint_every: Interval | None = None
    """Interval between checkpoints within an epoch, as a number of updates (steps) or of minutes.
    null: checkpoints are only written after epochs."""
    deterministic: bool = False
    """cuda: use slower algorithms whose results are the same in every run, bit by bit. On CPUs they
    always are."""
    device: Literal["auto", "cpu", "cuda", "mps"] | CudaIndex = "auto"
    """Device to train on. auto: cuda, else mps, else cpu."""


class PretrainingConfig(Section):
    """Pretraining of the encoder on sequences without labels."""

    objective: Literal["autoencoder", "language_model"] | None = None
    """language_model: predict each next token. autoencoder: reproduce the sequence. null: no
    pretraining."""
    data: Paths | None = None
    """Files with additional sequences, read in the same way as train. They need no labels."""
    max_epochs: Epochs = 5
    """Number of epochs over train and these files."""
    lr: LearningRate = 0.002
    """Peak learning rate."""
    max_length: PositiveInt | None = 100
    """Largest number of time steps. Longer sequences are split into separate ones of about equal
    length. null: no limit."""
    dropout: Fraction = 0.2
    """Dropout of the embedding and before the output."""

    @model_validator(mode="after")
    def _reset_unused(self) -> PretrainingConfig:
        """Reset data without an objective."""
        if self.objective is None:
            self.reset("data")
        return self


class TuneConfig(Section):
    """Settings of `seqtrain tune`. fit ignores them."""

    space: TunedKeys | None = None
    """Values to try for some keys: a list, {low: number, high: number}, or null to leave the key
    unchanged. The search itself has values for other keys, and for all keys if this is null."""


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

    @model_validator(mode="wrap")
    @classmethod
    def _raise_config_errors(
        cls, values: Any, validate: ModelWrapValidatorHandler[Config], info: ValidationInfo
    ) -> Config:
        """Check the values one by one, and then the rules between keys.

        The context of the validation is a dict with the places of the values, or None.

        Raises:
            ConfigError: If a value is wrong, or a rule is broken. The error has one line per
                problem.
        """
        places = info.context or {}
        try:
            config = validate(values)
        except ValidationError as error:
            raise config_error(problems_of(error, values, cls), places) from None
        broken = dict(config._broken_rules())
        if broken:
            problems = [Problem(tuple(key.split(".")), text) for key, text in broken.items()]
            raise config_error(problems, places)
        return config

    def _broken_rules(self) -> Iterable[tuple[str, str]]:
        """Return the key and the message of each rule between keys that is broken."""
        return broken_rules(self)

    def value(self, key: str) -> Any:
        """Return the value of a key, such as "training.lr" or "seed"."""
        section, _, name = key.rpartition(".")
        return getattr(getattr(self, section) if section else self, name)

    def with_keys(self, **sections: Mapping[str, Any]) -> Config:
        """Return a copy with other values at some keys. Keys that weren't set stay unset.

        Args:
            sections: Dict of keys and their new values, for each section that changes. An example
                is ``model={"dropout": 0.2}``.

        Raises:
            ConfigError: If a value is invalid, or conflicts with other keys.
        """
        values = self.model_dump(exclude_unset=True)
        for name, keys in sections.items():
            values[name] = {**values.get(name, {}), **keys}
        return Config.model_validate(values)


class SingleValues(Config):
    """Values of some keys of a config, checked one by one, without the rules between keys."""

    def _broken_rules(self) -> Iterable[tuple[str, str]]:
        return ()


SECTIONS = sections_of(Config)
"""Maps the name of each section of a config to its type."""
KEYS = list(key_fields(Config))
"""All keys of a config: "seed", the sections, and the keys of sections, such as "training.lr"."""
