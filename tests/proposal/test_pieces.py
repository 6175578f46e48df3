"""`init` takes the pieces of one data set, by a pattern or by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqtrain.cli.commands.init import default_name
from seqtrain.config import parse_config
from seqtrain.errors import DataError
from seqtrain.proposal import Wishes, propose


def test_pieces_are_looked_at_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, labels in enumerate(["ab", "bc"]):
        rows = "".join(f"{labels[i % 2]},text of row {i} w{i}\n" for i in range(40))
        Path(f"part-{number}.csv").write_text("label,text\n" + rows)
    Path("dev-1.csv").write_text("label,text\nc,some text\na,other text\n")
    listed = propose(["part-0.csv", "part-1.csv", "dev-1.csv"], Wishes())
    config = parse_config(listed, "listed")
    assert config.data.train == ["part-0.csv", "part-1.csv"]
    assert config.data.validation == "dev-1.csv"
    assert "80 rows, 3 classes" in listed
    config = parse_config(propose(["part-*.csv"], Wishes()), "pattern")
    assert (config.data.train, config.data.label) == ("part-*.csv", "label")
    with pytest.raises(DataError, match="train: no file matches"):
        propose(["q*.csv"], Wishes())
    with pytest.raises(DataError, match=r"both 'part-0\.csv' and 'other\.csv' may be it"):
        propose(["part-0.csv", "other.csv"], Wishes())


@pytest.mark.parametrize("data", ["some/reviews-*.csv.gz", "reviews.csv", "reviews[0-9]?.csv"])
def test_the_config_is_named_after_the_data(data: str) -> None:
    assert default_name(data).startswith("reviews")
    assert default_name(data).endswith(".yaml")
    assert not {*default_name(data)} & {*"*?[]"}
