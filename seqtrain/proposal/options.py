"""Options of `seqtrain init`: what the user says about the data files."""

from collections.abc import Sequence
from typing import Any

from seqtrain.config.document import Unreadable, read_yaml
from seqtrain.data.read_options import Column

COLUMN_OPTIONS = ("label", "sequence", "id", "order", "steps")
"""Options that name columns."""
KINDS = ("text", "tokens", "features")
LIKE_OPTIONS = ("label", "kind", "tokenizer", "bad_rows", "validation", "standardize")
"""Keys of the data section that decide how the files are looked at."""


class InitOptions:
    """Facts about data files that the user gives. `init` detects everything else.

    Args:
        settings: Further keys of the config, as `section.key=value`.
        options: `label` and `sequence`: columns of the label and the sequence; `id`, `order` and
            `steps`: columns of a table with one row per time step; `header`: True if the first row
            names the columns; `format`, `delimiter` and `encoding`: how the files are written.
            None or "auto" stands for an option that isn't given.
    """

    def __init__(self, settings: Sequence[str] = (), **options: Any) -> None:
        self.settings = settings
        self.options = {name: x for name, x in options.items() if x not in (None, "auto", [])}
        self.given = dict(self.options)
        for setting in settings:
            key, _, text = setting.partition("=")
            section, _, name = key.strip().partition(".")
            value = read_yaml(text)[0]
            if section == "data" and name in LIKE_OPTIONS and not isinstance(value, Unreadable):
                self.given.setdefault(name, value)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an option, or the default if it isn't given."""
        return self.given.get(name, default)

    @property
    def kind(self) -> str | None:
        """Kind of sequence that the settings name, or None."""
        kind = self.get("kind")
        return kind if kind in KINDS else None

    @property
    def drops_bad_rows(self) -> bool:
        """True if rows that can't be read are to be dropped."""
        return bool(self.get("bad_rows") == "drop")

    def named(self, option: str) -> list[Column]:
        """Return the columns that an option such as "id" names, as a list."""
        value = self.get(option)
        return value if isinstance(value, list) else [] if value is None else [value]
