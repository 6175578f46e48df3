"""Which settings suit which data: rules, each with its reason; README.md has the measurements."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from seqtrain.data.splits import MANY_ROWS
from seqtrain.data.summary import are_uneven
from seqtrain.proposal.contents import Facts

UPDATES, UPDATES_PER_CLASS = 600, 12
"""Updates of the optimizer that training needs, about: so many, and so many more per class."""
MORE_UPDATES = {"characters": 2, "channels": 2}
"""Factor of the updates, by family: spelling has to be learned; series of several channels. Of
several labels per row it is 2, too: on GoEmotions 3 epochs were better than 2 and than 4."""
EPOCHS = 1, 80
"""Passes over train, at least and at most."""
MANY_CLASSES = 20
"""Above so many classes single words often decide, as with intents."""
SHORT_CHARACTERS = 30
"""Median characters below which texts of characters are short, as names are."""
LONG = 40
"""Median time steps from which convolutions read an alphabet or one channel first."""
FEW_ROWS, SMALL_BATCH = 1000, 16
"""A data set with fewer rows is learned better in small batches."""
SHORT_TEXTS, LARGE_BATCH, LARGE_LR = 64, 128, (1.4, 1.7)
"""Texts whose median is below so many words, of more than FEW_CLASSES classes, have such batches;
the learning rate is then multiplied by the first factor for many classes, else by the second."""
SPELLED_ROWS, PLAIN_ROWS, PLAIN_LR = (5000, 400), (8000, 1000), 1.5
"""With fewer texts, in all and per class, n-grams of characters help; and plain SGD with this
learning rate is better for n-grams (characters, symbols: as few as for the first)."""
STEPS_LR = 5.0
"""The same for several columns of tokens of a time step, where there are many classes."""
ATTENTION_SIZE = 32, 64
"""Size of attention's hidden layer, and of that for short texts of few classes."""
FEW_CLASSES, REFIT_ROWS, REFIT_FRACTION = 4, (200, 1000), 0.1
"""A refit gains with fewer rows per class than this, of few classes and of more, where at least
this fraction is held out."""
UNEVEN, ADJUSTMENT, OF_MANY_CLASSES, OF_CHARACTERS = 10, 0.4, 0.6, 0.2
"""Rows of the largest class for one of the smallest, above which rare classes are adjusted for; how
much, how much where there are many classes, and for texts by characters."""
KERNEL_ROWS = 3000
"""Fewer series than this gain by a bank of fixed kernels."""
MANY_STEPS = 1_000_000
"""Time steps of train from which on texts are learned with products in bfloat16: as accurate, and
a third of the time less where the processor has them."""
PAIRED = {"words": "words", "symbols": "symbols", "steps": "tokens"}
"""Families that are learned by pairs of tokens, too, and what these are called."""
SPELLED = ("characters", "alphabet")
LEARN_ALL_AT_MOST = 100
"""Series up to which all are learned: a fifth of them is too few to choose the best epoch by."""


class Choice(NamedTuple):
    """A `section.key` of the config, its value, and the reason in a few words."""

    key: str
    value: Any
    why: str


def choices(facts: Facts, validation: object) -> list[Choice]:
    """Return what suits this data, section by section; validation: of the config."""
    found = [*_data(facts), *_beside(facts), *_encoder(facts)]
    held_out = facts.rows * validation if isinstance(validation, float) else facts.rows
    stops = validation is not None and held_out >= MANY_ROWS
    found += _training(facts, stops=stops)
    most = REFIT_ROWS[len(facts.classes) > FEW_CLASSES]
    few = facts.rows < most * len(facts.classes)
    few = few and facts.family not in ("alphabet", "symbols")
    if few and isinstance(validation, float) and validation >= REFIT_FRACTION:
        found.append(Choice("training.refit", True, "few rows: in the end all of them are learned"))
    return found


def should_hold_out(facts: Facts) -> bool:
    """Return whether a part of train should choose the best epoch instead of being learned."""
    return facts.rows > LEARN_ALL_AT_MOST or not facts.channels


def _is_short(facts: Facts) -> bool:
    return facts.lengths[0] < SHORT_CHARACTERS


def _are_few_word_classes(facts: Facts) -> bool:
    return facts.family == "words" and len(facts.classes) <= MANY_CLASSES


def _are_few_texts(facts: Facts, most: tuple[int, int] = SPELLED_ROWS) -> bool:
    return not facts.channels and facts.rows < min(most[0], most[1] * len(facts.classes))


def _in_large_batches(facts: Facts) -> bool:
    short = facts.family == "words" and facts.lengths[0] < SHORT_TEXTS and not facts.multi_label
    return short and facts.rows >= FEW_ROWS and len(facts.classes) > FEW_CLASSES


def _data(facts: Facts) -> Iterator[Choice]:
    if facts.family in SPELLED:
        yield Choice("data.tokenizer", "char", facts.why)
        if not facts.lowercase:
            yield Choice("data.lowercase", False, "upper and lower case may differ in meaning")
    if facts.family == "series":
        yield Choice("data.standardize", "both", "each series by its own scale, then by train's")
    if facts.rows < FEW_ROWS:
        yield Choice("batching.batch_size", SMALL_BATCH, "few rows need small batches")
    elif _in_large_batches(facts):
        yield Choice("batching.batch_size", LARGE_BATCH, "short texts: fewer updates cost less")


def _beside(facts: Facts) -> Iterator[Choice]:
    family, beside = facts.family, "in a linear classifier beside the GRU"
    if len(facts.tokens) > 1:
        sizes = {name: [1, 1] for name in facts.tokens}
        yield Choice("model.ngrams", sizes, f"the tokens of each column, {beside}")
    elif family in PAIRED:
        token = PAIRED[family]
        yield Choice("model.ngrams", [1, 2], f"{token} and pairs of {token}, {beside}")
    elif family in SPELLED:
        longest = 6 if family == "alphabet" else 5 if _is_short(facts) else 4
        yield Choice("model.ngrams", [1, longest], f"1 to {longest} characters in a row, {beside}")
    elif facts.rows < KERNEL_ROWS:
        yield Choice("model.kernels", True, f"few series: fixed convolutions, {beside}")
    if family == "words":
        if _are_few_texts(facts):
            yield Choice("model.ngrams_spelling", True, "and parts of words, as there are few rows")
        yield Choice("model.subwords", [3, 5], "rare words are also read in parts")
        if _are_few_word_classes(facts):
            yield Choice("model.embedding_std", 0.1, "spread of the initial word vectors")


def _encoder(facts: Facts) -> Iterator[Choice]:
    family, steps = facts.family, facts.lengths[0]
    first = {"alphabet": 64, "series": 32}.get(family)
    if first is not None and steps >= LONG:
        why = "channels, kernel, stride: a quarter of the steps is left"
        yield Choice("model.convolutions", [[first, 7, 2], [64, 5, 2]], why)
    if family in SPELLED:
        yield Choice("model.embedding_dim", 64 if _is_short(facts) else 32, "few characters differ")
    elif family == "channels" or (family == "series" and steps < LONG):
        yield Choice("model.embedding_dim", 32, "size of the vector that the channels become")
    if family in SPELLED or (family == "symbols" and facts.symbols < 500):
        yield Choice("model.embedding_std", 1.0, "there are few tokens, and each is frequent")
    if family == "characters":
        yield Choice("model.hidden_size", 192, "the model learns how many words are spelled")
    if family != "characters" or _is_short(facts):
        yield Choice("model.bidirectional", True, "the GRU also reads each sequence backward")
    if (family == "characters" and _is_short(facts)) or family == "alphabet":
        yield Choice("model.pooling", ["last", "mean", "max"], "what matters may stand anywhere")
    elif _are_few_word_classes(facts):
        yield Choice("model.pooling", "attention", "the model learns which words matter")
        size = ATTENTION_SIZE[steps < SHORT_TEXTS and len(facts.classes) <= FEW_CLASSES]
        yield Choice("model.attention_size", size, "a small hidden layer of it is enough")
    elif family != "channels":
        yield Choice("model.pooling", "max", "each unit's largest value over the sequence")
    if family == "words":
        share = 0.6 if _are_few_word_classes(facts) else 0.3
        yield Choice("model.embedding_dropout", share, "dropout of the word vectors")
        return
    yield Choice("model.dropout", 0.3, "dropout before the output layer")
    if family in ("series", "channels"):
        yield Choice("model.embedding_dropout", 0.0, "measurements have no dropout")
    else:
        yield Choice("model.embedding_dropout", 0.1, "few tokens need little dropout")


def _training(facts: Facts, *, stops: bool) -> Iterator[Choice]:
    larger = 2 if _in_large_batches(facts) else 1
    batch_size = SMALL_BATCH if facts.rows < FEW_ROWS else larger * 64
    per_epoch = -(-facts.rows * 9 // 10 // batch_size)
    updates = (UPDATES + UPDATES_PER_CLASS * len(facts.classes)) / larger
    updates *= 2 if facts.multi_label else MORE_UPDATES.get(facts.family, 1)
    fewest, most = EPOCHS
    epochs = max(fewest, min(most, round(updates / per_epoch)))
    yield Choice("training.max_epochs", epochs, f"about {epochs * per_epoch:,} updates")
    few_classes = _are_few_word_classes(facts)
    lr = 0.002 if few_classes else 0.004 if facts.family in ("words", "series") else 0.003
    lr = round(lr * LARGE_LR[few_classes], 4) if larger > 1 else lr
    yield Choice("training.lr", lr, "the highest learning rate")
    if _are_few_texts(facts, PLAIN_ROWS if facts.family == "words" else SPELLED_ROWS):
        many = len(facts.tokens) > 1 and len(facts.classes) > MANY_CLASSES
        lr = STEPS_LR if many else PLAIN_LR * larger
        yield Choice("training.ngrams_lr", lr, "n-grams learn by plain SGD: few rows")
    if facts.family in ("words", "characters") and facts.rows * facts.lengths[0] >= MANY_STEPS:
        yield Choice("training.precision", "bfloat16", "much text: faster where processors can")
    if few_classes and not facts.multi_label:
        yield Choice("training.label_smoothing", 0.1, "share of the target for all classes")
    patience = "auto" if stops else None
    why = "ends where a fifth of the epochs brought nothing" if stops else "trains all epochs"
    yield Choice("training.patience", patience, why)
    counts = facts.classes.values()
    if facts.multi_label:
        yield Choice("training.monitor", "micro_f1", "the F1 of all labels together")
    elif facts.family in ("words", "characters") and max(counts) > UNEVEN * min(counts):
        of_words = ADJUSTMENT if few_classes else OF_MANY_CLASSES
        share = of_words if facts.family == "words" else OF_CHARACTERS
        yield Choice("training.logit_adjustment", share, "rare classes: a better macro F1")
    if are_uneven(facts.classes) and not facts.multi_label:
        yield Choice("training.monitor", "macro_f1", "accuracy hardly sees the small classes")
    if facts.family == "series":
        yield Choice("training.augment", {"slice": 0.2}, "training reads random windows")
    elif facts.family == "channels" and facts.lengths[0] <= 100:
        yield Choice("training.augment", {"shift": 0.3}, "training adds random offsets")
