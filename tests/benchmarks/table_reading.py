"""Speed of reading and learning from a table with one row per time step, compared with jsonl.

Both files hold the same sequences of 20 steps. The table has three columns of tokens and two of
numbers per step. The jsonl file has the first column. Example:

    python tests/benchmarks/table_reading.py --ids 20000
"""

import json
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from common import fit, make_parser

from seqtrain.config import config_from_mapping, render_config
from seqtrain.sequences.dataset import prepare

STEPS, TURNS = 20, 3
KEYS: dict[str, dict[str, Any]] = {
    "jsonl": {"kind": "tokens", "sequence": "place"},
    "table": {
        "id": "id",
        "order": "time",
        "steps": {"place": "token", "kind": "token", "mood": "token", "x": "number", "y": "number"},
    },
}


def write(folder: Path, ids: int, *, mixed: bool) -> dict[str, Path]:
    """Write both files. With `mixed`, the rows of the table are sorted by their times."""
    draw, paths = random.Random(0), {"jsonl": folder / "a.jsonl", "table": folder / "a.csv"}
    lines = list[tuple[int, str]]()
    with paths["jsonl"].open("w") as sequences, paths["table"].open("w") as table:
        table.write("id,time,place,kind,mood,x,y,label\n")
        for number in range(ids):
            label, places, start = f"c{number % 20}", list[str](), draw.randrange(10**6)
            for step in range(STEPS):
                places.append(f"place{min(4999, int(draw.expovariate(1 / 600)))}")
                others = f"kind{draw.randrange(60)},{'abcde'[draw.randrange(5)]}"
                point = f"{40 + draw.random():.6f},{draw.random():.6f}"
                time = start + 60 * step + draw.randrange(60)
                lines.append((time, f"i{number},{time},{places[-1]},{others},{point},{label}\n"))
            sequences.write(json.dumps({"place": places, "label": label}) + "\n")
            if not mixed:
                table.writelines(line for _, line in lines)
                lines.clear()
        table.writelines(line for _, line in sorted(lines))
    return paths


def main() -> None:
    parser = make_parser(__doc__, config=False)
    parser.add_argument("--ids", type=int, default=20_000)
    parser.add_argument("--mixed", action="store_true", help="ids come back all over the table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write(folder, arguments.ids, mixed=arguments.mixed)
        seconds = dict.fromkeys(KEYS, float("inf"))
        for _, kind in ((turn, kind) for turn in range(TURNS) for kind in KEYS):
            data = {"train": str(paths[kind]), "label": "label", **KEYS[kind]}
            config, begin = config_from_mapping({"data": data}), time.process_time()
            prepare(config, cache_folder=folder / f"cache-{_}")
            seconds[kind] = min(seconds[kind], time.process_time() - begin)
            (folder / f"{kind}.yaml").write_text(render_config(config))
        steps = arguments.ids * STEPS
        speeds = {kind: steps / found for kind, found in seconds.items()}
        for kind, speed in speeds.items():
            print(f"{kind}: {speed:,.0f} steps/s read, encoded and cached")
        ratio = speeds["table"] / speeds["jsonl"]
        print(f"table / jsonl: {ratio:.2f} by steps, {3 * ratio:.2f} by tokens")
        print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")
        learned = {}
        for kind in KEYS:
            events = fit(folder / f"{kind}.yaml", ["training.max_epochs=2"], folder / kind)
            learned[kind] = max(x["tokens_per_second"] for x in events if x["event"] == "epoch")
            print(f"{kind}: {learned[kind]:,.0f} steps/s in training")
        print(f"table / jsonl: {learned['table'] / learned['jsonl']:.2f} in training")


if __name__ == "__main__":
    main()
