"""Do the engines learn alike? The losses of the first updates with native and torch, from one seed.

    python tests/benchmarks/loss_curves.py CONFIG [--set KEY=VALUE]... [--steps 50]

Prints native's largest difference from torch's losses.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import torch

from seqtrain.config import Config, load_config
from seqtrain.data.batch import collate
from seqtrain.data.cache import default_folder
from seqtrain.data.plan import plan_epoch
from seqtrain.data.preparation import prepare
from seqtrain.data.prepared import PreparedData
from seqtrain.runs.model_folder import new_network
from seqtrain.training.objectives import Classification
from seqtrain.training.trainer import Trainer

REFERENCE = "torch"


def losses(config: Config, data: PreparedData, engine: str, steps: int) -> list[float]:
    """Train from the config's seed for some updates; return the mean loss of each."""
    model = new_network(config.model.model_copy(update={"engine": engine}), data.preprocessing)
    model.initialize(config.seed)
    train = data.splits["train"]
    device = torch.device("cpu")
    labels = data.preprocessing.labels
    trainer = Trainer(Classification(model, train, None, labels, config, device))
    model.train()
    plan = plan_epoch(train.lengths, config.batching, seed=config.seed, epoch=0)
    batches = (replace(collate(train.__getitems__(rows)), examples=rows) for rows in plan[:steps])
    return [trainer.update(batch, config.training.lr) for batch in batches]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--steps", type=int, default=50)
    given = parser.parse_args()
    config = load_config(given.config, given.set)
    data = prepare(config, cache_folder=default_folder())
    expected = np.array(losses(config, data, REFERENCE, given.steps))
    print(f"{REFERENCE}: {len(expected)} steps, loss {expected[0]:.6f} to {expected[-1]:.6f}")
    found = np.array(losses(config, data, "native", given.steps))
    difference = np.abs(found - expected)
    print(
        f"native: loss {found[0]:.6f} to {found[-1]:.6f}, largest difference "
        f"{difference.max():.1e} at step {difference.argmax() + 1}"
    )


if __name__ == "__main__":
    main()
