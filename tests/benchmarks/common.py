"""Command line and runs of the program, for all benchmarks."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def make_parser(doc: str | None, *, config: bool = True) -> argparse.ArgumentParser:
    """Return the parser of a script, with CONFIG and --set if `config` is True."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    if config:
        parser.add_argument("config")
        parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    return parser


def seqtrain(*arguments: object, **options: Any) -> None:
    """Run a command; its output and its errors go to the screen."""
    command = [sys.executable, "-m", "seqtrain", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=2, **options)


def fit(
    config: object, settings: list[str], folder: Path, *more: object, **options: Any
) -> list[dict[str, Any]]:
    """Train a config, and return the lines of its metrics."""
    sets = [part for setting in settings for part in ("--set", setting)]
    seqtrain("fit", config, *sets, "--run-dir", folder, "--quiet", *more, **options)
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
