"""`seqtrain compare`: a table or JSON on stdout, on the data that ships."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from seqtrain.engines.native.library import why_unavailable
from tests.helpers.tiny import listing, run_in, sets

ROOT = Path(__file__).parents[2]
SMALL = ("--set", "model.hidden_size=16", "--set", "model.embedding_dim=8", "--seconds", "2")
ENGINES = ["native", "torch"]
OPTIONS = ["unroll-padded", "unroll-masked", "sort-in-module", "random-batches"]
ALL = [*ENGINES, *OPTIONS]
MODES = ("training", "prediction")
PRESENT = ALL[1:] if why_unavailable() else ALL


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> dict[str, Any]:
    """One comparison on the data that ships, with a row that can't be read; it leaves no file."""
    folder = tmp_path_factory.mktemp("compared")
    shutil.copytree(ROOT / "data" / "orders", folder / "data" / "orders")
    with (folder / "data" / "orders" / "train.tsv").open("a") as file:
        file.write("no label\n")
    few = (folder / "data" / "orders" / "validation.tsv").read_text().splitlines()[:51]
    (folder / "few.tsv").write_text("\n".join(few))  # soon scored, so that there is time to learn
    before = listing(folder)
    config = str(ROOT / "configs" / "quickstart.yaml")
    keys = sets("data.bad_rows=drop", "data.validation=few.tsv")
    ended = run_in(folder, "compare", config, *SMALL, *keys, "--json")
    assert listing(folder) == before
    found: dict[str, Any] = ended.json
    return found


def test_figures(compared):
    found = compared
    assert {"device", "threads", "rnn", "seconds", "reason"} <= found.keys()
    assert found["tokens"] == 113_366
    rows = {row["name"]: row for row in found["candidates"]}
    assert list(rows) == ALL
    assert found["recommended"] in PRESENT
    assert found["passes"] > 0  # a share of the time is left, however long the start took
    for name in PRESENT:
        row = rows[name]
        assert row["problem"] == ""
        assert row["largest_difference"] <= 1e-4
        assert 0 <= row["accuracy"] <= 1
        assert row["padding"] == pytest.approx(0.03 if "unroll" in name else 0.0, abs=0.02)
        for mode in MODES:
            speed = row[mode]
            assert speed["tokens_per_second"] > 0
            assert speed["turns"] >= 1
            assert 0 < speed["slowest"] <= speed["tokens_per_second"] <= speed["fastest"]
