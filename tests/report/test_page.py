"""The report: one offline page that shows what its facts say, whatever the texts hold."""

import random
import re
from html.parser import HTMLParser
from typing import Any
from xml.dom import minidom

import pytest

from seqtrain.report.facts import PredictedExample, RunFacts
from seqtrain.report.page import render

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


def facts(classes: int, *, name: str = "runs/a", text: str = "a b", epochs: int = 4) -> RunFacts:
    draw = random.Random(0)
    labels = [f"{text} {n}" for n in range(classes)]
    predictions = [
        PredictedExample(n + 2, text, labels[n % classes], draw.choice(labels), draw.random(), n)
        for n in range(300)
    ]
    per_class = {"precision": 0.5, "recall": 0.25, "f1": 1 / 3, "support": 9}
    figures: dict[str, Any] = {
        "accuracy": 0.8125,
        "several": False,
        "num_unknown_labels": 2,
        "unknown_predicted": [1, 1, *[0] * (classes - 2)],
        "macro_f1": 0.75,
        "weighted_f1": 0.5,
        "loss": 0.25,
        "ece": 0.0416,
        "num_examples": 300,
        "labels": labels,
        "per_class": dict.fromkeys(labels, per_class),
        "confusion_matrix": [
            [30 if i == j else i % 2 for i in range(classes)] for j in range(classes)
        ],
        "confusions": [{"true": text, "predicted": "other", "count": n} for n in range(60, 0, -1)],
        "by_length": [{"min": 1, "max": 9, "num_examples": 300, "accuracy": 0.8125}],
    }
    return RunFacts(
        name=name,
        config=f"seed: 0\ndata:\n  train: {text}\n",
        environment={"torch": text, "data": {text: "0" * 64}},
        epochs=[
            {
                "epoch": n,
                "train": {"loss": 1 / n, "accuracy": 0.5},
                "validation": {"loss": 2 / n, "accuracy": 0.625},
                "lr": 0.01 / n,
                "tokens_per_second": 1e5,
            }
            for n in range(1, epochs + 1)
        ],
        card={"trained on": text},
        split="test",
        scores=figures,
        prefixes=[{"share": n / 10, "accuracy": n / 10} for n in range(1, 11)],
        predictions=predictions,
        warnings=["there is no test split"],
        precision_recall={label: [(0.5, 0.9), (1.0, 0.4)] for label in labels[:6]},
    )


@pytest.mark.parametrize("classes", [2, 150])
def test_a_page_holds_the_figures(classes):
    page = Page(render([facts(classes)], title="my run"))
    words = " ".join(page.words)
    figures = ("81.25%", "75.00%", "0.2500", "4.16%", "33.33%", "0" * 64)
    texts = ("my run", "trained on", "there is no test split", "50 of ", "seed: 0\ndata:\n  train:")
    for expected in figures + texts:
        assert expected in words
    assert page.tags.count("svg") == 8
    assert "precision of the largest classes" in words
    assert words.count("(unknown label)") == (2 if classes == 2 else 1)
    assert ("matrix" in [value for _, value in page.attributes]) == (classes == 2)


def test_runs_stand_side_by_side():
    words = Page(render([facts(3), facts(3, name="runs/b")], title="both")).words
    assert "Runs side by side" in words
    assert {"runs/a validation", "runs/b validation"} <= set(words)


def test_texts_cannot_inject_and_nothing_is_loaded_from_elsewhere():
    text = render([facts(4, name=EVIL, text=EVIL)], title=EVIL)
    page = Page(text)
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not set("\x1b\u202e") & set(text)
    assert '<script>alert("x")</script>' in "".join(page.words)
    plain = render([facts(4)], title="t")
    assert not re.search(r"https?:|\bsrc=|\bhref=|url\(|@import", plain)
    assert ("http-equiv", "Content-Security-Policy") in page.attributes
    assert any(str(value).startswith("default-src 'none'") for _, value in page.attributes)


@pytest.mark.parametrize("epochs", [0, 1, 2])
def test_few_epochs(epochs):
    page = render([facts(3, epochs=epochs)], title="t")
    assert ("Training" in page) == (epochs > 0)
    for drawing in re.findall(r"<svg.*?</svg>", page, re.S):
        minidom.parseString(drawing)
        assert "nan" not in drawing
