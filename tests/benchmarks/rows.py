"""Memory of many short rows, step by step: reading them, preparing the training, updates.

    python tests/benchmarks/rows.py 1000000 [--files 4] [--validation 0.1]

Rows of 5 tokens are written to a temporary folder ($TMPDIR), which is removed. Memory is what isn't
mapped from files, in this process.
"""

import random
import tempfile
import threading
import time
from contextlib import suppress
from itertools import chain
from pathlib import Path

from common import make_parser

from seqtrain.api.fit import fit
from seqtrain.api.run_events import DataEvent, Event, StartEvent
from seqtrain.training.events import UpdateEvent

UPDATES = 1000
HALVES = 20_000
"""Beginnings and ends that rows are joined from: most rows differ, and writing them is fast."""


def anonymous_bytes() -> int:
    """Return the memory of this process that isn't mapped from files."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


class Done(Exception):
    """Enough updates were made."""


class Watch:
    """A listener of `fit` that prints, step by step, its time and by how much memory grew.

    Args:
        rows: of the data.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._begin()
        threading.Thread(target=self._look, daemon=True).start()

    def _begin(self) -> None:
        self.before = self.peak = anonymous_bytes()
        self.began = time.perf_counter()

    def _look(self) -> None:
        while True:
            self.peak = max(self.peak, anonymous_bytes())
            time.sleep(0.02)

    def _end(self, step: str) -> None:
        after, seconds = anonymous_bytes(), time.perf_counter() - self.began
        most, kept = max(self.peak, after), after - self.before
        print(
            f"{step}: {seconds:.1f} s, at most {(most - self.before) / self.rows:.1f} bytes per "
            f"row more than before, {kept / self.rows:.1f} kept, {most / 2**20:,.0f} MiB in all",
            flush=True,
        )
        self._begin()

    def __call__(self, event: Event) -> None:
        if isinstance(event, DataEvent):
            self._end("reading, and what fit shows of the data")
        elif isinstance(event, StartEvent):
            self._end("a model, a trainer, the plan of an epoch")
        elif isinstance(event, UpdateEvent) and event.update == min(UPDATES, event.num_batches):
            self._end(f"{event.update} updates")
            raise Done


def write(folder: Path, rows: int, files: int) -> None:
    """Write rows of 5 tokens and two labels."""
    draw = random.Random(0)
    words = [f"w{number}" for number in range(5000)]
    begins = [" ".join(draw.choices(words, k=3)) for _ in range(HALVES)]
    ends = [f" {' '.join(draw.choices(words, k=2))}\t{'ab'[i % 2]}\n" for i in range(HALVES)]
    for number in range(files):
        with (folder / f"part-{number:03}.tsv").open("w") as file:
            file.write("text\tlabel\n")
            left = rows // files + (number < rows % files)
            while left:
                some = min(left, 100_000)
                pairs = zip(draw.choices(begins, k=some), draw.choices(ends, k=some), strict=True)
                file.write("".join(chain.from_iterable(pairs)))
                left -= some


def main() -> None:
    parser = make_parser(__doc__, config=False)
    parser.add_argument("rows", type=int)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--validation", type=float)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), given.rows, given.files)
        data = {"train": f"{folder}/part-*.tsv", "validation": given.validation}
        config = {
            "data": {**data, "sequence": "text", "label": "label"},
            "model": {"embedding_dim": 16, "hidden_size": 16},
            "training": {"max_epochs": 1, "device": "cpu"},
        }
        print(f"{given.rows:,} rows in {given.files} files", flush=True)
        with suppress(Done):
            fit(config, run_dir=f"{folder}/run", cache=False, listener=Watch(given.rows))


if __name__ == "__main__":
    main()
