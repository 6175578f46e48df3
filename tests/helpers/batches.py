"""Batches made of tensors, and the logits of a network for them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from seqtrain.engines.layout import Packed
from seqtrain.model.branches.branch import Branch, ForwardContext
from seqtrain.model.inputs import SideInputs
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.batch import Batch, Spellings


def batch_of(
    inputs: PackedSequence | Tensor,
    lengths: Tensor | None = None,
    *,
    spellings: Spellings | None = None,
    static: Tensor | None = None,
) -> Batch:
    """Return a batch of packed sequences, or of padded ones with their lengths."""
    if isinstance(inputs, PackedSequence):
        lengths = Packed.of(inputs).lengths_on_cpu
    assert lengths is not None
    rows = torch.arange(len(lengths))
    return Batch(
        inputs=inputs,
        lengths=lengths,
        labels=torch.zeros(len(rows), dtype=torch.int64, device=inputs.data.device),
        groups=None,
        sorted_indices=rows,
        unsorted_indices=rows,
        examples=np.arange(len(rows)),
        spellings=spellings,
        static=static,
    )


def branch_logits(branch: Branch, packed: PackedSequence) -> Tensor:
    """Return the logits of one branch for packed sequences."""
    layout, side = layout_of(packed), SideInputs.of(batch_of(packed))
    logits: Tensor = branch(packed.data, layout, side, ForwardContext())
    return logits


def layout_of(packed: PackedSequence) -> Packed:
    """Return the layout of packed sequences."""
    return Packed(packed.batch_sizes, packed.data.device)


def classify(
    model: ClassifierNetwork,
    inputs: PackedSequence | Tensor,
    lengths: Tensor | None = None,
    *,
    spellings: Spellings | None = None,
    static: Tensor | None = None,
    **context: Any,
) -> Tensor:
    """Return the logits of sequences; `context` are fields of a ForwardContext."""
    batch = batch_of(inputs, lengths, spellings=spellings, static=static)
    logits: Tensor = model(batch, ForwardContext(**context))
    return logits


def classify_by_branch(
    model: ClassifierNetwork, inputs: PackedSequence | Tensor, **context: Any
) -> tuple[list[Tensor], Tensor]:
    """Return the logits of each branch, and the final states."""
    own = ForwardContext(**context)
    logits = model.branch_logits(batch_of(inputs), own)
    assert own.final_states is not None
    return logits, own.final_states
