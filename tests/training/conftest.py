from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from seqtrain.config.schema import Config
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.store import SequenceStore
from seqtrain.training.trainer import Trainer
from tests.helpers.stores import store_of
from tests.helpers.trainers import trainer_of

NAMES = ("a", "b", "c")
VOCAB_SIZE = 12
DATA = {"train": "train.tsv", "sequence": "text", "label": "label"}


@pytest.fixture
def make_config() -> Callable[..., Config]:
    """Build a small config without dropout; keys of sections are given as section=dict."""

    def run(seed: int = 0, **sections: dict[str, Any]) -> Config:
        small = {"embedding_dim": 6, "hidden_size": 8, "dropout": 0.0, "embedding_dropout": 0.0}
        return Config.model_validate(
            {
                "seed": seed,
                "data": {**DATA, **sections.get("data", {})},
                "batching": sections.get("batching", {"batch_size": 8}),
                "model": {**small, **sections.get("model", {})},
                "training": {"lr": 0.01, "schedule": "constant", **sections.get("training", {})},
            }
        )

    return run


@pytest.fixture
def make_store() -> Callable[..., SequenceStore]:
    """Build random sequences; the class is decided by the first id."""

    def run(rows: int, *, seed: int = 0, longest: int = 9) -> SequenceStore:
        generator = np.random.default_rng(seed)
        sequences = [
            generator.integers(2, VOCAB_SIZE, size=generator.integers(1, longest + 1))
            for _ in range(rows)
        ]
        labels = [int(ids[0]) % len(NAMES) for ids in sequences]
        return store_of(sequences, labels, range(2, rows + 2))

    return run


@pytest.fixture
def make_trainer(make_config, make_store) -> Callable[..., Trainer]:
    """Build a trainer with freshly drawn weights, as `fit` does."""

    def run(
        config: Config | None = None,
        train: SequenceStore | None = None,
        validation: SequenceStore | None = None,
        **sections: Any,
    ) -> Trainer:
        config = config or make_config(**sections)
        model = ClassifierNetwork(config.model, InputSpec(VOCAB_SIZE, len(NAMES)))
        model.initialize(config.seed)
        train = train or make_store(29)
        return trainer_of(config, model, NAMES, train, validation)

    return run
