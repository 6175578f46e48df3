"""Settings for a data set: the preset of its family, fitted to its size, balance, and length.

A preset in `presets/` holds all settings that its family can have, each with its reason.
`CONDITIONS` leave out those that the data at hand doesn't need, and `RULES` compute the few that
depend on counts. README.md has the measurement behind each of them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import yaml

from seqtrain.proposal.facts import Facts
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.roles import Roles
from seqtrain.sequences.labels import rare_class
from seqtrain.sequences.splits import ENOUGH_OF_CLASS
from seqtrain.sequences.summary import are_uneven

PRESETS = Path(__file__).parent / "presets"
SETTING = re.compile(r"  (?P<name>\w+): (?P<value>.+?)  +# (?P<reason>.+)")
"""Pattern of a line of a preset: name, value, and reason of a setting."""
LONG = 40
"""Median length from which on convolutions shorten sequences at no loss."""
UPDATES, UPDATES_PER_CLASS, MOST_EPOCHS = 600, 12, 80
"""Updates of a training: a constant, plus a number per class. Few rows would need many epochs."""
STEP_UPDATES = 1200
"""Most updates for a step table with tokens."""
MANY_TEXTS = 6000
"""Number of texts from which on n-grams of characters beside those of words gain nothing."""
LEARN_ALL_AT_MOST = 100
"""Number of series up to which none are held out: a fifth is too few to choose an epoch."""
VALIDATION_SHARES = {1000: 0.2, 100_000: 0.1}
"""Share of train that is held out, below each number of rows. Of more rows, it is 0.02."""


class Setting(NamedTuple):
    """Value of a key of the config, and its reason in a few words."""

    value: Any
    reason: str


Settings: TypeAlias = dict[str, Setting]
"""Maps keys such as "model.pooling" to settings, in the order of the config."""


@dataclass(frozen=True)
class Situation:
    """What the settings of a data set depend on.

    Attributes:
        facts: Facts about train.
        roles: Roles of the columns.
        options: Options of the user.
        validation: Files, a fraction of train, or None: the value of `data.validation`.
    """

    facts: Facts
    roles: Roles
    options: InitOptions
    validation: object = 0.2

    @property
    def family(self) -> str:
        """Name of the family."""
        return self.facts.family.name

    @property
    def rows(self) -> int:
        """Number of labelled sequences."""
        return self.facts.rows

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.facts.classes)

    @property
    def median(self) -> int:
        """Median length in time steps."""
        return self.facts.lengths[0]

    @property
    def multi_label(self) -> bool:
        """True if a row can have several labels."""
        return self.facts.multi_label

    @property
    def preset(self) -> str:
        """Name of the preset of the family, or of a variant of the family."""
        if self.family == "words" and self.classes > 20:
            return "intents"
        if self.family == "characters" and self.median < 30:
            return "names"
        if self.family == "channels" and self.roles.steps:
            return "measurements"
        return self.family

    @property
    def held_out(self) -> float:
        """Number of validation rows. For files, the number of rows of train."""
        if self.validation is None:
            return 0
        if isinstance(self.validation, float):
            return self.rows * self.validation
        return self.rows

    @property
    def has_rare_class(self) -> bool:
        """True if one of two classes is so rare that `fit` chooses a threshold for it."""
        return not self.multi_label and rare_class([*self.facts.classes.values()]) is not None

    @property
    def has_short_texts(self) -> bool:
        """True for short texts of five classes or more, which need half of the updates."""
        is_word_task = self.family == "words" and not self.multi_label
        return is_word_task and self.median < 64 and self.rows >= 1000 and self.classes > 4

    @property
    def token_columns(self) -> list[str]:
        """Names of the step columns that hold tokens."""
        return [name for name, kind in self.roles.steps.items() if kind == "token"]

    def has_fewer_rows(self, total: int, per_class: int) -> bool:
        """Return True if there are fewer rows than both limits, in total and per class."""
        return self.rows < min(total, per_class * self.classes)


def settings_for(data: Situation) -> Settings:
    """Return the settings that suit a data set."""
    settings = dict(read_preset(data.preset))
    for key, condition in CONDITIONS.items():
        if key in settings and not condition(data):
            del settings[key]
    for rule in RULES:
        rule(settings, data)
    return settings


@cache
def read_preset(name: str) -> Settings:
    """Return the settings of a preset, with the comments behind them as reasons."""
    settings: Settings = {}
    section = ""
    for line in (PRESETS / f"{name}.yaml").read_text(encoding="utf-8").splitlines():
        setting = SETTING.fullmatch(line)
        if setting:
            value = yaml.safe_load(setting["value"])
            settings[f"{section}.{setting['name']}"] = Setting(value, setting["reason"])
        else:
            section = line.removesuffix(":")
    return settings


def share_to_hold_out(family: str, rows: int) -> float | None:
    """Return the fraction of train to hold out for validation, or None for too few series."""
    if family in ("series", "channels") and rows <= LEARN_ALL_AT_MOST:
        return None
    return next((share for limit, share in VALIDATION_SHARES.items() if rows < limit), 0.02)


def _has_numbers(data: Situation) -> bool:
    """Return True if trees find something to split: numbers, row features, or symbol counts."""
    has_numbers = any("token" not in kind for kind in data.roles.steps.values())
    return has_numbers or bool(data.roles.static) or data.family == "symbols"


def _is_uneven(data: Situation) -> bool:
    """Return True if rare classes need a favour, and no threshold gives it to them already."""
    sizes = data.facts.classes.values()
    has_threshold = data.has_rare_class and min(sizes) >= ENOUGH_OF_CLASS and data.validation
    return max(sizes) > 10 * min(sizes) and not data.multi_label and not has_threshold


def _gains_from_refit(data: Situation) -> bool:
    """Return True if held-out rows are so many, and all rows so few, that a refit gains.

    With a rare class, a refit's threshold is worse than the one of validation.
    """
    rows_per_class = 1000 if data.classes > 4 else 200
    is_share = isinstance(data.validation, float) and data.validation >= 0.1
    return is_share and data.rows < rows_per_class * data.classes and not data.has_rare_class


CONDITIONS: dict[str, Callable[[Situation], bool]] = {
    "data.missing": lambda data: data.facts.is_missing,
    "data.lowercase": lambda data: data.facts.family.keeps_case,
    "batching.batch_size": lambda data: data.rows < 1000 or data.has_short_texts,
    "model.kernels": lambda data: data.rows < 3000,
    "model.trees": lambda data: data.classes <= 100 and _has_numbers(data),
    "model.ngrams_spelling": lambda data: data.median < 64 and data.rows < MANY_TEXTS,
    "model.convolutions": lambda data: data.median >= LONG,
    "training.precision": lambda data: data.rows * data.median >= 1_000_000,
    "training.label_smoothing": lambda data: not data.multi_label,
    "training.logit_adjustment": _is_uneven,
    "training.monitor": lambda data: data.multi_label or are_uneven(data.facts.classes),
    "training.refit": _gains_from_refit,
}
"""Maps a key of presets to its condition. The setting is left out where the condition is False."""


def _family(settings: Settings, data: Situation) -> None:
    """Give the reason for characters, and leave words of the user's tokenizer whole."""
    if "data.tokenizer" in settings:
        settings["data.tokenizer"] = Setting("char", data.facts.family.reason)
    if data.options.get("tokenizer") == "bpe":
        settings.pop("model.ngrams_spelling", None)
        settings.pop("model.subwords", None)


def _missing(settings: Settings, data: Situation) -> None:
    """Mark missing numbers, instead of carrying the last one forward, where few are missing."""
    is_often = data.facts.is_often_missing and not data.options.get("standardize")
    if data.preset == "measurements" and data.facts.is_missing and not is_often:
        reason = "values are missing; an additional channel marks them"
        settings["data.missing"] = Setting("mask", reason)


def _balance(settings: Settings, data: Situation) -> None:
    """Favour rare classes less in tables of time steps than in other series."""
    if data.roles.steps and "training.logit_adjustment" in settings:
        settings["training.logit_adjustment"] = Setting(0.2, "favours rare classes")


def _length(settings: Settings, data: Situation) -> None:
    """Fit the settings that depend on the median length."""
    if data.preset == "series" and data.median >= LONG:
        del settings["model.embedding_dim"]  # the convolutions have channels of their own
    if data.family == "channels" and data.median > 100:
        del settings["training.augment"]
    if data.preset == "words" and data.median < 64 and data.classes <= 4:
        settings["model.attention_size"] = Setting(64, "a small hidden layer is enough")


def _tokens(settings: Settings, data: Situation) -> None:
    """Fit n-grams and embeddings to the number of tokens and of rows."""
    columns = data.token_columns
    if len(columns) > 1:
        sizes = {name: [1, 1] for name in columns}
        reason = "the tokens of each column, in a linear branch next to the GRU"
        settings["model.ngrams"] = Setting(sizes, reason)
    if data.family == "characters" and data.has_fewer_rows(5000, 400):
        reason = "1 to 6 characters in a row, in a linear branch next to the GRU"
        settings["model.ngrams"] = Setting([1, 6], reason)
    if data.family == "symbols" and data.facts.symbols >= 500:
        del settings["model.embedding_std"]


def _short_texts(settings: Settings, data: Situation) -> None:
    """Take large batches, with learning rates to match, for short texts."""
    if not data.has_short_texts:
        return
    reason = "short texts: fewer updates cost less"
    settings["batching.batch_size"] = Setting(128, reason)
    value, reason = settings["training.lr"]
    factor = 1.7 if data.preset == "words" else 1.4
    settings["training.lr"] = Setting(round(factor * value, 4), reason)


def _epochs(settings: Settings, data: Situation) -> None:
    """Choose the number of epochs by the number of updates."""
    updates: float = UPDATES + UPDATES_PER_CLASS * data.classes
    if data.has_short_texts:
        updates /= 2
    if data.multi_label or data.family in ("characters", "channels"):
        updates *= 2
    if data.family == "steps":
        updates = min(updates, STEP_UPDATES)
    batch_size = 64
    if "batching.batch_size" in settings:
        batch_size = settings["batching.batch_size"].value
    per_epoch = -(-data.rows * 9 // 10 // batch_size)
    epochs = max(1, min(MOST_EPOCHS, round(updates / per_epoch)))
    settings["training.max_epochs"] = Setting(epochs, f"about {epochs * per_epoch:,} updates")


def _validation(settings: Settings, data: Situation) -> None:
    """Train all epochs where few rows are held out, and watch the F1 of several labels."""
    if data.held_out < 40:
        settings["training.patience"] = Setting(None, "trains all epochs")
    if data.multi_label:
        reason = "the F1 of all labels together"
        settings["training.monitor"] = Setting("micro_f1", reason)


RULES: tuple[Callable[[Settings, Situation], None], ...] = (
    _family,
    _missing,
    _balance,
    _length,
    _tokens,
    _short_texts,
    _epochs,
    _validation,
)
"""Rules that compute settings, in an order in which each finds what it needs."""
