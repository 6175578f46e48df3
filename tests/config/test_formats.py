"""The registry of formats, and what is derived from it."""

import pytest

from seqtrain.tables.formats import (
    ENDINGS,
    FORMATS,
    TRAINING_FORMATS,
    resolve_format,
)
from tests.helpers.tiny import Cli


def test_each_ending_belongs_to_one_format() -> None:
    endings = [ending for format in FORMATS.values() for ending in format.endings]
    assert sorted(endings) == sorted({*endings}) == sorted(ENDINGS)
    for ending, name in ENDINGS.items():
        for path in (f"a{ending}", f"A{ending.upper()}", f"a.b{ending}.gz", f"a{ending}.zst"):
            assert resolve_format(path, "auto") == name
    assert resolve_format("a.csv", "tsv") == "tsv"
    assert resolve_format("a.csv.txt.bak", "auto") is None


@pytest.mark.parametrize(
    ("command", "names"), [("init", TRAINING_FORMATS), ("predict", tuple(FORMATS))]
)
def test_the_commands_offer_the_formats(command: str, names: tuple[str, ...], cli: Cli) -> None:
    shown = " ".join(cli(command, "--help").out.replace("│", " ").split())
    assert "|".join(names) in shown.replace("| ", "|").replace(" |", "|").replace(" ", "")
