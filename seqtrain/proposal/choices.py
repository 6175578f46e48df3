"""Rules that choose the settings of a config, each with its reason.

README.md has the measurement behind each rule.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from seqtrain.proposal.data_profile import DataProfile
from seqtrain.proposal.options import InitOptions
from seqtrain.sequences.labels import rare_class
from seqtrain.sequences.splits import ENOUGH_OF_CLASS
from seqtrain.sequences.summary import are_uneven

UPDATES, UPDATES_PER_CLASS = 600, 12
"""Approximate number of updates of a training: a constant, plus a number per class."""
MOST_UPDATES = {"steps": 1200}
"""Maps a family to the largest number of updates: n-grams of steps learn fast."""
MORE_UPDATES = {"characters": 2, "channels": 2}
"""Maps a family to the factor of its updates. Multi-label tasks have the factor 2, too."""
LEAST_EPOCHS, MOST_EPOCHS = 1, 80
MANY_CLASSES, FEW_CLASSES = 20, 4
"""Limits of the number of classes.

Above the first, single words often decide, as with intents. Up to the second, refits gain less.
"""
SHORT_CHARACTERS = 30
"""Median length below which texts of characters are short, as names are."""
LONG = 40
"""Median length from which on texts over an alphabet and series of one channel get convolutions."""
HELD_OUT_TO_STOP = 40
"""Fewest rows held out for training to stop early."""
FEW_ROWS, SMALL_BATCH, BATCH = 1000, 16, 64
"""Number of rows below which batches are small, then the sizes of small and of other batches."""
SHORT_TEXTS, LARGE_BATCH, LARGE_LR = 64, 128, (1.4, 1.7)
"""Texts of words with a shorter median length get large batches of the second size.

They must have `FEW_ROWS` rows or more and more than `FEW_CLASSES` classes, one per row. Two factors
of the learning rate follow: for more than `MANY_CLASSES` classes, and for fewer.
"""
SPELLED_ROWS = 5000, 400
"""Number of rows, in total and per class, below which longer n-grams of characters help."""
ATTENTION_SIZE, SHORT_ATTENTION_SIZE = 32, 64
"""Size of the hidden layer of attention, in general and for short texts of few classes."""
REFIT_ROWS, REFIT_FRACTION = (200, 1000), 0.1
"""Limits below which a refit gains: rows per class for few classes, and for more classes.

At least the fraction `REFIT_FRACTION` of the rows must be held out.
"""
UNEVEN = 10
"""Ratio of the largest to the smallest class above which rare classes are favoured."""
ADJUSTMENTS = {
    "words": 0.4,
    "many classes": 0.6,
    "characters": 0.2,
    "series": 0.3,
    "channels": 0.3,
    "steps": 0.2,
}
"""Maps a family to its logit adjustment.

Words of many classes have the key "many classes", and all tables of time steps have "steps".
"""
BINS = 20
"""`data.number_bins` for a step table without tokens."""
TREE_CLASSES = 100
"""Largest number of classes for boosted trees. With more of them, each class has few trees."""
KERNEL_ROWS = 3000
"""Number of series below which a bank of fixed kernels helps."""
MANY_STEPS = 1_000_000
"""Time steps of train from which on texts are trained in bfloat16."""
PAIRED = {"words": "words", "steps": "tokens"}
"""Maps each family that is also learned from pairs of tokens to a word for its tokens."""
SPELLED = ("characters", "alphabet")
LEARN_ALL_AT_MOST = 100
"""Number of series up to which none are held out: a fifth is too few to choose an epoch."""


class Choice(NamedTuple):
    """A `section.key` of the config, its value, and the reason in a few words."""

    key: str
    value: Any
    why: str


class Situation:
    """Properties of a data set on which the rules depend.

    Args:
        profile: Profile of the data.
        validation: Value of data.validation: files, a fraction of train, or None.
        options: Options of the user.

    Attributes:
        profile, validation: The arguments.
        tokenizer: Tokenizer that the user chose, or None.
        carries: True if a missing number is replaced by the last number of its column. This is for
            step tables of numbers with many missing ones, unless the user set data.standardize.
        family: Name of the family of the data.
        rows: Estimated number of labelled rows with a sequence.
        classes: Number of classes.
        median: Median length in time steps.
        is_short: True if the median is below `SHORT_CHARACTERS`.
        is_few_word_classes: True for words and at most `MANY_CLASSES` classes.
        has_large_batches: True if batches have `LARGE_BATCH` rows: see `SHORT_TEXTS`.
        batch_size: Number of rows of a batch.
    """

    def __init__(self, profile: DataProfile, validation: object, options: InitOptions) -> None:
        self.profile, self.validation = profile, validation
        self.tokenizer = options.get("tokenizer")
        self.carries = (
            self.profile.is_often_missing
            and not self.profile.token_columns
            and not options.get("standardize")
        )
        self.family, self.rows = profile.family.name, profile.total_rows
        self.classes, self.median = len(profile.classes), profile.lengths[0]
        self.is_short = self.median < SHORT_CHARACTERS
        self.is_few_word_classes = self.family == "words" and self.classes <= MANY_CLASSES
        self.has_large_batches = (
            self.family == "words"
            and self.median < SHORT_TEXTS
            and not profile.multi_label
            and self.rows >= FEW_ROWS
            and self.classes > FEW_CLASSES
        )
        self.batch_size = LARGE_BATCH if self.has_large_batches else BATCH
        if self.rows < FEW_ROWS:
            self.batch_size = SMALL_BATCH

    def has_fewer_rows(self, total: int, per_class: int) -> bool:
        """Return True if sequences hold tokens, and the number of rows is below both limits.

        Args:
            total: Limit of the number of rows.
            per_class: Limit of the average number of rows per class.
        """
        return not self.profile.channels and self.rows < min(total, per_class * self.classes)

    @property
    def has_rare_class(self) -> bool:
        """True if there are two classes, and `rare_class` calls one of them rare.

        Predictions then need a decision threshold. It is False in a multi-label task.
        """
        counts = [*self.profile.classes.values()]
        return not self.profile.multi_label and rare_class(counts) is not None

    @property
    def stops_early(self) -> bool:
        """True if there are enough validation rows to stop training early: `HELD_OUT_TO_STOP`.

        If validation is a separate file, the rows of train are counted instead. Without validation,
        training doesn't stop early.
        """
        is_share = isinstance(self.validation, float)
        held_out = self.rows * self.validation if is_share else self.rows  # type: ignore[operator]
        return self.validation is not None and held_out >= HELD_OUT_TO_STOP


Rule: TypeAlias = Callable[[Situation], Iterator[Choice]]


def should_hold_out(profile: DataProfile) -> bool:
    """Return True if a fraction of train should be held out, to choose the best epoch.

    The result is False only for sequences of numbers with at most `LEARN_ALL_AT_MOST` rows.
    """
    return profile.total_rows > LEARN_ALL_AT_MOST or not profile.channels


def choices(profile: DataProfile, validation: object, options: InitOptions) -> Iterator[Choice]:
    """Yield the settings that suit a data set, in the order of the config.

    Args:
        profile: Profile of the data.
        validation: Value of data.validation: files, a fraction of train, or None.
        options: Options of the user.
    """
    situation = Situation(profile, validation, options)
    for rule in RULES:
        yield from rule(situation)


def _tokenizer(data: Situation) -> Iterator[Choice]:
    if data.family in SPELLED:
        yield Choice("data.tokenizer", "char", data.profile.family.reason)


def _lowercase(data: Situation) -> Iterator[Choice]:
    if data.family in SPELLED and not data.profile.family.lowercase:
        yield Choice("data.lowercase", False, "upper and lower case may differ in meaning")


def _missing(data: Situation) -> Iterator[Choice]:
    if data.carries and data.family == "channels":
        yield Choice(
            "data.missing", "last", "many values are missing: the last one seen, and its age"
        )
    elif data.profile.missing:
        why = "values are missing; an additional channel marks them"
        yield Choice("data.missing", "mask", why)


def _standardize(data: Situation) -> Iterator[Choice]:
    if data.family == "series":
        yield Choice("data.standardize", "both", "each series by its own scale, and by train's")


def _number_bins(data: Situation) -> Iterator[Choice]:
    if data.family == "channels" and data.profile.schema.steps is not None:
        yield Choice("data.number_bins", BINS, "numbers are also encoded by quantiles")


def _batch_size(data: Situation) -> Iterator[Choice]:
    reasons = {
        SMALL_BATCH: "few rows need small batches",
        LARGE_BATCH: "short texts: fewer updates cost less",
    }
    if data.batch_size in reasons:
        yield Choice("batching.batch_size", data.batch_size, reasons[data.batch_size])


def _ngrams(data: Situation) -> Iterator[Choice]:
    columns, branch = data.profile.token_columns, "in a linear branch next to the GRU"
    if len(columns) > 1:
        sizes = {name: [1, 1] for name in columns}
        yield Choice("model.ngrams", sizes, f"the tokens of each column, {branch}")
    elif data.family == "symbols":
        yield Choice("model.ngrams", [1, 3], f"1 to 3 symbols in a row, {branch}")
    elif data.family in PAIRED:
        token = PAIRED[data.family]
        yield Choice("model.ngrams", [1, 2], f"{token} and pairs of {token}, {branch}")
    elif data.family in SPELLED:
        longest = 5 if data.is_short else 4
        if data.family == "alphabet" or data.has_fewer_rows(*SPELLED_ROWS):
            longest = 6
        yield Choice("model.ngrams", [1, longest], f"1 to {longest} characters in a row, {branch}")


def _kernels(data: Situation) -> Iterator[Choice]:
    if data.family in ("series", "channels") and data.rows < KERNEL_ROWS:
        yield Choice("model.kernels", True, "few series: a branch of fixed convolutions")


def _trees(data: Situation) -> Iterator[Choice]:
    schema = data.profile.schema
    has_numbers = any("token" not in kind for kind in (schema.steps or {}).values())
    is_useful = has_numbers or schema.static or data.family == "symbols"
    if is_useful and data.classes <= TREE_CLASSES:
        yield Choice("model.trees", True, "a branch of trees on counts and statistics")


def _ngrams_spelling(data: Situation) -> Iterator[Choice]:
    is_spelled = data.family == "words" and data.tokenizer != "bpe"
    if is_spelled and data.median < SHORT_TEXTS:
        yield Choice("model.ngrams_spelling", True, "n-grams of words and of their characters")


def _subwords(data: Situation) -> Iterator[Choice]:
    if data.family == "words" and data.tokenizer != "bpe":
        yield Choice("model.subwords", [3, 5], "rare words are also read in parts")


def _embedding_std(data: Situation) -> Iterator[Choice]:
    if data.is_few_word_classes:
        yield Choice("model.embedding_std", 0.1, "spread of the initial word vectors")
    elif data.family in SPELLED or (data.family == "symbols" and data.profile.symbols < 500):
        yield Choice("model.embedding_std", 1.0, "there are few tokens, and each is frequent")


def _convolutions(data: Situation) -> Iterator[Choice]:
    width = {"alphabet": 64, "series": 32}.get(data.family)
    if width is not None and data.median >= LONG:
        reason = "channels, kernel, stride: a quarter of the steps is left"
        yield Choice("model.convolutions", [[width, 7, 2], [64, 5, 2]], reason)


def _embedding_dim(data: Situation) -> Iterator[Choice]:
    if data.family in SPELLED:
        size = 64 if data.is_short else 32
        yield Choice("model.embedding_dim", size, "few characters differ")
    elif data.family == "channels" or (data.family == "series" and data.median < LONG):
        yield Choice("model.embedding_dim", 32, "size of the embedding of the channels")


def _hidden_size(data: Situation) -> Iterator[Choice]:
    if data.family == "characters":
        yield Choice("model.hidden_size", 192, "the model learns how many words are spelled")


def _bidirectional(data: Situation) -> Iterator[Choice]:
    if data.family != "characters" or data.is_short:
        yield Choice("model.bidirectional", True, "the GRU also reads each sequence backward")


def _pooling(data: Situation) -> Iterator[Choice]:
    if (data.family == "characters" and data.is_short) or data.family == "alphabet":
        reason = "what matters may be anywhere"
        yield Choice("model.pooling", ["last", "mean", "max"], reason)
    elif data.is_few_word_classes:
        yield Choice("model.pooling", "attention", "the model learns which words matter")
    elif data.family != "channels":
        yield Choice("model.pooling", "max", "each unit's largest value over the sequence")


def _attention_size(data: Situation) -> Iterator[Choice]:
    if data.is_few_word_classes:
        is_small = data.median < SHORT_TEXTS and data.classes <= FEW_CLASSES
        size = SHORT_ATTENTION_SIZE if is_small else ATTENTION_SIZE
        yield Choice("model.attention_size", size, "a small hidden layer is enough")


def _dropout(data: Situation) -> Iterator[Choice]:
    if data.family != "words":
        yield Choice("model.dropout", 0.3, "dropout before the output layer")


def _embedding_dropout(data: Situation) -> Iterator[Choice]:
    if data.family == "words":
        share = 0.6 if data.is_few_word_classes else 0.3
        yield Choice("model.embedding_dropout", share, "dropout of the word vectors")
    elif data.family in ("series", "channels"):
        yield Choice("model.embedding_dropout", 0.0, "no dropout of numbers")
    else:
        yield Choice("model.embedding_dropout", 0.1, "few tokens need little dropout")


def _max_epochs(data: Situation) -> Iterator[Choice]:
    per_epoch = -(-data.rows * 9 // 10 // data.batch_size)
    updates: float = UPDATES + UPDATES_PER_CLASS * data.classes
    updates /= 2 if data.has_large_batches else 1
    updates *= 2 if data.profile.multi_label else MORE_UPDATES.get(data.family, 1)
    updates = min(updates, MOST_UPDATES.get(data.family, updates))
    epochs = max(LEAST_EPOCHS, min(MOST_EPOCHS, round(updates / per_epoch)))
    yield Choice("training.max_epochs", epochs, f"about {epochs * per_epoch:,} updates")


def _lr(data: Situation) -> Iterator[Choice]:
    lr = 0.004 if data.family in ("words", "series") else 0.003
    if data.is_few_word_classes:
        lr = 0.002
    if data.has_large_batches:
        lr = round(lr * LARGE_LR[data.is_few_word_classes], 4)
    yield Choice("training.lr", lr, "the highest learning rate")


def _precision(data: Situation) -> Iterator[Choice]:
    if data.family in ("words", "characters") and data.rows * data.median >= MANY_STEPS:
        reason = "much text: faster if the processor supports it"
        yield Choice("training.precision", "bfloat16", reason)


def _label_smoothing(data: Situation) -> Iterator[Choice]:
    if data.is_few_word_classes and not data.profile.multi_label:
        yield Choice("training.label_smoothing", 0.1, "part of the target for all classes")


def _patience(data: Situation) -> Iterator[Choice]:
    if data.stops_early:
        reason = "stops after a fifth of the epochs without improvement"
        yield Choice("training.patience", "auto", reason)
    else:
        yield Choice("training.patience", None, "trains all epochs")


def _logit_adjustment(data: Situation) -> Iterator[Choice]:
    counts = data.profile.classes.values()
    is_uneven = max(counts) > UNEVEN * min(counts)
    # If a threshold decides, the adjustment would only raise the loss.
    has_threshold = data.has_rare_class and min(counts) >= ENOUGH_OF_CLASS and data.validation
    key = "steps" if data.profile.schema.steps is not None else data.family
    if key == "words" and not data.is_few_word_classes:
        key = "many classes"
    if is_uneven and key in ADJUSTMENTS and not (data.profile.multi_label or has_threshold):
        yield Choice("training.logit_adjustment", ADJUSTMENTS[key], "favours rare classes")


def _monitor(data: Situation) -> Iterator[Choice]:
    if data.profile.multi_label:
        yield Choice("training.monitor", "micro_f1", "the F1 of all labels together")
    elif are_uneven(data.profile.classes):
        yield Choice("training.monitor", "macro_f1", "accuracy hardly depends on small classes")


def _augment(data: Situation) -> Iterator[Choice]:
    if data.family == "series":
        yield Choice("training.augment", {"slice": 0.2}, "training reads random windows")
    elif data.family == "channels" and data.median <= 100:
        yield Choice("training.augment", {"shift": 0.3}, "training adds random offsets")


def _refit(data: Situation) -> Iterator[Choice]:
    most = REFIT_ROWS[data.classes > FEW_CLASSES]
    is_few = data.rows < most * data.classes and data.family not in ("alphabet", "symbols")
    share = data.validation if isinstance(data.validation, float) else 0.0
    if is_few and share >= REFIT_FRACTION and not data.has_rare_class:
        yield Choice("training.refit", True, "few rows: finally all of them are learned")


RULES: tuple[Rule, ...] = (
    *(_missing, _tokenizer, _lowercase, _standardize, _number_bins, _batch_size),
    *(_ngrams, _kernels, _trees, _ngrams_spelling, _subwords, _embedding_std, _convolutions),
    *(_embedding_dim, _hidden_size, _bidirectional, _pooling, _attention_size),
    *(_dropout, _embedding_dropout),
    *(_max_epochs, _lr, _precision, _label_smoothing, _patience),
    *(_logit_adjustment, _monitor, _augment, _refit),
)
"""Rules in the order of the config. Each rule yields one setting or none."""
