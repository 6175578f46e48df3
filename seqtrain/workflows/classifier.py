"""A loaded classifier: sequences in, predictions out, in input order."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import tee
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
from seqtrain.errors import CheckpointError, ConfigError, DataError
from seqtrain.inference.calibration import Calibration, CoveragePoint
from seqtrain.inference.carried import CarriedStates
from seqtrain.inference.devices import select_device
from seqtrain.inference.logits import predict_logits, score_parts, score_store
from seqtrain.inference.metrics import Scores
from seqtrain.processes.group import ALONE, Group
from seqtrain.runs.ensemble import members
from seqtrain.runs.finding import find, model_folder
from seqtrain.runs.model_folder import Model, load_model
from seqtrain.text import Summarized
from seqtrain.workflows.events import RunLike, path_of


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
            examples = [replace(e, group=name) for e, name in zip(examples, names, strict=True)]
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
            logits = predict_logits(self.network, store, self.device, carried=carried)
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
            RunError: memory ran out, or a process is lost.
        """
        return score_store(self.network, store, self.labels, self.device, before_batch, group)

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


class Ensemble(Classifier):
    """Several classifiers that answer together, by the mean of their probabilities.

    Args:
        members: of one kind of sequence; each reads rows by its own preprocessing.
        path: the directory that holds their runs.

    Raises:
        CheckpointError: they have different labels or read different kinds of sequences.
    """

    def __init__(self, members: Sequence_[Classifier], path: Path) -> None:
        check_alike(members, path)
        first = members[0]
        super().__init__(
            Model(first.network, first.preprocessing, Calibration()), first.device, path
        )
        self.members = members

    def predict_examples(
        self,
        bursts: Iterable[Iterable[Example]],
        source: str,
        report: EncodingReport | None = None,
        ranks: int | None = None,
        rules: Preprocessing | None = None,
    ) -> Iterator[Prediction]:
        """Classify examples as they come; as `Classifier.predict_examples`."""
        changed = rules or self.for_prediction
        for burst in bursts:
            copies = tee(burst, len(self.members))
            reports = [report, *[None] * (len(self.members) - 1)]
            answers = [
                member.predict_examples(
                    [copy],
                    source,
                    each,
                    rules=replace(
                        member.for_prediction, lengths=changed.lengths, reading=changed.reading
                    ),
                )
                for member, copy, each in zip(self.members, copies, reports, strict=True)
            ]
            yield from (self._mean(each, ranks) for each in zip(*answers, strict=True))

    def _mean(self, answers: Sequence_[Prediction], ranks: int | None) -> Prediction:
        """Return the answer of all to one example."""
        first = answers[0]
        if first.problem is not None:
            return first
        mean = {
            label: sum(answer.probabilities[label] for answer in answers) / len(answers)
            for label in self.labels
        }
        ranked = dict(sorted(mean.items(), key=lambda item: -item[1])[:ranks])
        label = next(iter(ranked))
        return Prediction(label, ranked[label], ranked, first.unknown, first.example)


def check_alike(members: Sequence_[Classifier], path: Path) -> None:
    """Refuse classifiers of other labels or another kind of sequences than the first.

    Args:
        members: that are to answer together.
        path: the directory that holds their runs.

    Raises:
        CheckpointError: as said.
    """
    first = members[0]
    for other in members[1:]:
        if set(other.labels) != set(first.labels) or (
            other.preprocessing.kind != first.preprocessing.kind
        ):
            raise CheckpointError(
                f"{path}: {other.path.name} has other labels than {first.path.name}, so they "
                "can't answer together; name one of them"
            )


@cache
def _one_thread_after_fork() -> None:
    """Let a forked process predict: OpenMP's threads stay behind, and waiting for them hangs."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


def load_one(run: RunLike = None, *, device: str = "auto") -> Classifier:
    """Load the classifier of one run; takes and raises what `load` does.

    Raises:
        CheckpointError: several runs stand there.
    """
    classifier = load(run, device=device)
    if isinstance(classifier, Ensemble):
        raise CheckpointError(f"{classifier.path}: holds several runs; name one of them")
    return classifier


def load(run: RunLike = None, *, device: str = "auto") -> Classifier:
    """Load the classifier of a run.

    A process forked later computes with one thread; spawned ones with as many as torch chooses.

    Args:
        run: a run directory, a model folder, or what `fit` returned; None: the newest run.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError: there is no whole model there.
        ConfigError: there is no such device.
    """
    chosen = select_device(device)
    path = find(path_of(run)).path
    _one_thread_after_fork()
    runs = members(path)
    if not runs:
        return Classifier(load_model(model_folder(path)), chosen, path)
    return Ensemble([Classifier(load_model(model_folder(at)), chosen, at) for at in runs], path)
