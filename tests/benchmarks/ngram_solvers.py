"""The two solvers of n-grams, compared on rows that were left out.

    python tests/benchmarks/ngram_solvers.py TRAIN OTHERS... [--seeds 0,1,2]
        [--init "--label COLUMN --sequence COLUMN"]

TRAIN is a random part of a training file, OTHERS are rows of the same file that aren't in it: draw
both yourself, and never from rows of test. `seqtrain init` writes a config for each pair, and a
model learns TRAIN. Then each solver fits the n-grams to the same rows.

Rows are Markdown: log loss on OTHERS, after a temperature that validation chooses, and accuracy in
percent, of the n-grams alone and of their mean with the recurrent branch.
"""

from __future__ import annotations

import numpy as np
import torch
from common import pair_parser, prepared_pairs
from torch import Tensor
from torch.nn import functional

from seqtrain.evaluation.calibration import fit_temperature
from seqtrain.model.branches.ngrams import MOST_PENALIZED_ROWS, NgramBranch
from seqtrain.model.branches.solved import SolverInput
from seqtrain.training import phases
from seqtrain.training.scoring import shared_logits
from seqtrain.training.trainer import Trainer

SOLVERS = {"logistic regression": MOST_PENALIZED_ROWS, "updates": MOST_PENALIZED_ROWS + 1}
"""Maps each solver to a number of rows of train for which it is chosen."""
NAMES = ["recurrent", "ngrams"]


def scores(validation: Tensor, labels: Tensor, others: Tensor, own: Tensor) -> str:
    """Return log loss and accuracy of logits on left-out rows.

    Args:
        validation: Logits on validation, (V, C), which choose the temperature.
        labels: Class index of each of these rows, (V,).
        others: Logits on the left-out rows, (B, C).
        own: Class index of each of these rows, (B,).
    """
    divisor = fit_temperature(validation, labels)
    loss = float(functional.cross_entropy(others.double() / divisor, own))
    accuracy = 100 * float((others.argmax(1) == own).double().mean())
    return f"{loss:.3f}, {accuracy:.1f} %"


def main() -> None:
    """Compare the solvers for each pair of files and each seed."""
    arguments = pair_parser(__doc__).parse_args()
    columns = [f"{solver}, {what}" for solver in SOLVERS for what in ("alone", "mean")]
    print(f"| set, rows | {' | '.join(columns)} |")
    print("|---" * (1 + len(columns)) + "|")
    for name, config, data in prepared_pairs(arguments):
        trainer = Trainer(config, data, torch.device("cpu"))
        for _ in phases.train(trainer):
            pass
        trainer.load_best()
        branch = trainer.network.find(NgramBranch)
        assert branch is not None, "init proposed no n-grams"
        train, validation, test = (data.splits[split] for split in ("train", "validation", "test"))
        labels, own = torch.from_numpy(validation.labels), torch.from_numpy(test.labels)
        weights = np.ones(len(train))
        cells = [f"{name}, {len(train)}"]
        for num_train in SOLVERS.values():
            branch.solve(SolverInput(train, weights, config.seed, num_train))
            chosen_on = torch.stack(shared_logits(trainer, validation, NAMES))
            others = torch.stack(shared_logits(trainer, test, NAMES))
            cells.append(scores(chosen_on[1], labels, others[1], own))
            cells.append(scores(chosen_on.mean(0), labels, others.mean(0), own))
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
