"""Several classifiers that answer as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Sequence_
from dataclasses import replace
from itertools import tee
from pathlib import Path

from seqtrain.api.classifier import Classifier, Prediction
from seqtrain.data.encoding import EncodingReport
from seqtrain.data.examples import Example
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.errors import CheckpointError
from seqtrain.evaluation.calibration import Calibration
from seqtrain.runs.model_folder import Model


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
