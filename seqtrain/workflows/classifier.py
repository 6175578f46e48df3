"""A loaded classifier: sequences in, predictions out, in input order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtrain.data.chunks import CHUNK_ROWS, encoded_chunks
from seqtrain.data.encoding import EncodingReport, unknown_shares
from seqtrain.data.examples import Example, Features
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.store import SequenceStore
from seqtrain.errors import DataError
from seqtrain.inference.carried import CarriedStates
from seqtrain.inference.devices import select_device
from seqtrain.inference.logits import predict_logits, score_store
from seqtrain.inference.metrics import Scores
from seqtrain.runs.model_folder import Model, load_model
from seqtrain.runs.run_directory import find, model_folder
from seqtrain.workflows.events import RunLike, path_of


@dataclass(frozen=True)
class Prediction:
    """The answer for one sequence.

    Attributes:
        label: the most probable label.
        probability: of it, in [0, 1].
        probabilities: of every label, most probable first.
        unknown: share of the sequence's tokens that the model doesn't know, in [0, 1].
    """

    label: str
    probability: float
    probabilities: dict[str, float]
    unknown: float


class Classifier:
    """A trained model, ready to predict.

    Args:
        model: network and preprocessing.
        device: where to compute.
        path: where the model was read.
    """

    def __init__(self, model: Model, device: torch.device, path: Path) -> None:
        self.path = path
        self.network = model.network.to(device)
        self.preprocessing: Preprocessing = model.preprocessing
        self.device = device
        self.for_prediction = model.preprocessing.for_prediction()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the class indices."""
        return self.preprocessing.labels

    def predict(
        self, sequences: Iterable[Any], groups: Iterable[str | None] | None = None
    ) -> list[Prediction]:
        """Classify sequences.

        Args:
            sequences: strings (kind text), lists of symbols (tokens), or arrays of shape
                (T, C) (features).
            groups: name of each sequence's group, in which a model with `initial_state: carried`
                goes on from one to the next; None: each stands alone.

        Returns:
            One prediction a sequence, in their order.

        Raises:
            DataError: a sequence is empty or of another kind; its number from 1 is named; or groups
                are another number than sequences.
        """
        if isinstance(sequences, str) or not isinstance(sequences, Iterable):
            raise DataError(
                f"sequences: found one {type(sequences).__name__}; expected a list of sequences"
            )
        examples = [
            Example(self._checked(sequence, number), None, number)
            for number, sequence in enumerate(sequences, start=1)
        ]
        if groups is not None:
            names = list(groups)
            if len(names) != len(examples):
                raise DataError(f"groups: found {len(names)}; expected one for each sequence")
            examples = [replace(e, group=name) for e, name in zip(examples, names, strict=True)]
        return list(self.predict_examples(examples, "sequences"))

    def predict_examples(
        self, examples: Iterable[Example], source: str, report: EncodingReport | None = None
    ) -> Iterator[Prediction]:
        """Classify examples as they come, chunk by chunk; each chunk is batched by length.

        States that are carried in groups pass from chunk to chunk; one is kept for every group.

        Args:
            examples: unlabelled, or with labels that are ignored.
            source: name for messages, such as the file's.
            report: counts up the rows, and those cut or empty.

        Yields:
            One prediction an example, in their order.

        Raises:
            DataError: a row can't be read; the predictions of the rows before it come first.
            RunError: memory ran out.
        """
        carried = CarriedStates()
        for _, store in encoded_chunks(
            self.for_prediction, examples, source, report, rows=CHUNK_ROWS
        ):
            logits = predict_logits(self.network, store, self.device, carried=carried)
            yield from self._predictions(logits, unknown_shares(store))

    def score(
        self, store: SequenceStore, before_batch: Callable[[], None] = lambda: None
    ) -> Scores:
        """Score encoded, labelled sequences.

        Args:
            store: the sequences.
            before_batch: is called before each batch; what it raises ends the work.

        Raises:
            RunError: memory ran out.
        """
        return score_store(self.network, store, self.labels, self.device, before_batch)

    def _predictions(self, logits: Tensor, unknown: list[float]) -> Iterator[Prediction]:
        ranked = torch.softmax(logits.double(), dim=1).sort(dim=1, descending=True, stable=True)
        labels = np.array(self.labels, dtype=object)[ranked.indices.numpy()].tolist()
        for names, values, share in zip(labels, ranked.values.tolist(), unknown, strict=True):
            yield Prediction(names[0], values[0], dict(zip(names, values, strict=True)), share)

    def _checked(self, sequence: Any, number: int) -> Any:
        """Accept what the kind expects; say what was found otherwise."""
        kind = self.preprocessing.kind
        if kind == "features":
            vectors = _as_vectors(sequence, len(self.preprocessing.mean))
            if vectors is not None:
                return vectors
        elif kind == "tokens" and isinstance(sequence, list | tuple):
            return [str(symbol) for symbol in sequence]
        elif kind == "text" and isinstance(sequence, str):
            return sequence
        expected = {
            "features": "an array of shape (T, C)",
            "tokens": "a list of symbols",
            "text": "a string",
        }[kind]
        raise DataError(
            f"sequence {number}: found {type(sequence).__name__}; this model expects {expected}"
        )


def _as_vectors(sequence: Any, channels: int) -> Features | None:
    """Return feature vectors (T, C), of one channel also where given as (T,); None if neither."""
    try:
        vectors: Features = np.asarray(sequence, dtype=np.float32)
    except (TypeError, ValueError):
        return None
    if vectors.ndim == 1 and channels == 1:
        return vectors[:, None]
    return vectors if vectors.ndim == 2 else None


def load(run: RunLike = None, *, device: str = "auto") -> Classifier:
    """Load the classifier of a run.

    Args:
        run: a run directory, a model folder, or what `fit` returned; None: the newest run.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError: there is no whole model there.
        ConfigError: there is no such device.
    """
    chosen = select_device(device)
    path = find(path_of(run)).path
    return Classifier(load_model(model_folder(path)), chosen, path)
