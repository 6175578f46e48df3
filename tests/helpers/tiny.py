"""Tiny data in several formats, a config for it, and what a run of the program ends with."""

import csv
import hashlib
import io
import json
import random
import resource
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.cli.main import run as run_program

TIMES = ("seconds", "tokens_per_second", "peak_memory_bytes")
WORDS = {"down": ["fall", "sink", "drop", "slip"], "up": ["rise", "climb", "grow", "lift"]}
CONFIG = """\
data: {train: train.tsv, validation: 0.2, test: test.tsv, sequence: text, label: label}
batching: {batch_size: 8}
model: {embedding_dim: 4, hidden_size: 4, dropout: 0.2}
training: {max_epochs: 2, patience: null, lr: 0.02, schedule: constant}
"""


@dataclass(frozen=True)
class Ended:
    """Result of a command: its exit code and its output."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The object on stdout."""
        return json.loads(self.out)

    @property
    def problems(self) -> list[str]:
        """The lines on stderr."""
        return self.err.splitlines()


Cli = Callable[..., Ended]


def rows(count: int, seed: int) -> list[tuple[str, str]]:
    """Return sentences and labels. The label follows from the words."""
    draw = random.Random(seed)
    labels = [draw.choice(list(WORDS)) for _ in range(count)]
    return [
        (" ".join(draw.choice([*WORDS[label], "the"]) for _ in range(2 + i % 5)) + f" n{i}", label)
        for i, label in enumerate(labels)
    ]


def write_table(path: Path, examples: list[tuple[str, str]], delimiter: str = "\t") -> None:
    lines = [("text", "label"), *examples]
    path.write_text("".join(delimiter.join(line) + "\n" for line in lines), encoding="utf-8")


def write_jsonl(path: Path, values: Iterable[Mapping[str, object]]) -> str:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return str(path)


def tsv_rows(text: str) -> list[dict[str, str]]:
    """Return the rows of a table with tabs, as predict prints it."""
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


def listing(folder: Path) -> dict[str, bytes | None]:
    """Return every path under a folder with its content, to compare before and after."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def metrics(run: str) -> list[dict[str, object]]:
    """Return the lines of a run's metrics without its times."""
    lines = Path(run, "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]


def write_text_project(folder: Path) -> None:
    write_table(folder / "train.tsv", rows(40, seed=1))
    write_table(folder / "test.tsv", rows(20, seed=2))
    (folder / "c.yaml").write_text(CONFIG)


def series(count: int, seed: int) -> list[np.ndarray]:
    """Return feature vectors (T, 2) of unequal lengths."""
    generator = np.random.default_rng(seed)
    return [generator.normal(size=(2 + i % 4, 2)).astype(np.float32) for i in range(count)]


def write_npz(path: Path, sequences: list[np.ndarray], labels: list[str]) -> None:
    offsets = np.cumsum([0, *map(len, sequences)])
    np.savez(path, values=np.concatenate(sequences), offsets=offsets, labels=np.array(labels))


def sets(*settings: str) -> list[str]:
    """Return settings as options of the program."""
    return [word for setting in settings for word in ("--set", setting)]


def run_in(folder: Path, *words: str) -> Ended:
    """Run the program in a folder, to its good end."""
    ended = ended_in(folder, *words)
    assert ended.code == 0, ended.err
    return ended


def ended_in(folder: Path, *words: str) -> Ended:
    """Run the program in a folder, to whatever end."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        with pytest.raises(SystemExit) as ended:
            run_program(list(words))
    return Ended(int(str(ended.value.code or 0)), out.getvalue(), err.getvalue())


def fit(folder: Path, config: str, *settings: str, run: str = "run") -> None:
    (folder / "c.yaml").write_text(config)
    run_in(folder, "fit", "c.yaml", "--run-dir", run, "--quiet", *sets(*settings))


def trained_folder(
    factory: pytest.TempPathFactory, config: str = CONFIG, *settings: str, run: str = "run"
) -> Path:
    """Return a folder with tiny data, a config and a run of it. Read only."""
    folder = factory.mktemp("trained")
    write_text_project(folder)
    fit(folder, config, *settings, run=run)
    return folder


class Killed(Exception):
    """End of a run as by SIGKILL: nothing more is written."""


def stopping_after(updates: int) -> Callable[[object], None]:
    """Return a listener of `fit` that stops the run after so many updates of this process."""
    made = 0

    def listener(event: object) -> None:
        nonlocal made
        made += type(event).__name__ == "UpdateEvent"
        if type(event).__name__ == "UpdateEvent" and made == updates:
            signal.raise_signal(signal.SIGTERM)

    return listener


def fit_until(epoch: int, run: str, *sets: str, resume: bool = False) -> None:
    """Train to the end of an epoch, where a signal stops the run."""
    from seqtrain.api.fit import fit as run_fit
    from seqtrain.api.run_events import Event
    from seqtrain.config import load_config
    from seqtrain.errors import Interrupted
    from seqtrain.training.events import EpochEvent

    def stop(event: Event) -> None:
        if isinstance(event, EpochEvent) and event.phase != "pretraining" and event.epoch == epoch:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        run_fit(load_config("c.yaml", list(sets)), run_dir=run, resume=resume, listener=stop)


def fingerprint(run: str | Path) -> dict[str, str]:
    """Return a digest of all that a finished run leaves, but times and what it ran on."""
    found = {}
    for path in sorted(Path(run).rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        if path.name in ("metrics.jsonl", "training_state.json"):
            lines = content.splitlines() if path.suffix == ".jsonl" else [content]
            content = json.dumps([_timeless(json.loads(line)) for line in lines]).encode()
        found[str(path.relative_to(run))] = hashlib.sha256(content).hexdigest()
    del found["environment.json"], found["last/manifest.json"]
    return found


def _timeless(value: Any) -> Any:
    """Leave out what differs from run to run: times, and the length of text that holds them."""
    if not isinstance(value, dict):
        return value
    left_out = (*TIMES, "metrics_length")
    return {key: _timeless(item) for key, item in value.items() if key not in left_out}


def assert_same_run(first: str | Path, second: str | Path) -> None:
    """Compare two runs bit for bit. Files of a search in the first one are ignored."""
    assert fingerprint(second).items() <= fingerprint(first).items()


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Make writes beyond this size fail with EFBIG, as a full disk does with ENOSPC."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
