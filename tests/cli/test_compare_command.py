"""`seqtrain compare`: a table or JSON on stdout, a chart where asked, on the data that ships."""

import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from seqtrain.model.engines.native.library import why_not
from tests.helpers.tiny import listing, run_in, sets

ROOT = Path(__file__).parents[2]
SMALL = ("--set", "model.hidden_size=16", "--set", "model.embedding_dim=8", "--seconds", "2")
ENGINES = ["native", "torch"]
OPTIONS = ["unroll-padded", "unroll-masked", "sort-in-module", "random-batches"]
RECIPES = ["padded-sorted", "padded-sorted-mask", "padded", "packed-sorted", "packed"]
WRONG = ["last-of-padding", "mean-over-padding"]
ALL = [*ENGINES, *OPTIONS, *RECIPES, *WRONG, "mean-valid"]
HEADINGS = [
    "engines (model.engine)",
    "options of seqtrain (model.unroll, batching.sort, batching.bucketing)",
    "plain torch scripts, nn.GRU (sorted: by like length; mask: finds the last step)",
    "mistakes: padding read as data; -valid: the same pooling done right",
]
MODES = ("training", "prediction")
PRESENT = ALL[1:] if why_not() else ALL
SVG = "{http://www.w3.org/2000/svg}"


class Compared(NamedTuple):
    """What `seqtrain compare --json --chart` left: its figures and its chart."""

    found: dict[str, Any]
    chart: str


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Compared:
    """One comparison on the data that ships, with a row that can't be read; it leaves no file."""
    folder, chart = tmp_path_factory.mktemp("compared"), tmp_path_factory.mktemp("c") / "chart.svg"
    shutil.copytree(ROOT / "data" / "orders", folder / "data" / "orders")
    with (folder / "data" / "orders" / "train.tsv").open("a") as file:
        file.write("no label\n")
    few = (folder / "data" / "orders" / "validation.tsv").read_text().splitlines()[:51]
    (folder / "few.tsv").write_text("\n".join(few))  # soon scored, so that there is time to learn
    before = listing(folder)
    config = str(ROOT / "configs" / "quickstart.yaml")
    keys = sets("data.bad_rows=drop", "data.validation=few.tsv")
    ended = run_in(folder, "compare", config, *SMALL, *keys, "--json", "--chart", str(chart))
    assert listing(folder) == before
    return Compared(ended.json, chart.read_text())


def test_figures(compared):
    found = compared.found
    assert {"device", "threads", "reason"} <= found.keys()
    assert found["tokens"] == 113_366
    rows = {row["name"]: row for row in found["candidates"]}
    assert list(rows) == ALL
    assert found["recommended"] in PRESENT
    assert found["passes"] > 0  # a share of the time is left, however long the start took
    for name in PRESENT:
        row = rows[name]
        assert row["problem"] == ""
        assert (row["largest_difference"] <= 1e-4) == (name not in WRONG)
        assert 0 <= row["accuracy"] <= 1
        random = name in (*WRONG, "padded")
        padding = 0.63 if random else 0.03 if "padded" in name or "masked" in name else 0.0
        assert row["padding"] == pytest.approx(padding, abs=0.02)
        for mode in MODES:
            speed = row[mode]
            assert speed["tokens_per_second"] > 0
            assert speed["turns"] >= 1
            assert 0 < speed["slowest"] <= speed["tokens_per_second"] <= speed["fastest"]


def test_chart(compared):
    picture = ElementTree.fromstring(compared.chart)
    texts = [element.text for element in picture.iter(f"{SVG}text")]
    assert [text for text in texts if text in ALL] == PRESENT
    assert len([text for text in texts if text in HEADINGS]) == len(HEADINGS)
    assert texts.count("wrong") == len(WRONG)
    legend = 2
    assert len(list(picture.iter(f"{SVG}rect"))) == 2 * len(PRESENT) + legend
    assert len(list(picture.iter(f"{SVG}path"))) == 2 * len(PRESENT) + 1  # spreads
