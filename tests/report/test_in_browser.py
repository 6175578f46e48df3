"""The report in headless Chromium: laid out on a phone and a desk, in the dark, and injecting
nothing. Skipped where there is no Chromium."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from seqtrain.report import AnsweredExample, RunFacts, render

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
WIDTHS = (360, 800, 1200)
EVIL = '"><script>document.title = "taken"</script><img src=x onerror="document.title=1"> & é 東京'
FRAME = '<iframe src="{name}" style="width:{width}px;height:2000px"></iframe>'
FRAMES = """\
<!doctype html>{frames}
<pre id="found"></pre><script>
const name = e => e.tagName + "." + e.getAttribute("class") + " " + e.textContent.slice(0, 30);
const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
function colliding(page) {{
  const found = [];
  for (const parent of page.querySelectorAll("body, body *:not(svg *)")) {{
    const inside = parent.tagName == "svg" ? parent.querySelectorAll("text") : parent.children;
    const shown = [...inside].map(e => [e, e.getBoundingClientRect()])
      .filter(([e, box]) => box.width && box.height);
    shown.forEach(([e, box], i) => shown.slice(i + 1).forEach(([other, its]) => {{
      if (meet(box, its)) found.push(name(e) + " | " + name(other));
    }}));
  }}
  return found;
}}
function outside(page, width) {{
  const scrolls = e => e && (page.defaultView.getComputedStyle(e).overflowX == "auto"
    || scrolls(e.parentElement));
  return [...page.querySelectorAll("body *")].filter(e => !scrolls(e)
    && (e.getBoundingClientRect().right > width + 1 || e.getBoundingClientRect().left < -1))
    .map(name);
}}
function looked(frame) {{
  const page = frame.contentDocument, root = page.documentElement;
  return {{
    title: page.title, scripts: page.scripts.length, images: page.images.length,
    overflow: root.scrollWidth - root.clientWidth, height: root.scrollHeight,
    colliding: colliding(page), outside: outside(page, root.clientWidth),
    charts: [...page.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect().width),
    background: page.defaultView.getComputedStyle(page.body).backgroundColor
      + page.defaultView.getComputedStyle(root).backgroundColor,
  }};
}}
window.onload = () => {{
  const found = [...document.querySelectorAll("iframe")].map(looked);
  document.getElementById("found").textContent = JSON.stringify(found);
}};
</script>
"""


def facts(classes: int) -> RunFacts:
    """Return a run whose labels and texts try to break out of the page."""
    labels = [f"{EVIL} {n}" for n in range(classes)]
    answers = [
        AnsweredExample(
            n + 2,
            EVIL * 5 + "unbroken" * 40,
            labels[n % classes],
            labels[(n + n % 3) % classes],
            n % 10 / 10,
            n,
        )
        for n in range(300)
    ]
    each = {"precision": 0.5, "recall": 0.25, "f1": 1 / 3, "support": 300 // classes}
    epochs = [
        {
            "epoch": n,
            "lr": 0.01 / n,
            "tokens_per_second": 1e5,
            "train": {"loss": 1 / n, "accuracy": 0.5},
            "validation": {"loss": 2 / n, "accuracy": n / 10},
        }
        for n in range(1, 9)
    ]
    scores = {
        "accuracy": 0.8125,
        "macro_f1": 0.75,
        "weighted_f1": 0.5,
        "loss": 0.25,
        "ece": 0.05,
        "num_examples": 300,
        "labels": labels,
        "per_class": dict.fromkeys(labels, each),
        "by_length": [{"min": 1, "max": 9, "num_examples": 300, "accuracy": 0.8125}],
    }
    return RunFacts(
        name=EVIL,
        config=f"seed: 0\ndata:\n  train: {EVIL}\n",
        environment={"torch": EVIL},
        epochs=epochs,
        card={"trained on": EVIL, EVIL: "x" * 300},
        split="test",
        scores=scores,
        prefixes=[{"share": n / 10, "accuracy": n / 10} for n in range(1, 11)],
        answers=answers,
    )


def chromium(folder: Path, *arguments: str) -> str:
    """Run Chromium once, with a profile of its own."""
    assert CHROMIUM is not None
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [CHROMIUM, *OPTIONS, profile, "--virtual-time-budget=3000", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def looked_at(folder: Path, pages: list[tuple[str, int]], *options: str) -> list[dict[str, Any]]:
    """Open each page in a frame of its width; return what the browser makes of them."""
    frames = ""
    for number, (page, width) in enumerate(pages):
        (folder / f"{number}.html").write_text(page, encoding="utf-8")
        frames += FRAME.format(name=f"{number}.html", width=width)
    (folder / "frame.html").write_text(FRAMES.format(frames=frames))
    frame = (folder / "frame.html").as_uri()
    dom = chromium(folder, "--allow-file-access-from-files", "--dump-dom", *options, frame)
    told = re.search('<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    assert told is not None, dom
    values: list[dict[str, Any]] = json.loads(unescape(told[1]))
    return values


def test_nothing_sticks_out_and_nothing_is_injected(tmp_path: Path) -> None:
    pages = [(render([facts(n)], title=EVIL), width) for n in (2, 150) for width in WIDTHS]
    for (_, width), found in zip(pages, looked_at(tmp_path, pages), strict=True):
        assert found["title"] == EVIL
        assert (found["scripts"], found["images"]) == (1, 0)
        assert found["overflow"] <= 0
        assert (found["colliding"], found["outside"]) == ([], [])
        assert len(found["charts"]) == 7
        assert all(100 < chart <= width for chart in found["charts"])
        assert found["height"] > 2000


def test_two_runs_stand_side_by_side(tmp_path: Path) -> None:
    runs = [[facts(n), replace(facts(n), name="b" * 80)] for n in (2, 2, 150)]
    pages = [(render(run, title="both"), width) for run, width in zip(runs, WIDTHS, strict=True)]
    for found in looked_at(tmp_path, pages):
        assert found["overflow"] <= 0
        assert (found["colliding"], found["outside"]) == ([], [])


def test_a_screenshot_shows_more_than_a_blank_page(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(render([facts(2)], title="t"), encoding="utf-8")
    sizes = {}
    for name, page in (("page", (tmp_path / "page.html").as_uri()), ("blank", "about:blank")):
        picture = tmp_path / f"{name}.png"
        chromium(tmp_path, f"--screenshot={picture}", "--window-size=800,1600", page)
        content = picture.read_bytes()
        assert struct.unpack(">II", content[16:24]) == (800, 1600)
        sizes[name] = len(content)
    assert sizes["page"] > 10 * sizes["blank"]


def test_dark_mode_is_dark(tmp_path: Path) -> None:
    page = render([facts(2)], title="t")
    (light,) = looked_at(tmp_path, [(page, 800)])
    (dark,) = looked_at(tmp_path, [(page, 800)], "--force-dark-mode")
    assert light["background"] != dark["background"]
