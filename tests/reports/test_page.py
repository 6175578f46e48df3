"""The report: one offline page that shows what its facts say, whatever the texts hold."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.dom import minidom

from seqtrain.reports.page import Line, line_chart
from tests.helpers.tiny import Cli, listing, sets, write_jsonl

EVIL = '"><script>alert("x")</script><img src=x onerror=y>&amp;\x1b[31m\u202e'


class Page(HTMLParser):
    """Gathers elements, attributes and texts of a page, and checks that elements are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open
        for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
            minidom.parseString(drawing)
            assert "nan" not in drawing

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_it_holds_the_scores_and_the_errors(beside, tmp_path, cli):
    before = listing(beside)
    ended = cli("report", "run", "-o", tmp_path / "r.html", "--steps")
    assert ended.out == ""
    assert "written" in ended.err
    assert listing(beside) == before
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(text)
    words, scores = " ".join(page.words), cli("eval", "run", "--json").json
    for name in ("accuracy", "macro_f1", "ece"):
        assert f"{scores[name]:.2%}" in words
    assert f"{scores['loss']:.4f}" in words
    for row in cli("errors", "run", "--json").json["errors"]:
        assert row["text"] in words
    recorded = json.loads(Path("run/environment.json").read_text())
    for said in (*recorded["data"].values(), "test.tsv", "seqtrain fit run/config.yaml"):
        assert said in words
    for said in ("share read", "Training", "trained on", "precision of the largest classes"):
        assert said in words
    assert page.tags.count("svg") == 8
    assert "matrix" in [value for _, value in page.attributes]
    assert not re.search(r"https?:|\bsrc=|\bhref=|url\(|@import", text)
    assert ("http-equiv", "Content-Security-Policy") in page.attributes
    assert any(str(value).startswith("default-src 'none'") for _, value in page.attributes)


def test_runs_stand_side_by_side(begun, cli):
    cli("fit", "c.yaml", "--run-dir", "other", "--set", "seed=1")
    cli("report", "r", "other", "-o", "r.html")
    words = Page(Path("r.html").read_text()).words
    assert "Comparison of runs" in words
    assert {"r validation", "other validation"} <= set(words)


def fitted(cli: Cli, labels: list[str], run: str) -> str:
    """Return the page of a run whose texts are evil too."""
    given = [{"text": f"{EVIL} {x} {i}", "label": x} for i in range(3) for x in labels]
    write_jsonl(Path("train.jsonl"), given)
    write_jsonl(Path("test.jsonl"), [*given, {"text": "new", "label": "train has none"}])
    files = ("data.train=train.jsonl", "data.validation=0.3", "data.test=test.jsonl")
    cli("fit", "c.yaml", "--run-dir", run, *sets(*files, "training.max_epochs=1"))
    cli("report", run, "-o", f"{run}.html")
    return Path(f"{run}.html").read_text()


def test_texts_cannot_inject(project, cli):
    text = fitted(cli, [f"{EVIL} {n}" for n in range(4)], "r<img src=x>")
    page = Page(text)
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not set("\x1b\u202e") & set(text)
    assert '<script>alert("x")</script>' in "".join(page.words)


def test_of_many_classes_there_is_no_matrix(project, cli):
    page = Page(fitted(cli, [f"class {n}" for n in range(150)], "r"))
    assert "50 of " in " ".join(page.words)
    assert page.words.count("(unknown label)") == 1
    assert "matrix" not in [value for _, value in page.attributes]


def test_an_axis_of_shares_ends_at_100_percent():
    chart = line_chart("t", [Line("a", [(0, 1.0), (9, 1.0)])], "x", percent=True)
    assert [text for _, text in chart.y_ticks][-1] == "100 %"
