from typing import Any

import numpy as np
import pytest
import torch

from seqtrain.comparison.task import Task
from seqtrain.config.schema import Config
from tests.helpers.stores import store_of

ROWS = 90


@pytest.fixture(scope="module")
def task() -> Task:
    sequences = [np.arange(row, 2 * row + 1) % 20 + 2 for row in range(ROWS)]
    train = store_of(sequences, [row % 2 for row in range(ROWS)], range(ROWS))
    sections: dict[str, dict[str, Any]] = {
        "data": {"train": "a.tsv", "sequence": 0, "label": 1},
        "batching": {"batch_size": 6},
        "model": {"embedding_dim": 4, "hidden_size": 4},
        "training": {"max_epochs": 3},
    }
    return Task(
        config=Config.model_validate(sections),
        train=train,
        held_out=train.__getitems__(np.arange(0, ROWS, 3)),
        input_size=22,
        labels=("a", "b"),
        device=torch.device("cpu"),
        threads=1,
        warnings=[],
        probe=np.arange(3),
    )
