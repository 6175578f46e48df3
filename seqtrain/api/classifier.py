"""A loaded classifier: sequences in, predictions out, in input order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtrain.data.chunks import CHUNK_ROWS, encoded_chunks
from seqtrain.data.encoding import EncodingReport, unknown_shares
from seqtrain.data.examples import BadRow, Example, Sequence
from seqtrain.data.given import given_sequence
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.store import SequenceStore
from seqtrain.errors import ConfigError, DataError
from seqtrain.evaluation.calibration import CoveragePoint
from seqtrain.evaluation.carried import CarriedStates
from seqtrain.evaluation.logits import finite_logits, score_logits, score_parts
from seqtrain.evaluation.metrics import Scores
from seqtrain.processes.group import ALONE, Group
from seqtrain.runs.model_folder import Model
from seqtrain.text import Summarized


@dataclass(frozen=True, repr=False)
class Prediction(Summarized):
    """The answer for one sequence.

    Attributes:
        label: the most probable label.
        probability: of it, in [0, 1].
        probabilities: of every label (or of those asked for), most probable first.
        unknown: share of the sequence's tokens that the model doesn't know, in [0, 1].
        example: what was classified: its sequence, line, file and kept columns. Where it has a
            problem there is no answer: the label is empty, the probability not a number.
    """

    label: str
    probability: float
    probabilities: dict[str, float]
    unknown: float
    example: Example | None = field(default=None, repr=False, compare=False)

    def summary(self) -> dict[str, str]:
        """Return the answer, or why there is none."""
        if self.problem is not None:
            return {"problem": self.problem}
        return {"label": self.label, "probability": f"{self.probability:.2%}"}

    @property
    def problem(self) -> str | None:
        """Why there is no answer; None where there is one."""
        return None if self.example is None else self.example.problem


class Classifier(Summarized):
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
        self.calibration = model.calibration
        self.device = device
        self.for_prediction = model.preprocessing.for_prediction()

    def summary(self) -> dict[str, str]:
        """Return where it comes from, and what it is."""
        network, kind = self.network.config, self.preprocessing.kind
        return {
            "path": str(self.path),
            "model": f"{network.rnn} of {network.hidden_size}, pooling {network.pooling}",
            "classes": f"{len(self.labels)}",
            "sequences": f"{kind} by {self.preprocessing.tokenizer}" if kind == "text" else kind,
            "device": str(self.device),
        }

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the class indices."""
        return self.preprocessing.labels

    def threshold(self, precision: float) -> CoveragePoint:
        """Return the probability from which on answers were right so often on validation.

        Args:
            precision: share of the answers above it that are right, in [0, 1].

        Returns:
            The lowest such threshold, and what share of validation lay above it.

        Raises:
            ConfigError: there is none, or no validation split told of it.
        """
        points = self.calibration.coverage
        if not points:
            raise ConfigError(
                f"--precision: {self.path} knows no threshold (it had no validation split, or "
                "training.calibration was none); give --min-probability"
            )
        found = self.calibration.threshold(precision)
        if found is None:
            best = max(points, key=lambda point: point.accuracy)
            raise ConfigError(
                f"--precision: found {precision:g}; the best part of validation, "
                f"{best.coverage:.1%} of it from probability {best.min_probability:.4f} on, has "
                f"{best.accuracy:.4f}; expected that or less"
            )
        return found

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
            Example(self._given(sequence, number), None, number)
            for number, sequence in enumerate(sequences, start=1)
        ]
        if groups is not None:
            names = list(groups)
            if not all(name is None or isinstance(name, str) for name in names):
                raise DataError("groups: expected a string, or None, for each sequence")
            if len(names) != len(examples):
                raise DataError(f"groups: found {len(names)}; expected one for each sequence")
            examples = [e._replace(group=name) for e, name in zip(examples, names, strict=True)]
        return list(self.predict_examples([examples], "sequences"))

    def predict_examples(
        self,
        bursts: Iterable[Iterable[Example]],
        source: str,
        report: EncodingReport | None = None,
        ranks: int | None = None,
        rules: Preprocessing | None = None,
    ) -> Iterator[Prediction]:
        """Classify examples as they come, chunk by chunk; each chunk is batched by length.

        States that are carried in groups pass from chunk to chunk; one is kept for every group.

        Args:
            bursts: examples that come together, unlabelled or with labels that are ignored.
            source: name for messages, such as the file's.
            report: counts up the rows, and those cut or empty.
            ranks: how many labels, the most probable ones, have their probability told; None: all.
            rules: the model's preprocessing where it says otherwise what happens to rows that
                can't be used.

        Yields:
            One prediction per example, in their order.

        Raises:
            DataError: a row can't be read; the predictions of the rows before it come first.
            RunError: memory ran out.
        """
        carried = CarriedStates()
        for chunk, store in encoded_chunks(
            rules or self.for_prediction, bursts, source, report, rows=CHUNK_ROWS
        ):
            logits = finite_logits(self.network, store, self.device, carried=carried)
            answers = self._predictions(logits, unknown_shares(store), ranks)
            for example, answer in zip(chunk, answers, strict=True):
                if example.problem is None:
                    yield Prediction(*answer, example)
                else:
                    yield Prediction("", math.nan, {}, 0.0, example)

    def score(
        self,
        store: SequenceStore,
        before_batch: Callable[[], None] = lambda: None,
        group: Group = ALONE,
    ) -> Scores:
        """Score encoded, labelled sequences.

        Args:
            store: the sequences.
            before_batch: is called before each batch; what it raises ends the work.
            group: processes that share the work.

        Raises:
            RunError: memory ran out, a process is lost, or an answer isn't finite.
        """
        options = {"before_batch": before_batch, "group": group}
        logits = finite_logits(self.network, store, self.device, **options)
        return score_logits(logits, store, self.labels)

    def score_parts(self, store: SequenceStore) -> dict[str, Scores]:
        """Score each part of the model alone, by name; nothing where it has but one.

        Raises:
            RunError: memory ran out.
        """
        return score_parts(self.network, store, self.labels, self.device)

    def _predictions(
        self, logits: Tensor, unknown: list[float], ranks: int | None
    ) -> Iterator[tuple[str, float, dict[str, float], float]]:
        """Return the most probable labels of each row, and the share that is unknown of it."""
        probabilities = torch.softmax(logits.double(), dim=1)
        if ranks == 1:
            values, order = probabilities.max(dim=1, keepdim=True)
        else:
            ranked = probabilities.sort(dim=1, descending=True, stable=True)
            values, order = ranked.values[:, :ranks], ranked.indices[:, :ranks]
        labels = np.array(self.labels, dtype=object)[order.numpy()].tolist()
        for names, row, share in zip(labels, values.tolist(), unknown, strict=True):
            yield names[0], row[0], dict(zip(names, row, strict=True)), share

    def _given(self, sequence: Any, number: int) -> Sequence:
        """Accept what the kind expects; say what was found otherwise."""
        channels = len(self.preprocessing.mean)
        try:
            return given_sequence(sequence, self.preprocessing.kind, channels)
        except BadRow as bad:
            raise DataError(f"sequence {number}: {bad}") from None
