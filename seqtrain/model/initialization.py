"""Initial weights of networks, and networks whose weights have no memory yet.

Networks are built on torch's device "meta": tensors have a shape, but no memory and no values. Then
saved weights are loaded. In a new network, `materialize` gives the weights memory instead, and the
modules draw them on the CPU from a generator.

- Recurrent matrices are orthogonal, gate by gate (Saxe et al. 2014, arXiv:1312.6120).
- Input matrices are Xavier-uniform.
- Biases are zero. Only the bias of the gate that keeps the state starts at +1 (Jozefowicz et al.
  2015), so that the first gradients reach far back. This is the forget gate of an LSTM, and the
  update gate of a GRU in torch's form h' = (1 - z) n + z h.
- Embeddings are normal. Their standard deviation, model.embedding_std, is small for words. With
  torch's default of 1, the random part of a rare word's vector would be larger than the learned
  part. For a small alphabet, 1 learns faster.
"""

import math

import numpy as np
import torch
from torch import nn

from seqtrain.engines.cells import cell_of
from seqtrain.sequences.vocabulary import PAD, UNK
from seqtrain.sequences.word_vectors import WordVectors

KEEP_BIAS = 1.0
"""Initial bias of the gate that keeps the state."""


def token_embedding(num_tokens: int, width: int, padding_idx: int | None = None) -> nn.Embedding:
    """Return an nn.Embedding on the device "meta", without values.

    Unlike the constructor of nn.Embedding, the function draws no values. On the device "meta",
    drawing would load torch's compiler, which takes two seconds.
    """
    weight = torch.empty(num_tokens, width, device="meta")
    embedding: nn.Embedding = nn.Embedding.from_pretrained(  # type: ignore[no-untyped-call]
        weight, freeze=False, padding_idx=padding_idx
    )
    return embedding


def materialize(module: nn.Module) -> None:
    """Give memory on the CPU to the tensors of a module that are on the device "meta".

    New parameters are float32 whatever torch's default is, and their values are arbitrary. New
    buffers are zero. Other tensors aren't changed.
    """
    for part in module.modules():
        for name, weight in list(part.named_parameters(recurse=False)):
            if weight.is_meta:
                memory = torch.empty(weight.shape, dtype=torch.float32, device="cpu")
                setattr(part, name, nn.Parameter(memory))
        for name, buffer in list(part.named_buffers(recurse=False)):
            if buffer.is_meta:
                if buffer.is_floating_point():
                    dtype = torch.float32
                else:
                    dtype = buffer.dtype
                setattr(part, name, torch.zeros(buffer.shape, dtype=dtype, device="cpu"))


@torch.no_grad()
def draw_defaults(module: nn.Module, generator: torch.Generator) -> None:
    """Draw the weights of all embeddings, linear maps and recurrences as torch does by default.

    They are drawn in place. The weights of other modules aren't changed.
    """
    for part in module.modules():
        if isinstance(part, nn.Embedding):
            part.weight.normal_(generator=generator)
            if part.padding_idx is not None:
                part.weight[part.padding_idx].zero_()
        elif isinstance(part, nn.Linear):
            nn.init.kaiming_uniform_(part.weight, a=math.sqrt(5), generator=generator)
            if part.bias is not None:
                bound = 1 / math.sqrt(part.in_features)
                part.bias.uniform_(-bound, bound, generator=generator)
        elif isinstance(part, nn.RNNBase):
            bound = 1 / math.sqrt(part.hidden_size)
            for weight in part.parameters():
                weight.uniform_(-bound, bound, generator=generator)


@torch.no_grad()
def draw_embedding(embedding: nn.Embedding, std: float, generator: torch.Generator) -> None:
    """Draw the vectors from a normal distribution with standard deviation `std`.

    The vector of <pad> becomes zero.
    """
    embedding.weight.normal_(std=std, generator=generator)
    embedding.weight[PAD].zero_()


@torch.no_grad()
def draw_recurrence(encoder: nn.RNNBase, generator: torch.Generator) -> None:
    """Draw the weights of all layers and directions of an encoder, as the module describes."""
    size, keeping = encoder.hidden_size, cell_of(encoder).keeping_gate
    for name, parameter in encoder.named_parameters():
        if name.startswith("bias"):
            parameter.zero_()
            if name.startswith("bias_ih") and keeping is not None:
                parameter[keeping * size : (keeping + 1) * size] = KEEP_BIAS
            continue
        if name.startswith("weight_hh"):
            draw = nn.init.orthogonal_
        else:
            draw = nn.init.xavier_uniform_
        for start in range(0, len(parameter), size):
            draw(parameter[start : start + size], generator=generator)


@torch.no_grad()
def draw_head(head: nn.Linear, generator: torch.Generator) -> None:
    """Draw the weights of a linear classifier, and set its biases to zero."""
    nn.init.xavier_uniform_(head.weight, generator=generator)
    nn.init.zeros_(head.bias)


@torch.no_grad()
def use_word_vectors(embedding: nn.Embedding, vectors: WordVectors) -> None:
    """Set the vectors of the tokens that have a pretrained word vector.

    The vector of <unk> becomes the mean of the pretrained vectors.
    """
    values = torch.from_numpy(np.array(vectors.values))
    embedding.weight[UNK] = values.mean(0)
    embedding.weight[torch.from_numpy(np.array(vectors.rows))] = values
