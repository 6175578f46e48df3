"""Sequences in, predictions out, in input order: by one model, or by several together."""

import math
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as List
from dataclasses import dataclass, field
from itertools import chain, tee
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtrain.config.schema import ModelConfig
from seqtrain.data.decisions import reached
from seqtrain.data.encoding import EncodingReport, unknown_shares
from seqtrain.data.examples import BadRow, Example
from seqtrain.data.preprocessing import CHUNK_ROWS, Preprocessing, chunked
from seqtrain.data.read_options import Column, column_names
from seqtrain.data.readers import TableSource, read_rows
from seqtrain.data.readers.sequences import sequence_from_python
from seqtrain.data.readers.table_source import columns_of
from seqtrain.errors import CheckpointError, ConfigError, DataError
from seqtrain.evaluation.calibration import Calibration
from seqtrain.evaluation.logits import CarriedStates, check_finite, predict_logits
from seqtrain.evaluation.thresholds import CoveragePoint, most_covered
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.runs.model_folder import Model
from seqtrain.runs.run_directory import name_one
from seqtrain.text import Summarized, listed, nearest, quote

MOST_COLUMNS = 8
"""Columns of a table that a message names at most."""
NO_EXAMPLE = Example("", None, 0)


@dataclass(frozen=True, repr=False)
class Prediction(Summarized):
    """What is predicted for one sequence.

    Attributes:
        label: the most probable label; empty where there is a problem. Where there may be several,
            all that reach their thresholds, joined by data.label_separator.
        probability: of it, in [0, 1]; not a number where there is a problem. Where there may be
            several, of the whole set of labels: that all of these, and no others, are right, taken
            as independent. Each label's own is in `probabilities`, and what the command `predict`
            writes.
        probabilities: of every label (or of those asked for), most probable first.
        unknown: share of the sequence's tokens that the model doesn't know, in [0, 1].
        example: what was classified: its sequence, line, file and kept columns.
        labels: each label, in the order of the classes.
    """

    label: str
    probability: float
    probabilities: dict[str, float]
    unknown: float
    example: Example = field(default=NO_EXAMPLE, repr=False, compare=False)
    labels: tuple[str, ...] = ()

    def summary(self) -> dict[str, str]:
        """Return the prediction, or why there is none."""
        if self.problem is not None:
            return {"problem": self.problem}
        return {"label": self.label, "probability": f"{self.probability:.2%}"}

    @property
    def problem(self) -> str | None:
        """Why there is no prediction; None where there is one."""
        return self.example.problem


class Classifier(Summarized):
    """A trained model, ready to predict; or several, by the mean of their probabilities.

    Rows are read as the first one's preprocessing says.

    Attributes:
        models: their networks are on the device.
        path: where they were loaded from.
        thresholds: from which probability on a label is predicted. Where a row may have several,
            validation chose them; else a label that you set here is predicted from there on, and
            never below.
    """

    def __init__(self, models: List[Model], device: torch.device, path: Path) -> None:
        self.models, self.device, self.path = models, device, path
        for model in models:
            model.network.to(device)
        self.preprocessing: Preprocessing = models[0].preprocessing
        means = map(fmean, zip(*(model.thresholds for model in models), strict=True))
        multi_label = self.preprocessing.multi_label
        self.thresholds = dict(zip(self.labels, means, strict=True)) if multi_label else {}
        self._rules: dict[object, Preprocessing] = {}

    def summary(self) -> dict[str, str]:
        """Return where it was loaded from, and what it is."""
        fitted, members = self.preprocessing, len(self.models)
        found = {
            "path": str(self.path),
            "model": _branches(self.models[0].network.config),
            "classes": f"{len(self.labels)}",
            "sequences": fitted.kind + (f" by {fitted.text.tokenizer_name}" if fitted.text else ""),
            "device": str(self.device),
        }
        return found | ({"members": f"{members}"} if members > 1 else {})

    @property
    def network(self) -> ClassifierNetwork:
        """The network of the only model; a ConfigError where there are several."""
        return one_model(self).models[0].network

    @property
    def calibration(self) -> Calibration:
        """What validation said of the only model; a ConfigError where there are several."""
        return one_model(self).models[0].calibration

    @property
    def separator(self) -> str | None:
        """Text between the labels of a row, or None in a single-label task."""
        return self.preprocessing.label_set.separator

    def set_threshold(self, label: str, probability: float) -> None:
        """Set from which probability on a label is predicted; a ConfigError where none has it."""
        if label not in self.labels:
            near = nearest(label, self.labels)
            hint = f"; did you mean {quote(near)}?" if near else ""
            raise ConfigError(f"threshold: no label {quote(label)}{hint}")
        self.thresholds[label] = probability

    def ranked(
        self, probabilities: Tensor, ranks: int | None = None
    ) -> tuple[Tensor, list[list[int]], list[float]]:
        """Return the classes of each row, most probable first; those predicted, and how surely.

        Shape:
            probabilities: (B, C). Returns: (B, C), or (B, 1) of one rank where a row has one label.
        """
        own = [self.thresholds.get(label, math.nan) for label in self.labels]
        least, scores = torch.tensor(own, dtype=torch.float64, device="cpu"), probabilities
        if self.preprocessing.multi_label:
            chosen = torch.from_numpy(reached(scores, least))
            sure = torch.where(chosen, scores, 1 - scores).prod(1)
            order = scores.argsort(dim=1, descending=True, stable=True)
            every = [[i for i, is_chosen in enumerate(row) if is_chosen] for row in chosen.tolist()]
            return order, every, sure.tolist()
        if self.thresholds:
            scores = scores + (scores >= least).double() - (scores < least).double()
        order = scores.argmax(dim=1, keepdim=True)
        if ranks != 1:
            order = scores.argsort(dim=1, descending=True, stable=True)
        sure = probabilities.gather(1, order[:, :1])[:, 0]
        return order, order[:, :1].tolist(), sure.tolist()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the class indices."""
        return self.preprocessing.labels

    def predict(
        self, sequences: Iterable[Any], groups: Iterable[str | None] | None = None
    ) -> list[Prediction]:
        """Classify sequences; return one prediction for each, in their order.

        An empty sequence gets no label, as an empty row of a file: see `Prediction.problem`.

        Args:
            sequences: strings, lists of sentences or chats (kind text), lists of symbols (tokens),
                or arrays (T, C) (features); or a table with the columns that the model was trained
                on: a DataFrame, a Dataset, a dict of lists, or a list of dicts.
            groups: name of each sequence's group, in which a model with `initial_state: carried`
                goes on from one to the next; None: each stands alone.

        Raises:
            DataError: a sequence is of another kind; its number from 1 is named; or there aren't
                as many groups as sequences.
        """
        return list(self.predict_examples([self.rows_of(sequences, groups)], "sequences"))

    def rows_of(
        self, given: Any, groups: Iterable[str | None] | None = None, keep: List[Column] = ()
    ) -> Iterable[Example]:
        """Return sequences, or the rows of a table, as a reader does; takes them as `predict`.

        `keep` are columns of a table to be kept; groups are for sequences alone.
        """
        if columns_of(given) is not None:
            if groups is not None:
                raise DataError("groups: a table has its own, in the column of data.group")
            table = TableSource(given, self.preprocessing.schema, keep=keep)
            return read_rows(table, labelled=False)
        given, schema = as_list(given), self.preprocessing.schema
        if given and self.preprocessing.codings:
            own = [*map(str, schema.sequence_columns()), *column_names(schema.static)]
            columns = f"the model reads the columns {listed(own, MOST_COLUMNS)}"
            raise DataError(f"sequences: {columns}; give a table")
        names = [None] * len(given) if groups is None else list(groups)
        if len(names) != len(given):
            raise DataError(f"groups: found {len(names)}; expected one for each sequence")
        if not all(name is None or isinstance(name, str) for name in names):
            raise DataError("groups: expected a string, or None, for each sequence")
        examples = []
        for number, (sequence, name) in enumerate(zip(given, names, strict=True), start=1):
            try:
                read = sequence_from_python(sequence, self.preprocessing.kind)
            except BadRow as bad:
                raise DataError(f"sequence {number}: {bad}") from None
            examples.append(Example(read, None, number, group=name))
        return examples

    def predict_examples(
        self,
        bursts: Iterable[Iterable[Example]],
        source: str,
        report: EncodingReport | None = None,
        ranks: int | None = None,
        empty: str | None = None,
        bad_rows: str = "error",
    ) -> Iterator[Prediction]:
        """Classify examples as they come, in their order; memory stays flat.

        Args:
            bursts: examples that come together; carried states pass from burst to burst.
            source: name for messages, such as the file's.
            report: counts the rows, and those cut or empty.
            ranks: how many labels, the most probable ones, have a probability; None: all.
            empty: error, unk (an unknown token is read) or blank (no prediction, in its place) for
                empty sequences; None: as in training, and blank where training refused them.
            bad_rows: error or blank, for rows that can't be read.

        Raises:
            DataError: a row can't be read; the predictions of the rows before it come first.
            RunError: memory ran out, or a prediction isn't finite.
        """
        copies = tee(_lists(bursts), len(self.models))
        streams = [
            self._probabilities(number, copy, source, None if number else report, (empty, bad_rows))
            for number, copy in enumerate(copies)
        ]
        names = np.array(self.labels, dtype=object)
        label_set = self.preprocessing.label_set
        most = None if label_set.multi_label else ranks  # a multi-label row may have any of them
        for found in zip(*streams, strict=True):
            mean = torch.stack([own for _, own, _ in found]).mean(dim=0)
            order, *decided = self.ranked(mean, most)
            columns = names[order.numpy()].tolist(), mean.gather(1, order).tolist(), *decided
            examples, _, unknown = found[0]
            for example, share, own, row, best, sure in zip(
                examples, unknown, *columns, strict=True
            ):
                if example.problem is None:
                    labels = label_set.decode(best)
                    probabilities = dict(zip(own[:most], row[:most], strict=True))
                    label = label_set.join(labels)
                    yield Prediction(label, sure, probabilities, share, example, labels)
                else:
                    yield Prediction("", math.nan, {}, 0.0, example)

    def threshold(self, precision: float, label: str | None = None) -> CoveragePoint:
        """Return the lowest probability above which this share of validation was right.

        It is that of all predictions, or of those of a label.

        Raises:
            ConfigError: there is none, or training had no validation split to find it.
        """
        option, given, points = "--precision", "--min-probability", self.calibration.coverage
        if label is not None:
            option, given = "--class-precision", f"--threshold {label}=P"
            of_class = dict(zip(self.labels, self.calibration.classes, strict=False))
            points = of_class.get(label, [])
        elif self.preprocessing.multi_label:
            advice = "--class-precision LABEL=SHARE chooses the threshold of one"
            raise ConfigError(f"{option}: a row may have several labels here; {advice}")
        if not points:
            raise ConfigError(
                f"{option}: {self.path} knows no threshold (it had no validation split, or "
                f"training.calibration was none); give {given}"
            )
        found = most_covered(points, precision)
        if found is None:
            best = max(points, key=lambda point: point.accuracy)
            raise ConfigError(
                f"{option}: no threshold reaches {precision:.2%} on validation; at best "
                f"{best.accuracy:.2%} of the predictions are right (from probability "
                f"{best.min_probability:.4f} on)"
            )
        return found

    def _probabilities(
        self,
        number: int,
        bursts: Iterable[Iterable[Example]],
        source: str,
        report: EncodingReport | None,
        policy: tuple[str | None, str],
    ) -> Iterator[tuple[list[Example], Tensor, list[float]]]:
        """Classify examples by one of the models, chunk by chunk, batched by length.

        Yields the rows; the probability of each class, (B, C) float64; the share of each row's
        tokens that are unknown. Where a row has a problem, its figures mean nothing.
        """
        model, carried, (empty, bad_rows) = self.models[number], CarriedStates(), policy
        if empty is None and model.preprocessing.lengths.empty == "error":
            empty = "blank"
        if (number, policy) not in self._rules:  # what they look up, they remember
            rules = model.preprocessing.for_prediction(empty=empty, bad_rows=bad_rows)
            self._rules[number, policy] = rules
        rules = self._rules[number, policy]
        for examples, store in rules.encode_chunks(bursts, source, report):
            logits = predict_logits(model.network, store, self.device, carried=carried)
            found = model.network.probabilities(check_finite(logits, store))
            yield examples, found, unknown_shares(store, rules.token_columns)


def check_alike(fitted: Mapping[str, Preprocessing], path: Path) -> None:
    """Refuse models, by name, of other labels or another kind of sequences than the first."""
    tasks = {name: (x.labels, x.kind, x.multi_label) for name, x in fitted.items()}
    first, task = next(iter(tasks.items()))
    for name, other in tasks.items():
        if other != task:
            raise CheckpointError(
                f"{path}: {name} has other labels than {first}, so they can't predict together; "
                "name one of them"
            )


def one_model(classifier: Classifier, option: str = "") -> Classifier:
    """Return a classifier; refuse an ensemble, which can't do what is asked for."""
    if len(classifier.models) > 1:
        raise ConfigError(f"{option}: ".lstrip(": ") + name_one(classifier.path))
    return classifier


def refuse_multi_label(classifier: Classifier) -> None:
    """Refuse a model of several labels per row where one is followed."""
    if classifier.preprocessing.multi_label:
        raise ConfigError("--steps: follows one label; a row may have several here")


def as_list(sequences: Any) -> list[Any]:
    """Return sequences given from Python as a list; a DataError where they are none."""
    try:
        if not isinstance(sequences, str | bytes):
            return list(sequences)
    except TypeError:
        pass
    name = type(sequences).__name__
    raise DataError(f"sequences: found one {name}; expected a list of sequences")


def _branches(config: ModelConfig) -> str:
    pooling = [config.pooling] if isinstance(config.pooling, str) else config.pooling
    more = [
        name
        for name in ("subwords", "convolutions", "ngrams", "kernels", "trees")
        if getattr(config, name)
    ]
    layers = f"{config.num_layers} × " if config.num_layers > 1 else ""
    rnn = f"{config.rnn} of {layers}{config.hidden_size}" + " both ways" * config.bidirectional
    return ", ".join([rnn, f"pooling {' + '.join(pooling)}", *more])


def _lists(bursts: Iterable[Iterable[Example]]) -> Iterator[list[Example]]:
    """Yield examples in lists of one chunk at most; where reading fails, the rows before it."""
    for rows, fault in chain.from_iterable(chunked(burst, CHUNK_ROWS) for burst in bursts):
        yield rows
        if fault is not None:
            raise fault
