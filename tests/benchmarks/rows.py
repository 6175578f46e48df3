"""Memory for many short rows in each step: reading, preparation of training, updates.

    python tests/benchmarks/rows.py 1000000 [--files 4] [--validation 0.1]

Rows of 5 tokens are written to a temporary folder ($TMPDIR), which is removed. Memory is the part
of this process that isn't mapped from files.
"""

import random
import tempfile
import threading
import time
from pathlib import Path

from common import make_parser

from seqtrain.api.fit import fit
from seqtrain.api.run_events import DataEvent, Event, StartEvent
from seqtrain.training.events import UpdateEvent

UPDATES = 1000


class Watch:
    """A listener of `fit` that prints, step by step, its time and by how much memory grew."""

    def __init__(self, rows: int) -> None:
        self.rows, self.last, self.before, self.peak = rows, time.perf_counter(), 0, 0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            status = Path("/proc/self/status").read_text()
            self.peak = max(self.peak, int(status.partition("RssAnon:")[2].split()[0]) * 1024)
            self.before = self.before or self.peak
            time.sleep(0.02)

    def _end(self, step: str) -> None:
        now, grown = time.perf_counter(), (self.peak - self.before) / self.rows
        mebibytes = self.peak / 2**20
        print(f"{step}: {now - self.last:.1f} s, {mebibytes:,.0f} MiB, {grown:.1f} bytes per row")
        self.last = now

    def __call__(self, event: Event) -> None:
        if isinstance(event, DataEvent):
            self._end("reading, and what fit shows of the data")
        elif isinstance(event, StartEvent):
            self._end("a model, a trainer, the plan of an epoch")
        elif isinstance(event, UpdateEvent) and event.update == min(UPDATES, event.num_batches):
            self._end(f"{event.update} updates")
            raise SystemExit


def write(folder: str, rows: int, files: int) -> None:
    """Write rows of 5 tokens and two labels; most rows differ."""
    draw, words = random.Random(0), [f"w{number}" for number in range(5000)]
    for number in range(files):
        with open(f"{folder}/part-{number:03}.tsv", "w") as file:
            file.write("text\tlabel\n")
            for row in range(number, rows, files):
                file.write(f"{' '.join(draw.choices(words, k=5))}\t{'ab'[row % 2]}\n")


def main() -> None:
    parser = make_parser(__doc__, config=False)
    parser.add_argument("rows", type=int)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--validation", type=float)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(folder, given.rows, given.files)
        data = {"train": f"{folder}/part-*.tsv", "validation": given.validation}
        config = {
            "data": {**data, "sequence": "text", "label": "label"},
            "model": {"embedding_dim": 16, "hidden_size": 16},
            "training": {"max_epochs": 1, "device": "cpu"},
        }
        fit(config, run_dir=f"{folder}/run", listener=Watch(given.rows))


if __name__ == "__main__":
    main()
