"""Settings for a data set: the preset of its family, fitted to its size, balance, and length.

A preset in `presets/` holds all settings that its family can have, each with its reason.
`CONDITIONS` leave out those that the data at hand doesn't need, and `RULES` compute the few that
depend on counts. README.md has the measurement behind each of them.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import yaml

from seqtrain.proposal.facts import Facts
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.roles import Roles
from seqtrain.sequences.labels import rare_class
from seqtrain.sequences.splits import ENOUGH_OF_CLASS, usual_share
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


class Setting(NamedTuple):
    """Value of a key of the config, and its reason in a few words."""

    value: Any
    reason: str


Settings: TypeAlias = dict[str, Setting]
"""Maps keys such as "model.pooling" to settings, in the order of the config."""


class Situation:
    """Facts about a data set that its settings depend on.

    Args:
        facts: Facts about train.
        roles: Roles of the columns.
        options: Options of the user.
        validation: Files, a fraction of train, or None: the value of `data.validation`.
        held_out: Number of rows of the files of validation, or None without such files.

    Attributes:
        family: Name of the family.
        preset: Name of the preset of the family, or of a variant of the family.
        rows: Number of labelled sequences.
        classes: Number of classes.
        median: Median length in time steps.
        multi_label: True if a row can have several labels.
        held_out: Number of validation rows.
        has_short_texts: True for short texts of five classes or more, which need half of the
            updates.
        has_rare_class: True if one of two classes is so rare that `fit` chooses a threshold for it.
    """

    def __init__(
        self,
        facts: Facts,
        roles: Roles,
        options: InitOptions,
        validation: object,
        held_out: int | None = None,
    ) -> None:
        self.facts, self.roles, self.options, self.validation = facts, roles, options, validation
        self.family, self.rows, self.classes = facts.family.name, facts.rows, len(facts.classes)
        self.median, self.multi_label = facts.lengths[0], facts.multi_label
        self.held_out: float = self.rows if held_out is None else held_out
        if validation is None:
            self.held_out = 0
        elif isinstance(validation, float):
            self.held_out = self.rows * validation
        self.preset = self.family
        if self.family == "words" and self.classes > 20:
            self.preset = "intents"
        elif self.family == "characters" and self.median < 30:
            self.preset = "names"
        elif self.family == "channels" and roles.steps:
            self.preset = "measurements"
        is_word_task = self.family == "words" and not self.multi_label
        is_short = self.median < 64 and self.rows >= 1000 and self.classes > 4
        self.has_short_texts = is_word_task and is_short
        sizes = list(facts.classes.values())
        self.has_rare_class = not self.multi_label and rare_class(sizes) is not None


def settings_for(data: Situation) -> Settings:
    """Return the settings that suit a data set."""
    settings = read_preset("common") | read_preset(data.preset)
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
    return usual_share(rows)


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
    rows_per_class = 200
    if data.classes > 4:
        rows_per_class = 1000
    elif data.options.get("pretrained"):
        # Its branch gains from each row, and has no epochs of which there could be too many.
        rows_per_class = 500
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
    "training.label_smoothing": lambda data: not data.multi_label,
    "training.logit_adjustment": _is_uneven,
    "training.monitor": lambda data: data.multi_label or are_uneven(data.facts.classes),
    "training.refit": _gains_from_refit,
}
"""Maps a key of presets to its condition. The setting is left out where the condition is False."""


def _family(settings: Settings, data: Situation) -> None:
    """Read characters where the family says so, and leave words of the user's tokenizer whole."""
    if data.family in ("characters", "alphabet"):
        settings["data.tokenizer"] = Setting("char", data.facts.family.reason)
    if data.options.get("tokenizer") == "bpe":
        settings.pop("model.ngrams_spelling", None)
        settings.pop("model.subwords", None)


def _steps(settings: Settings, data: Situation) -> None:
    """Fit the settings of tables of time steps.

    Few missing numbers are marked, and not replaced by the last one. Rare classes are favoured less
    than in other series. N-grams of several columns are single tokens.
    """
    steps, often = data.roles.steps, data.facts.is_often_missing
    is_carried = often and not data.options.get("standardize")
    if data.preset == "measurements" and data.facts.is_missing and not is_carried:
        settings["data.missing"] = read_preset("steps")["data.missing"]
    if steps and "training.logit_adjustment" in settings:
        settings["training.logit_adjustment"] = Setting(0.2, "favours rare classes")
    columns = [name for name, kind in steps.items() if kind == "token"]
    if len(columns) > 1:
        reason = "the tokens of each column, in a linear branch next to the GRU"
        settings["model.ngrams"] = Setting({name: [1, 1] for name in columns}, reason)


def _length(settings: Settings, data: Situation) -> None:
    """Fit the settings that depend on the median length."""
    if data.preset == "series" and data.median >= LONG:
        del settings["model.embedding_dim"]  # the convolutions have channels of their own
    if data.family == "channels" and data.median > 100:
        del settings["training.augment"]
    if data.preset == "words" and data.median < 64 and data.classes <= 4:
        settings["model.attention_size"] = Setting(64, "a small hidden layer is enough")


def _rows(settings: Settings, data: Situation) -> None:
    """Fit n-grams, embeddings and batches to the number of rows and of tokens."""
    if data.family == "characters" and data.rows < min(5000, 400 * data.classes):
        reason = "1 to 6 characters in a row, in a linear branch next to the GRU"
        settings["model.ngrams"] = Setting([1, 6], reason)
    if data.family == "symbols" and data.facts.symbols >= 500:
        del settings["model.embedding_std"]
    if data.has_short_texts:
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
    batch_size = settings.get("batching.batch_size", Setting(64, "")).value
    # Epochs were measured with a tenth held out. The comment counts the rows that are learned.
    epochs = max(1, min(MOST_EPOCHS, round(updates / -(-data.rows * 9 // 10 // batch_size))))
    if isinstance(data.validation, float):
        learned = data.rows - round(data.held_out)
    else:
        learned = data.rows
    count = epochs * -(-learned // batch_size)
    settings["training.max_epochs"] = Setting(epochs, f"about {count:,} updates")


def _validation(settings: Settings, data: Situation) -> None:
    """Train all epochs where few rows are held out, and watch the F1 of several labels."""
    if data.held_out < 40:
        settings["training.patience"] = Setting(None, "trains all epochs")
    if data.multi_label:
        reason = "the F1 of all labels together"
        settings["training.monitor"] = Setting("micro_f1", reason)


RULES: tuple[Callable[[Settings, Situation], None], ...] = (
    _family,
    _steps,
    _length,
    _rows,
    _epochs,
    _validation,
)
"""Rules that compute settings, in an order in which each finds what it needs."""
