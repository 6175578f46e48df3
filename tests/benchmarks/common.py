"""Command line and runs of the program, for all benchmarks."""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seqtrain.config import Config, resolved_config
from seqtrain.sequences.dataset import PreparedData, prepare


def make_parser(doc: str | None, *, config: bool = True) -> argparse.ArgumentParser:
    """Return the parser of a script, with CONFIG and --set if `config` is True."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    if config:
        parser.add_argument("config")
        parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    return parser


def pair_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of a script that scores choices on rows that were left out of train."""
    parser = make_parser(doc, config=False)
    parser.add_argument("files", nargs="+", metavar="TRAIN OTHERS")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--init", default="", metavar="OPTIONS")
    return parser


def prepared_pairs(arguments: argparse.Namespace) -> Iterator[tuple[str, Config, PreparedData]]:
    """Yield name, config and data for each pair of files and each seed, with a refit.

    `seqtrain init` writes the config of a pair, whose second file is the test split.
    """
    for train, others in zip(arguments.files[::2], arguments.files[1::2], strict=True):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "init.yaml"
            options = shlex.split(arguments.init)
            seqtrain("init", train, "--test", others, *options, "--output", path)
            config = resolved_config(path, "cpu")
        training = config.training.model_copy(update={"refit": True})
        for seed in map(int, arguments.seeds.split(",")):
            own = config.model_copy(update={"seed": seed, "training": training})
            yield f"{Path(train).stem} {seed}", own, prepare(own)


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
