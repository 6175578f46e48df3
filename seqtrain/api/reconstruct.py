"""Reconstruction of sequences by a pretrained autoencoder."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import eq
from typing import Any

from seqtrain.api.named_runs import RunLike, directory_of
from seqtrain.data.batch import map_batches
from seqtrain.data.plan import plan_in_order_of_length
from seqtrain.data.readers import read_rows
from seqtrain.evaluation.devices import select_device
from seqtrain.evaluation.logits import EVALUATION_BATCHING
from seqtrain.runs.model_folder import load_autoencoder


@dataclass(frozen=True)
class Reconstruction:
    """A sequence as the model reads it, the decoder's tokens, and the share of equal steps."""

    sequence: tuple[str, ...]
    tokens: tuple[str, ...]
    agreement: float


def reconstruct(
    source: Any, run: RunLike = None, *, max_steps: int = 100, device: str = "auto"
) -> Iterator[Reconstruction]:
    """Yield the reconstruction of each row of a file, of standard input, or of a table.

    The run must have a pretrained autoencoder, which decodes at most `max_steps` tokens per row.
    Other arguments and errors are as for `predict`.
    """
    chosen = select_device(device)
    autoencoder, fitted = load_autoencoder(directory_of(run).pretrained)
    autoencoder.to(chosen)
    assert fitted.vocabulary is not None, "an autoencoder's kind is text or tokens"
    known = fitted.vocabulary.tokens
    given = fitted.input_source(source)
    examples = read_rows(given, labelled=False)
    for _, store in fitted.for_prediction().encode_chunks([examples], given.name):
        found: list[list[int]] = [[]] * len(store)
        plan = plan_in_order_of_length(store.lengths, EVALUATION_BATCHING)
        for batch, decoded in map_batches(
            lambda batch: autoencoder.reconstruct(batch, max_steps), store, plan, chosen
        ):
            for row, ids in zip(batch.examples, batch.restore(decoded), strict=True):
                found[row] = ids
        for row, ids in enumerate(found):
            read = store[row][0].tolist()
            share = sum(map(eq, read, ids)) / max(len(read), len(ids))
            sequence, tokens = (tuple(known[i] for i in each) for each in (read, ids))
            yield Reconstruction(sequence, tokens, share)
