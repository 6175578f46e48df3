"""Options of `seqtrain init`: what the user says about the data files."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqtrain.data.read_options import Column

KINDS = ("text", "tokens", "features")


@dataclass(frozen=True)
class InitOptions:
    """Facts about data files that the user gives. `init` detects everything that is None or "auto".

    Attributes:
        label: Column of the label.
        sequence: Columns of the sequence.
        id, order, steps: Columns of a table with one row per time step.
        header: True if the first row holds the column names.
        format, delimiter, encoding: How the files are written.
        settings: Further keys of the config, as `section.key=value`.
    """

    label: Column | None = None
    sequence: list[Column] | None = None
    id: Column | None = None
    order: Column | None = None
    steps: list[Column] | None = None
    header: bool | None = None
    format: str = "auto"
    delimiter: str = "auto"
    encoding: str | None = None
    settings: Sequence[str] = ()

    def setting(self, key: str) -> str | None:
        """Return the value that the settings give a key, or None."""
        values = dict(setting.partition("=")[::2] for setting in self.settings)
        return next((v.strip() for k, v in values.items() if k.strip() == key), None)

    @property
    def kind(self) -> str | None:
        """Kind of sequence that the settings name, or None."""
        kind = self.setting("data.kind")
        return kind if kind in KINDS else None

    @property
    def drops_bad_rows(self) -> bool:
        """True if rows that can't be read are to be dropped."""
        return self.setting("data.bad_rows") == "drop"

    def named(self, option: str) -> list[Column]:
        """Return the columns that an option such as "id" names, as a list."""
        value = getattr(self, option)
        return value if isinstance(value, list) else [] if value is None else [value]
