"""Initial weights of a network: random numbers, word vectors, or the weights of an older model."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from seqtrain.config.schema import Config
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.initialization import use_word_vectors
from seqtrain.model.network import ClassifierNetwork, new_network
from seqtrain.sequences.batch import memory_errors
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.vocabulary import UNK
from seqtrain.sequences.word_vectors import WordVectors
from seqtrain.tables.blocks import Array
from seqtrain.text import counted, listed


def initial_network(
    config: Config,
    data: PreparedData,
    device: torch.device,
    rows: SequenceStore,
    weights: Array | None = None,
    *,
    solve: bool = True,
) -> ClassifierNetwork:
    """Return a new network on `device`, with random initial weights that depend on the seed.

    Embeddings of words start with their word vectors, if there are any. Branches that don't learn
    by gradients, such as trees, are solved here.

    Args:
        config: The config.
        data: Encoded splits, preprocessing, and word vectors.
        device: Device of the network.
        rows: Sequences to solve such branches on.
        weights: Weight of each of them, (B,), or None for equal weights.
        solve: False to leave these branches unsolved: rank 0 solves for all processes.

    Raises:
        RunError: If memory runs out while a branch is solved.
    """
    network = new_network(config.model, data.preprocessing, data.splits["train"].lengths)
    network.initialize(config.seed)
    embedding = recurrent_branch(network).embedding
    if data.vectors is not None and isinstance(embedding, torch.nn.Embedding):
        use_word_vectors(embedding, data.vectors)
    network.to(device)
    if network.solved_branches and solve:
        with memory_errors(
            rows.lengths, "model.max_ngrams or data.max_length, or set model.kernels: false"
        ):
            network.solve(rows, weights, config.seed, len(data.splits["train"]))
    return network


@torch.no_grad()
def copy_old_weights(
    old: ClassifierNetwork,
    old_preprocessing: Preprocessing,
    new: ClassifierNetwork,
    new_preprocessing: Preprocessing,
    vectors: WordVectors | None = None,
) -> str:
    """Copy the weights of an older model into a new one with more tokens or labels.

    A new token keeps its word vector, if it has one. A new token without a word vector gets the
    weights of <unk>, because the older model read it as <unk>. A new label keeps its initial
    weights. Branches that aren't trained by gradients were solved on the new rows.

    Args:
        old: The older model.
        old_preprocessing: Preprocessing of the older model.
        new: Network with initial weights. It is changed. Its tokens and labels begin with the
            tokens and labels of the older model, in the same order.
        new_preprocessing: Preprocessing of the new network.
        vectors: Word vectors that the new network starts with, or None.

    Returns:
        A line for the user with the numbers of old and new labels and tokens.
    """
    before = old.state_dict()
    after = new.state_dict()
    fitted = tuple(f"{branch}." for branch in new.solved_branches)
    for name, weight in after.items():
        if not name.startswith(fitted):
            kept = before[name].to(weight.device)
            weight[tuple(map(slice, kept.shape))] = kept
    if "embedding.linear.weight" in after:
        _keep_columns(before, after, "embedding", "embedding.linear.weight", 0)
    _keep_columns(before, after, "static", "head.weight", recurrent_branch(new).pooled_width)
    vocabulary, kept_tokens, added_tokens = old_preprocessing.vocabulary, 0, 0
    if vocabulary is not None:
        rows = after["embedding.weight"]
        is_new = torch.arange(len(rows), device="cpu") >= len(vocabulary)
        if vectors is not None:
            is_new[torch.from_numpy(np.array(vectors.rows))] = False
        rows[is_new] = rows[UNK].clone()
        kept_tokens = len(vocabulary)
        added_tokens = len(rows) - len(vocabulary)
    tables = {"embedding": old_preprocessing.steps, "static": old_preprocessing.row_features}
    for prefix, table in tables.items():
        for number, known in enumerate(table.vocabularies if table else []):
            rows = after[f"{prefix}.tables.{number}.weight"]
            rows[len(known) :] = rows[UNK]
            added_tokens += len(rows) - len(known)
            kept_tokens += len(known)
    labels = len(old_preprocessing.labels)
    added_labels = len(new_preprocessing.labels) - labels
    counts = [(labels, added_labels, "label"), (kept_tokens, added_tokens, "token")]
    counts = [count for count in counts if count[0]]
    kept_words = [counted(kept, noun) for kept, _, noun in counts]
    added_words = [counted(added, noun) for _, added, noun in counts]
    return f"kept {listed(kept_words)}; added {listed(added_words)}"


def _keep_columns(
    before: Mapping[str, Tensor], after: Mapping[str, Tensor], prefix: str, name: str, start: int
) -> None:
    """Copy a linear map of an older model that reads several columns, in place.

    New tokens make the vectors of their column wider, so that its other inputs move to the right.
    The inputs between them get the weight 0: the outputs stay, and the inputs can be learned.

    Args:
        before: Weights of the older model.
        after: Weights of the new model.
        prefix: Name of the `ColumnEmbedding` whose vectors are the last inputs of the map.
        name: Name of the weights of the map.
        start: Number of its inputs before these vectors.
    """
    places, position, number = [*range(start)], start, 0
    while f"{prefix}.tables.{number}.weight" in after:
        table = f"{prefix}.tables.{number}.weight"
        places += range(position, position + before[table].shape[1])
        position += after[table].shape[1]
        number += 1
    places += range(position, after[name].shape[1])  # numbers
    kept = before[name].to(after[name].device)
    after[name][: len(kept)] = 0
    after[name][: len(kept), places] = kept
