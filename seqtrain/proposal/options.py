"""Options of `seqtrain init`, and the layout of files: what is known before they are read."""

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from seqtrain.config.document import Unreadable, read_option
from seqtrain.sequences.sources import files_of
from seqtrain.tables.blocks import LABEL, Name
from seqtrain.tables.formats import names_of

COLUMN_OPTIONS = ("label", "sequence", "id", "order", "steps")
"""Options that name columns."""
MOST_CONVERTED = 8
"""Largest number of files that a command in a message names."""
INIT_COMMAND = "seqtrain init …"
"""Placeholder in messages for the command that the user typed, with all its options."""
OTHER_COLUMN_KEYS = ("group", "weight", "static")
"""Keys of data that name columns which are neither the sequence nor the label."""
DATA_KINDS = ("text", "tokens", "features")
Splits: TypeAlias = dict[str, Any]
"""Maps each split to its value in the config.

The value is the path of one file, a list of paths, a fraction or a fold of train, or None.
"""


class InitOptions:
    """Facts about data files that the user gives. `init` detects everything else.

    Attributes:
        settings: The settings, as they were passed.
        given: Maps each given option to its value, and NAME of each setting `data.NAME=value`. An
            option has precedence over a setting of the same name, except null.

    Args:
        settings: Further keys of the config, as `section.key=value`.
        options: The options below. An option that is None, "auto" or an empty list isn't given.

            - `label` and `sequence`: columns of the label and the sequence.
            - `id`, `order` and `steps`: columns of a table with one row per time step.
            - `header`: True if the first row names the columns.
            - `format`, `delimiter` and `encoding`: how the files are written.
            - `pretrained`: folder of a pretrained encoder of texts.
    """

    def __init__(self, settings: Sequence[str] = (), **options: Any) -> None:
        self.settings = settings
        self.given = {name: x for name, x in options.items() if x not in (None, "auto", [])}
        for setting in settings:
            key, _, text = setting.partition("=")
            section, _, name = key.strip().partition(".")
            value = read_option(text)
            is_given = not isinstance(value, Unreadable) and value != "auto"
            if section == "data" and is_given:
                if value is None:  # the setting leaves the key out of the config
                    self.given.pop(name, None)
                self.given.setdefault(name, value)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a given option or setting, or `default` if the user gave none."""
        return self.given.get(name, default)

    @property
    def kind(self) -> str | None:
        """Kind of sequence that the user gave (text, tokens or features), or None."""
        kind = self.get("kind")
        return kind if kind in DATA_KINDS else None

    def named(self, option: str) -> list[Name]:
        """Return the column names or indexes in an option such as "id".

        The list is empty if the user didn't give the option.
        """
        value = self.get(option)
        if isinstance(value, list | dict):  # data.steps maps columns to kinds
            return list(value)
        if value in (None, "auto"):
            return []
        return [value]

    def leaves_out(self, option: str) -> bool:
        """Return True if the user gave null for an option."""
        return option in self.given and self.given[option] is None

    @property
    def used_otherwise(self) -> set[str]:
        """Names of columns that the user names, but neither as the sequence nor as the label."""
        others = {str(x) for key in OTHER_COLUMN_KEYS for x in self.named(key)}
        return others - {str(x) for key in ("sequence", "label") for x in self.named(key)}

    def with_given(self, **given: Any) -> "InitOptions":
        """Return options with further values, which follow from the files."""
        found = copy(self)
        found.given = self.given | given
        return found

    def without_columns(self) -> "InitOptions":
        """Return options that name no columns, to read a file that may lack them."""
        found = copy(self)
        found.given = {name: x for name, x in self.given.items() if name not in COLUMN_OPTIONS}
        return found


@dataclass(frozen=True)
class FileLayout:
    """Files of a data set, and the place of their labels.

    Attributes:
        splits: Maps each split to its files.
        options: Options of the user, with the values that follow from the layout.
        pattern: Value of data.path, or None.
        joins: Value of data.join.
        group: Column whose rows stay on one side of a split, or None.
        label_columns: Columns of a file of labels, one of which is the label. Inputs to predict
            lack them.
        notes: Lines about files that aren't read.
    """

    splits: Splits
    options: InitOptions = field(default_factory=InitOptions)
    pattern: str | None = None
    joins: Sequence[dict[str, Any]] = ()
    group: Name | None = None
    label_columns: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def finds_label(self) -> bool:
        """True if the label of a file is in its path."""
        return f"(?P<{LABEL}>" in (self.pattern or "")

    @property
    def files(self) -> list[str]:
        """Files of all splits, as the user gave them."""
        return [path for split in self.splits.values() for path in names_of(split)]

    def files_with(self, path: str) -> list[str]:
        """Return what a conversion of a file converts: the files of all splits, or their folder.

        It is the file alone if there are more than `MOST_CONVERTED`, or if it isn't one of them.
        """
        files = [file for name, split in self.splits.items() for file in files_of(name, split)]
        files = list(dict.fromkeys(files))
        if len(files) == 1 and os.path.isdir(files[0]) and path.startswith(files[0]):
            return files
        if path in files and len(files) <= MOST_CONVERTED and all(map(os.path.isfile, files)):
            return files
        return [path]

    @property
    def train(self) -> list[str]:
        """Files of train: a pattern is replaced by the files that match it."""
        return files_of("train", self.splits["train"])
