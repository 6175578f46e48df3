from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seqtrain.config.schema import ModelConfig
from seqtrain.data.batch import Batch, collate
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.engines.native import why_not
from seqtrain.model.engines.native.library import VARIABLE, find_library
from tests.helpers.stores import StoreBuilder

VOCAB_SIZE, NUM_CLASSES = 30, 4


@pytest.fixture
def make_model() -> Callable[..., SequenceClassifier]:
    """Build a small model from keys of the model section, all of its weights random."""

    def run(*, features: int = 0, **keys: object) -> SequenceClassifier:
        torch.manual_seed(0)
        small = {"embedding_dim": 5, "hidden_size": 6, "dropout": 0.0, "embedding_dropout": 0.0}
        config = ModelConfig.model_validate({**small, **keys})
        model = SequenceClassifier(
            config,
            input_size=features or VOCAB_SIZE,
            num_classes=NUM_CLASSES,
            features=bool(features),
        )
        model.initialize(seed=0)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "bias" in name:
                    parameter.uniform_(-0.5, 0.5)
        if isinstance(model.embedding, nn.Embedding):
            nn.init.normal_(model.embedding.weight[1:])
        return model.eval()

    return run


@pytest.fixture
def make_batch() -> Callable[[list[Tensor]], Batch]:
    """Collate sequences of ids, or of feature vectors; labels count up modulo the classes."""

    def run(sequences: list[Tensor]) -> Batch:
        channels = sequences[0].shape[1] if sequences[0].ndim == 2 else 0
        builder = StoreBuilder(channels)
        for row, sequence in enumerate(sequences):
            if channels:
                builder.add_features(np.asarray(sequence), row % NUM_CLASSES, row + 1)
            else:
                builder.add_ids(sequence.tolist(), row % NUM_CLASSES, row + 1)
        return collate(builder.build())

    return run


@pytest.fixture
def sequences() -> list[Tensor]:
    """Sequences of unequal lengths, unsorted, with the shortest possible and equal ones."""
    generator = torch.Generator().manual_seed(1)
    lengths = (3, 7, 1, 12, 7, 1, 4)
    return [torch.randint(1, VOCAB_SIZE, (n,), generator=generator) for n in lengths]


@pytest.fixture(params=["avx512", "avx2", "portable"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Force each vector path that this processor has."""
    monkeypatch.setenv(VARIABLE, request.param)
    find_library.cache_clear()
    if why_not():
        find_library.cache_clear()
        pytest.skip(why_not())
    yield request.param
    monkeypatch.undo()
    find_library.cache_clear()
    why_not()


@pytest.fixture(params=[1, 2, 3, 7])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Run with a number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)
