"""Building networks, and initial weights that train: gates that remember, small embeddings.

Gate by gate, recurrent matrices are orthogonal (Saxe et al. 2014, arXiv:1312.6120), and input
matrices Xavier-uniform. Biases are zero but for the gate that keeps the state: the update gate of a
GRU (in torch's form h' = (1 - z) n + z h) and the forget gate of an LSTM start at +1 (Jozefowicz et
al. 2015), so that the first gradients reach far back. Embeddings are normal, with a small standard
deviation for words (model.embedding_std): with torch's 1 the random part of rare words' vectors is
larger than anything that they learn. Over a small alphabet 1 learns faster.
"""

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from seqtrain.data.vocabulary import UNK
from seqtrain.data.word_vectors import WordVectors
from seqtrain.model.cells import cell_of

KEEP_BIAS = 1.0


class _Building(TorchFunctionMode):
    """Modules hold float32 on a device, whatever torch's defaults are; draws are as asked for.

    torch's modules draw initial weights as they are built, from its global generator. Without a
    generator they don't: on "meta" the first draw loads torch's compiler, for a second.
    """

    def __init__(self, device: str, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.device = device
        self.generator = generator

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.empty, torch.zeros, torch.tensor):
            kwargs |= {"device": self.device, "dtype": kwargs.get("dtype") or torch.float32}
        elif getattr(func, "__module__", None) == "torch.nn.init":
            if self.generator is None:
                return kwargs["tensor"]
            kwargs["generator"] = self.generator
        return func(*args, **kwargs)


def undrawn() -> AbstractContextManager[Any]:
    """Make the modules built inside hold float32 on the CPU, without initial values."""
    return _Building("cpu")


def shapes_alone() -> AbstractContextManager[Any]:
    """Make the modules built inside hold neither memory nor initial weights (device "meta")."""
    return _Building("meta")


def draw_as_torch(module: nn.Module, generator: torch.Generator) -> None:
    """Draw the initial weights that torch gives the modules inside, from a generator."""
    with _Building("cpu", generator):
        for inner in module.modules():
            if isinstance(inner, nn.Embedding | nn.Linear | nn.RNNBase):
                inner.reset_parameters()


@torch.no_grad()
def initialize(
    embedding: nn.Module,
    encoder: nn.RNNBase,
    head: nn.Linear,
    *,
    embedding_std: float,
    generator: torch.Generator,
) -> None:
    """Draw the initial weights of these three, in place; an embedding of feature vectors stays."""
    if isinstance(embedding, nn.Embedding):
        nn.init.normal_(embedding.weight, std=embedding_std, generator=generator)
        embedding.weight[embedding.padding_idx].zero_()
    size, keeping = encoder.hidden_size, cell_of(encoder).keeping_gate
    for name, parameter in encoder.named_parameters():
        if name.startswith("bias"):
            parameter.zero_()
            if name.startswith("bias_ih") and keeping is not None:
                parameter[keeping * size : (keeping + 1) * size] = KEEP_BIAS
            continue
        draw = nn.init.orthogonal_ if name.startswith("weight_hh") else nn.init.xavier_uniform_
        for start in range(0, len(parameter), size):
            draw(parameter[start : start + size], generator=generator)
    nn.init.xavier_uniform_(head.weight, generator=generator)
    nn.init.zeros_(head.bias)


@torch.no_grad()
def take_vectors(embedding: nn.Embedding, vectors: WordVectors) -> None:
    """Begin with a file's vectors of the vocabulary's tokens; <unk> begins with their mean."""
    values = torch.from_numpy(np.array(vectors.values))
    embedding.weight[UNK] = values.mean(0)
    embedding.weight[torch.from_numpy(np.array(vectors.rows))] = values
