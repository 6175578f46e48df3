"""The registry of formats, and what is derived from it."""

import pytest

from seqtrain.config.schema import DataConfig
from seqtrain.tables.formats import (
    ENDINGS,
    FORMATS,
    TRAINING_FORMATS,
    resolve_format,
)
from seqtrain.tables.sources import reader_of
from tests.helpers.tiny import Cli


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_has_a_reader(name: str) -> None:
    assert callable(reader_of(name))


def test_each_ending_belongs_to_one_format() -> None:
    endings = [ending for format in FORMATS.values() for ending in format.endings]
    assert sorted(endings) == sorted({*endings}) == sorted(ENDINGS)
    for ending, name in ENDINGS.items():
        for path in (f"a{ending}", f"A{ending.upper()}", f"a.b{ending}.gz", f"a{ending}.zst"):
            assert resolve_format(path, "auto") == name
    assert resolve_format("a.csv", "tsv") == "tsv"
    assert resolve_format("a.csv.txt.bak", "auto") is None


@pytest.mark.parametrize("name", FORMATS)
def test_the_config_knows_the_formats_that_have_labels(name: str) -> None:
    if name in TRAINING_FORMATS:
        assert DataConfig(train="a", format=name).format == name
    else:
        with pytest.raises(ValueError, match=name):
            DataConfig(train="a", format=name)


@pytest.mark.parametrize(
    ("command", "names"), [("init", TRAINING_FORMATS), ("predict", tuple(FORMATS))]
)
def test_the_commands_offer_the_formats(command: str, names: tuple[str, ...], cli: Cli) -> None:
    shown = " ".join(cli(command, "--help").out.replace("│", " ").split())
    assert "|".join(names) in shown.replace("| ", "|").replace(" |", "|").replace(" ", "")
