"""A run directory where links, pipes and devices stand in the place of files and folders."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from tests.helpers.program import fit
from tests.helpers.watched import watch

SECONDS = 60
"""After which a command counts as hung."""
SHORT = ("--set", "training.max_epochs=1", "--set", "training.checkpoint_every=null")
FOLDERS = ("best", "last", "previous", "pretrained", "tensorboard")
PLACES = (
    ".lock", "config.yaml", "environment.json", "metrics.jsonl", "test.json", "ensemble.json",
    *FOLDERS,
    ".best-old", ".last-7-0", "best/model.json", "best/model.safetensors", "best/manifest.json",
    "last/model.json", "last/training_state.json", "last/training_state.safetensors",
)  # fmt: skip
COMMANDS = {
    "fit": ("fit", "c.yaml", "--run-dir", "r", "--quiet", *SHORT),
    "force": ("fit", "c.yaml", "--run-dir", "r", "--force", "--quiet", *SHORT),
    "resume": ("fit", "c.yaml", "--run-dir", "r", "--resume", "--quiet", *SHORT),
    "log": ("fit", "c.yaml", "--run-dir", "r", "--force", "--log", "tensorboard", "-q", *SHORT),
    "go on": ("fit", "c.yaml", "--run-dir", "n", "--force", "--init-from", "r", "--quiet", *SHORT),
    "check": ("check", "r"),
    "predict": ("predict", "test.tsv", "--run", "r"),
    "eval": ("eval", "r", "--split", "validation"),
    "errors": ("errors", "r"),
    "diff": ("diff", "r", "whole"),
    "report": ("report", "r", "-o", "r.html", "--force"),
    "runs": ("runs", "."),
    "export": ("export", "r", "port", "--force"),
}
LINKS = {
    "link to a file": "file",
    "link to a folder": "folder",
    "link to nothing": "new",
    "link to a device": "/dev/zero",
}


def contents(folder: Path) -> dict[str, str | bytes | None]:
    """Return what stands in a folder: of files the bytes, of links where they lead to."""
    found: dict[str, str | bytes | None] = {}
    for path in sorted(folder.rglob("*")):
        is_file = path.is_file() and not path.is_symlink()
        linked = os.readlink(path) if path.is_symlink() else None
        found[str(path.relative_to(folder))] = path.read_bytes() if is_file else linked
    return found


def attacks(outside: Path) -> Iterator[tuple[str, str, Callable[[Path], None]]]:
    """Yield what is put in place of what."""
    for place in PLACES:
        for kind, target in LINKS.items():
            yield place, kind, lambda path, target=target: path.symlink_to(outside / target)
        yield place, "link to itself", lambda path: path.symlink_to(path.name)
        yield place, "pipe", os.mkfifo


def use_all(folder: Path, step: int) -> list[tuple[str, str, str, int, bool, bool]]:
    """Put everything everywhere; return what each command answered and what it changed.

    Args:
        folder: of the project.
        step: of so many cases only one is tried.
    """
    from seqtrain.cli.main import run

    sys.stdout = sys.stderr = io.StringIO()
    outside, place, results = folder / "outside", folder / "r", []
    before = contents(outside)
    cases = list(product(attacks(outside), COMMANDS.items()))
    for (name, kind, make), (command, arguments) in cases[::step]:
        shutil.copytree(folder / "whole", place)
        path = place / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        make(path)
        had = contents(place)
        signal.alarm(SECONDS)
        try:
            run(list(arguments))
        except SystemExit as ended:
            code = int(ended.code or 0)
        signal.alarm(0)
        kept = contents(place) == had
        results.append((command, name, kind, code, contents(outside) == before, kept))
        shutil.rmtree(place)
    return results


@pytest.mark.parametrize("step", [41, pytest.param(1, marks=pytest.mark.slow)])
def test_nothing_outside_a_run_is_touched(
    project: Path, figure: Callable[[str], None], step: int
) -> None:
    fit(project, "whole", *SHORT)
    outside = project / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("mine\n")
    (outside / "folder" / "model.json").write_text("mine too\n")
    results, offences, _ = watch(project, partial(use_all, step=step))
    assert offences == []
    wrong = [x for x in results if x[3] not in (0, 2) or not x[4]]
    assert not wrong, wrong[:20]
    changed = [x for x in results if x[3] == 2 and not x[5]]
    assert not changed, "refused, but the run was changed"
    refused = Counter(command for command, _, _, code, _, _ in results if code == 2)
    figure(
        f"links, pipes and devices in a run directory: {len(results)} commands, 0 hang, 0 touch "
        f"anything outside, refused unchanged: {dict(refused)}"
    )
