"""Findings about data files, from which a config and its notes are written."""

from dataclasses import dataclass, field

from seqtrain.config import Config
from seqtrain.proposal.facts import Facts
from seqtrain.proposal.options import InitOptions, Splits
from seqtrain.proposal.roles import Roles
from seqtrain.proposal.settings import Setting, Settings, Situation, settings_for
from seqtrain.proposal.table import Table
from seqtrain.proposal.write import column_settings, comments_of, split_settings, write_config


@dataclass
class Findings:
    """What was found about data files.

    Attributes:
        table: The files of train.
        roles: Roles of their columns.
        facts: Facts about train, and which rows the other splits leave out.
        splits: Maps each split to its value in the config.
        rows: Maps each split to its number of rows, as far as it is known. Those of train count
            the rows that are held out.
        encoding: Time that a pretrained encoder takes, as text.
        command: Command of the user, for a comment.
    """

    table: Table
    roles: Roles
    facts: Facts
    splits: Splits
    rows: dict[str, int] = field(default_factory=dict)
    encoding: str = ""
    command: str = ""

    @property
    def options(self) -> InitOptions:
        """Options of the user, and those that follow from the layout of the files."""
        return self.table.options

    def config(self) -> tuple[str, Config, Settings]:
        """Return the config as text, parsed, and its settings."""
        validation, held_out = self.splits["validation"], self.rows.get("validation")
        situation = Situation(self.facts, self.roles, self.options, validation, held_out)
        settings = split_settings(self.splits, self.rows, self.table, self.roles, self.facts)
        settings |= column_settings(self.table, self.roles, self.facts)
        settings |= settings_for(situation)
        if self.encoding:
            reason = f"a frozen encoder; {self.encoding}"
            settings["model.pretrained"] = Setting(self.options.get("pretrained"), reason)
        comments = comments_of(self.command, self.facts)
        return write_config(settings, comments, self.options)
