"""Small classifiers with random weights, sequences for them, and what one sequence gives alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from seqtrain.config.schema import ModelConfig
from seqtrain.config.value_types import PoolingName
from seqtrain.engines.cells import as_torch_takes
from seqtrain.engines.layout import Packed
from seqtrain.engines.native.library import why_unavailable
from seqtrain.model.input_spec import InputSpec, KernelSizes
from seqtrain.model.network import ClassifierNetwork
from seqtrain.model.randomness import Purpose, RandomNumbers
from seqtrain.model.standardization import SeriesStandardization
from seqtrain.sequences.ngram_vocabulary import ONLY, GramColumn, fit_ngrams
from seqtrain.sequences.vocabulary import word_grams
from tests.helpers.small_models import series_store

VOCAB_SIZE, NUM_CLASSES = 30, 4
LENGTHS = (12, 7, 7, 4, 3, 1, 1)
WORDS = ["", "", *(f"word{i}" for i in range(VOCAB_SIZE - 2))]
needs_library = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable())
CPU_WAYS = [
    pytest.param({"engine": "native"}, marks=needs_library),
    {"engine": "torch"},
    {"unroll": "padded"},
    {"unroll": "masked"},
]
"""Every way to run a recurrence on a CPU, as keys of the model section."""
POOLING_NAMES = get_args(PoolingName)


def attended(states: Tensor, pooling: Any) -> Tensor:
    """Pool states (T, H) by the attention of a module."""
    scores = pooling.score(torch.tanh(pooling.project(states)))
    return (torch.softmax(scores, 0) * states).sum(0)


POOLED: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "mean": lambda states, pooling: states.mean(0),
    "max": lambda states, pooling: states.max(0).values,
    "sum": lambda states, pooling: states.sum(0),
    "attention": attended,
}
"""Each pooling of the states of one sequence, from first principles: a new one needs an entry."""


def ids(lengths: tuple[int, ...] = LENGTHS) -> list[Tensor]:
    """Return sequences of ids, longest first, with equal lengths and the shortest possible."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(1, VOCAB_SIZE, (n,), generator=generator) for n in lengths]


def series(channels: int = 2) -> list[Tensor]:
    """Return sequences of feature vectors, longest first."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(n, channels, generator=generator) for n in LENGTHS]


def make_network(
    *, features: int = 0, standardize: str = "train", **keys: Any
) -> ClassifierNetwork:
    """Return a small model in evaluation mode, all of its weights random.

    It reads feature vectors of so many channels, or of 0 ids; keys are of the model section.
    """
    small = {"embedding_dim": 5, "hidden_size": 6, "dropout": 0.0, "embedding_dropout": 0.0}
    config = ModelConfig.model_validate({**small, "embedding_std": 1.0, **keys})
    words = word_grams(WORDS, *config.subwords) if config.subwords else None
    ngrams = fixed = kernels = None
    if config.kernels:
        kernels = KernelSizes(features, indicators=False, lengths=(3, 20, 40))
    if config.ngrams:
        values, offsets = torch.cat(ids()).numpy().astype(np.int32), np.cumsum([0, *LENGTHS])
        shortest, longest = config.ngrams
        ngrams = fit_ngrams(values, offsets, GramColumn(ONLY, shortest, longest), most=40)
    if standardize != "train":
        fixed = SeriesStandardization(features, both=standardize == "both", indicators=False)
    spec = InputSpec(
        features or VOCAB_SIZE,
        NUM_CLASSES,
        features=bool(features),
        words=words,
        ngrams=ngrams,
        series=fixed,
        kernels=kernels,
    )
    model = ClassifierNetwork(config, spec)
    model.initialize(seed=0)
    generator = torch.Generator().manual_seed(0)
    for name, tensor in model.state_dict().items():
        if "norm" in name and tensor.is_floating_point():
            tensor.uniform_(0.5, 1.5, generator=generator)
        elif "bias" in name or name.startswith(("ngrams", "initial_state")):
            tensor.uniform_(-0.5, 0.5, generator=generator)
    if features and model.solved_branches:
        store = series_store(features)
        model.solve(store, None, seed=0, num_train=len(store))
    return model.eval()


def alone(
    model: ClassifierNetwork, sequence: Tensor, random: RandomNumbers | None = None
) -> Tensor:
    """Classify one sequence from first principles, layer by layer, with modules of torch.

    The model has no branch beside the recurrent one; `random` is of the one example, for dropout.
    """
    config, half = model.config, model.config.hidden_size
    drop = random or RandomNumbers.of(0, 0, torch.tensor([0]))
    rate = 0.0 if random is None else config.dropout
    one_row = Packed(torch.ones(len(sequence), dtype=torch.int64), sequence.device)
    states = model.recurrent.embedding(sequence)
    if random is not None and sequence.ndim == 1:
        states = drop.drop(states, config.embedding_dropout, Purpose.EMBEDDING, sequence)
    start = model.recurrent.start(1)
    start = model.recurrent.zero_state(1) if start is None else start
    directions = 2 if config.bidirectional else 1
    for layer in range(config.num_layers):
        if layer:
            states = drop.drop_steps(states, rate, Purpose.ABOVE_LAYER + layer - 1, one_row)
        single = type(model.recurrent.encoder)(
            states.shape[1], half, bidirectional=config.bidirectional
        )
        weights = {
            name.replace(f"_l{layer}", "_l0"): weight
            for name, weight in model.recurrent.encoder.named_parameters()
            if f"_l{layer}" in name
        }
        own = as_torch_takes(start[:, layer * directions : (layer + 1) * directions].contiguous())
        states = functional_call(single, weights, (states.unsqueeze(1), own))[0].squeeze(1)
    names = [config.pooling] if isinstance(config.pooling, str) else sorted(config.pooling)
    last = torch.cat((states[-1, :half], states[0, half:]))
    states = model.recurrent.join(states)
    seen = [model.recurrent.join(last)] if "last" in names else []
    names = [config.pooling] if isinstance(config.pooling, str) else config.pooling
    for name in names:
        if name != "last":
            seen.append(POOLED[name](states, model.recurrent.pooling[name]))
    head = drop.drop(torch.cat(seen)[None], rate, Purpose.HEAD, drop.examples)
    logits: Tensor = model.recurrent.head(head)[0]
    return logits


def gradients(model: nn.Module, outputs: Tensor) -> dict[str, Tensor]:
    """Return each weight's gradient of a loss in which every output counts differently."""
    model.zero_grad()
    weights = torch.linspace(-1, 1, outputs.numel(), dtype=outputs.dtype, device=outputs.device)
    (outputs.flatten() * weights).sum().backward()
    named = model.named_parameters()
    return {name: p.grad.to_dense().clone() for name, p in named if p.grad is not None}


def assert_equal_gradients(
    found: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float = 2e-5
) -> None:
    """Compare within a tolerance relative to each weight's largest gradient, or to 1."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        limit = tolerance * max(1.0, float(value.abs().max()))
        torch.testing.assert_close(found[name], value, atol=limit, rtol=0, msg=name)


@contextmanager
def num_threads(count: int) -> Iterator[None]:
    """Compute with so many threads meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
