"""The registry of formats, and what is derived from it."""

from pathlib import Path

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


@pytest.mark.parametrize("id", ["who", "[kind, who]", "text", "folder"])
@pytest.mark.parametrize("ending", ["txt", "fasta", "fasttext"])
def test_texts_have_no_id_but_the_file(cli: Cli, tmp_path: Path, id: str, ending: str) -> None:
    (tmp_path / f"walk_7.{ending}").write_text("walk home\n")
    config = tmp_path / "c.yaml"
    lines = [
        f"train: {tmp_path}/*.{ending}",
        "validation: null",
        "path: '(?P<kind>[a-z]+)_(?P<who>[0-9]+)'",
        f"id: {id}",
    ]
    config.write_text("\n  ".join(["data:", *lines, "label: label"]))
    assert f"{config}:5:7: data.id" in cli("fit", str(config), code=2).err
