"""What does a model do with rows of classes that it has never seen? Leaves some out, and looks.

    python tests/benchmarks/unknown_classes.py CONFIG --leave-out LABEL... [--set KEY=VALUE]...

Trains on train and validation without the rows of these labels, then answers the whole test split
with `--precision`. Prints how many rows of known and of unknown classes are left undecided, how
many decided ones are right, and the AUROC of the probability (1: each known row is surer than each
unknown one).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.metrics import roc_auc_score

from seqtrain.config import load_config
from seqtrain.data.configured import data_files, read_options
from seqtrain.data.examples import Example
from seqtrain.data.readers import read_examples


def seqtrain(*arguments: str) -> None:
    """Run a command; its errors go to the screen."""
    subprocess.run([sys.executable, "-m", "seqtrain", *arguments], check=True, stdout=2)


def write(path: Path, examples: list[Example]) -> str:
    """Write rows as jsonl; return the path."""
    lines = [json.dumps({"sequence": row.sequence, "label": row.label}) for row in examples]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--leave-out", nargs="+", required=True, metavar="LABEL")
    parser.add_argument("--precision", default="0.95")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    config = load_config(given.config, given.set)
    splits: dict[str, list[Example]] = {}
    for key, path in data_files(config):
        rows = read_examples(path, read_options(config.data, path))
        splits.setdefault(key.removeprefix("data."), []).extend(rows)
    with tempfile.TemporaryDirectory() as folder:
        paths = {
            name: write(
                Path(folder, f"{name}.jsonl"),
                [row for row in rows if name == "test" or row.label not in given.leave_out],
            )
            for name, rows in splits.items()
        }
        test = paths.pop("test")
        changed = [*given.set, *(f"data.{name}={path}" for name, path in paths.items())]
        changed += ["data.test=null", "data.sequence=sequence", "data.label=label"]
        run, answers = f"{folder}/run", f"{folder}/answers.jsonl"
        options = [part for setting in changed for part in ("--set", setting)]
        seqtrain("fit", given.config, *options, "--run-dir", run, "--quiet", "--no-cache")
        seqtrain(
            *("predict", test, "--run", run, "--precision", given.precision),
            *("--top-k", "1", "--output", answers),
        )
        found = [json.loads(line) for line in Path(answers).read_text().splitlines()]
    unknown = [row.label in given.leave_out for row in splits["test"]]
    decided = [bool(answer["label"]) for answer in found]
    right = sum(
        a["label"] == row.label for a, row in zip(found, splits["test"], strict=True) if a["label"]
    )
    for name, of in (("known", False), ("unknown", True)):
        left = [not d for d, u in zip(decided, unknown, strict=True) if u is of]
        share = sum(left) / len(left)
        print(f"{name} classes: {sum(left)} of {len(left)} rows undecided ({share:.1%})")
    print(f"right among the decided: {right} of {sum(decided)} ({right / sum(decided):.1%})")
    sure = [-next(iter(answer["probabilities"].values())) for answer in found]
    print(f"AUROC of the probability: {roc_auc_score(unknown, sure):.3f}")


if __name__ == "__main__":
    main()
