"""Every screen on terminals of 60 to 200 columns: columns are left out, digits never cut."""

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import seqtrain
from seqtrain.api.compare import VARIANTS, Comparison, Speed, VariantResult, recommend
from seqtrain.api.run_events import Event
from seqtrain.cli.main import run
from seqtrain.cli.screens.compare import show_comparison
from seqtrain.cli.screens.fit import FitScreen, show_scores
from tests.helpers.terminal import Terminal, terminal
from tests.helpers.tiny import CONFIG

Show = Callable[[list[str], int], Terminal]
WIDEST, NARROWER = 200, (60, 100)
FIGURE = re.compile(r"(?<![\w.])[+-]?[0-9][0-9,.]*(?:e[+-]?[0-9]+)?%?(?![\w…])")
CUT = re.compile(r"[0-9.,]…")
CLASSES = [f"class {number} of many letters" for number in (1, 2, 10)]


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """Two runs under runs/ of a set with labels of many letters; their figures are wide."""
    folder = tmp_path_factory.mktemp("screens")
    lines = [
        f"word{i % 3} and {'more words ' * (i % 7)}{i}\t{CLASSES[i % 3 if i % 5 else 0]}"
        for i in range(90)
    ]
    table = "text\tlabel\n" + "\n".join(lines) + "\n"
    (folder / "train.tsv").write_text(table)
    (folder / "test.tsv").write_text("text\tlabel\n" + "\n".join(lines[7:60]) + "\n")
    (folder / "c.yaml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def events(project) -> list[Event]:
    """Events of two fits, the second of which trains longer."""
    told: list[Event] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        for name, epochs in (("first", 1), ("second", 3)):
            told.clear()
            config = seqtrain.load_config("c.yaml", [f"training.max_epochs={epochs}"])
            seqtrain.fit(config, run_dir=f"runs/{name}", listener=told.append)
    return told


def show_fit(events: list[Event]) -> None:
    with closing(FitScreen(quiet=False)) as screen:
        for event in events:
            screen(event)


def show_several() -> None:
    """The table of `fit --seeds`, with made figures."""
    names = ("best weighted_f1", "test accuracy", "test macro_f1", "test loss")
    show_scores({name: [0.12345678, 1.0, 0.99999] for name in names})


def show_compared() -> None:
    """The table of `compare`, with every variant and made figures."""
    speed = Speed(1_234_567.0, 3, 987_654.0, 1_543_210.0)
    rows = [VariantResult(name, "", speed, speed, 0.63, 1.9e-6, 0.987, "") for name in VARIANTS]
    facts = ("cpu", 2, "gru", 4800, 113_366, [])
    show_comparison(Comparison(*facts, rows, 2.5, 600, *recommend(rows, "native"), 60.0))


MADE = {"fit --seeds": show_several, "compare": show_compared}


@pytest.fixture
def show(project, events, monkeypatch) -> Show:
    """Show a command's screen on a terminal of so many columns."""
    monkeypatch.chdir(project)

    def on_terminal(words: list[str], width: int) -> Terminal:
        with terminal(width) as shown:
            if words == ["fit"]:
                show_fit(events)
            elif make := MADE.get(" ".join(words)):
                make()
            else:
                with pytest.raises(SystemExit):
                    run(words)
        return shown

    return on_terminal


def figures(lines: list[str]) -> set[str]:
    """Return the numbers on the lines of tables."""
    table = [line for line in lines if "  " in line.strip() and "left out" not in line]
    return {figure for line in table for figure in FIGURE.findall(line)}


SCREENS = [
    ["fit"],
    ["data", "c.yaml"],
    ["eval"],
    ["eval", "--steps"],
    ["errors"],
    ["diff", "runs/first", "runs/second"],
    ["runs"],
    ["check"],
    *(words.split() for words in MADE),
]


@pytest.mark.parametrize("words", SCREENS, ids=" ".join)
def test_no_digit_is_cut(show, words):
    widest = show(words, WIDEST)
    whole = figures(widest.lines())
    assert whole
    for shown in (widest, *(show(words, width) for width in NARROWER)):
        width, lines = shown.width, shown.lines()
        assert not CUT.search("\n".join(lines)), width
        fitting = [line for line in shown.logical_lines() if line and len(line) <= width]
        assert [line for line in fitting if "\r" not in line and line not in lines] == []
        wide = [line for line in shown.logical_lines() if len(line) > width and "\r" not in line]
        assert [line for line in wide if "   " in line.strip()] == [], width  # prose may wrap
        assert figures(fitting) <= whole, width


def test_what_has_no_room_is_named(show):
    narrow, wide = (show(["runs"], width).written for width in (60, 200))
    assert re.search(r"left out, as there is no room: .*loss", narrow)
    assert "left out" not in wide
    for words in (["fit"], ["eval"], ["diff", "runs/first", "runs/second"], ["errors"]):
        assert "left out" not in show(words, 80).written
    lines = [line for line in show(["runs"], 80).lines() if line.strip().startswith("run ")]
    assert lines[0].split()[:5] == ["run", "accuracy", "test.accuracy", "time", "baseline"]
