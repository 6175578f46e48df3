"""What does a model do with rows of classes that it has never seen? Leaves some out, and looks.

    python tests/benchmarks/unknown_classes.py CONFIG --leave-out LABEL... [--set KEY=VALUE]...

Trains on train and validation without the rows of these labels, then answers the whole test split
with `--precision`. Prints how many rows of known and of unknown classes are left undecided, how
many decided ones are right, and the AUROC of the probability (1: each known row is surer than each
unknown one).
"""

import json
import tempfile
from pathlib import Path

from common import fit, make_parser, seqtrain
from sklearn.metrics import roc_auc_score

from seqtrain.config import load_config
from seqtrain.data.examples import Example
from seqtrain.data.readers import read_examples
from seqtrain.data.sources import data_files, read_options


def write(path: Path, examples: list[Example]) -> Path:
    """Write rows as jsonl; return the path."""
    lines = [json.dumps({"sequence": row.sequence, "label": row.label}) for row in examples]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--leave-out", nargs="+", required=True, metavar="LABEL")
    parser.add_argument("--precision", default="0.95")
    given = parser.parse_args()
    config = load_config(given.config, given.set)
    splits: dict[str, list[Example]] = {}
    for key, path in data_files(config):
        rows = read_examples(path, read_options(config.data, path))
        splits.setdefault(key.removeprefix("data."), []).extend(rows)
    with tempfile.TemporaryDirectory() as folder:
        settings = [*given.set, "data.test=null", "data.sequence=sequence", "data.label=label"]
        for name, examples in splits.items():
            kept = [row for row in examples if name == "test" or row.label not in given.leave_out]
            path = write(Path(folder, f"{name}.jsonl"), kept)
            settings += [] if name == "test" else [f"data.{name}={path}"]
        run, output = Path(folder, "run"), Path(folder, "output.jsonl")
        fit(given.config, settings, run, "--no-cache")
        options = ["--run", run, "--precision", given.precision, "--top-k", 1, "--output", output]
        seqtrain("predict", Path(folder, "test.jsonl"), *options)
        found = [json.loads(line) for line in output.read_text().splitlines()]
    labels = [row.label for row in splits["test"]]
    unknown = [label in given.leave_out for label in labels]
    decided = [bool(each["label"]) for each in found]
    right = sum(bool(e["label"]) and e["label"] == x for e, x in zip(found, labels, strict=True))
    for name, of in (("known", False), ("unknown", True)):
        left = [not d for d, u in zip(decided, unknown, strict=True) if u is of]
        share = sum(left) / len(left)
        print(f"{name} classes: {sum(left)} of {len(left)} rows undecided ({share:.1%})")
    print(f"right among the decided: {right} of {sum(decided)} ({right / sum(decided):.1%})")
    sure = [-next(iter(each["probabilities"].values())) for each in found]
    print(f"AUROC of the probability: {roc_auc_score(unknown, sure):.3f}")


if __name__ == "__main__":
    main()
