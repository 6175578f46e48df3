"""Classifiers: predictions for sequences, by one model or by an ensemble."""

import math
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as List
from itertools import chain, tee
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqtrain.api.prediction import Prediction, Predictions, label_text
from seqtrain.config.schema import ModelConfig
from seqtrain.data.decisions import best_class, reached
from seqtrain.data.encoding import EncodingReport, unknown_shares
from seqtrain.data.examples import BadRow, Example
from seqtrain.data.preprocessing import CHUNK_ROWS, Preprocessing, chunked
from seqtrain.data.read_options import Column, column_names
from seqtrain.data.readers import TableSource, read_rows
from seqtrain.data.readers.sequences import sequence_from_python
from seqtrain.data.readers.table_source import columns_of
from seqtrain.errors import ConfigError, DataError
from seqtrain.evaluation.calibration import Calibration
from seqtrain.evaluation.devices import select_device
from seqtrain.evaluation.logits import CarriedStates, check_finite, embed_sequences, predict_logits
from seqtrain.evaluation.thresholds import CoveragePoint, most_covered
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.runs.model_folder import Model, pack_model, unpack_model
from seqtrain.runs.run_directory import name_one
from seqtrain.text import Summarized, listed, nearest, quote


class Classifier(Summarized):
    """A trained model, or an ensemble that predicts by the mean of its probabilities.

    Sequences are read as the first model's preprocessing says. A classifier can be pickled.

    Args:
        models: Models with the same labels and kind of sequences.
        device: Device that computes.
        path: Directory that they were loaded from.

    Attributes:
        thresholds: Probability from which on a label is predicted. In a multi-label task each label
            has one, chosen on validation. Otherwise `set_threshold` adds labels, which are
            predicted from their threshold on and never below it.
    """

    def __init__(self, models: List[Model], device: torch.device, path: Path) -> None:
        self.models, self.device, self.path = models, device, path
        for model in models:
            model.network.to(device)
        self.preprocessing: Preprocessing = models[0].preprocessing
        self.thresholds: dict[str, float] = {}
        if self.preprocessing.multi_label:
            self.thresholds = dict(zip(self.labels, self._fitted_thresholds(), strict=True))
        self._rules: dict[object, Preprocessing] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {
            "models": [pack_model(model) for model in self.models],
            "device": str(self.device),
            "path": str(self.path),
            "thresholds": self.thresholds,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        models = [unpack_model(files) for files in state["models"]]
        Classifier.__init__(self, models, select_device(state["device"]), Path(state["path"]))
        self.thresholds = state["thresholds"]

    def _fitted_thresholds(self) -> list[float]:
        """Return the mean of the models' thresholds for each class."""
        return [fmean(each) for each in zip(*(x.thresholds for x in self.models), strict=True)]

    def summary(self) -> dict[str, str]:
        """Return path, model, number of classes, kind of sequences and device."""
        fitted, members = self.preprocessing, len(self.models)
        found = {
            "path": str(self.path),
            "model": _branches(self.models[0].network.config),
            "classes": f"{len(self.labels)}",
            "sequences": " by ".join(filter(None, (fitted.kind, fitted.sequence.tokenizer_name))),
            "device": str(self.device),
        }
        return found | ({"members": f"{members}"} if members > 1 else {})

    @property
    def network(self) -> ClassifierNetwork:
        """The network. An ensemble raises a ConfigError."""
        return one_model(self).models[0].network

    @property
    def calibration(self) -> Calibration:
        """The calibration. An ensemble raises a ConfigError."""
        return one_model(self).models[0].calibration

    @property
    def separator(self) -> str | None:
        """Text between the labels of a row, or None in a single-label task."""
        return self.preprocessing.label_set.separator

    def set_threshold(self, label: Any, probability: float) -> None:
        """Set the probability from which on a label is predicted.

        Raises:
            ConfigError: If there is no such label.
        """
        label = label_text(label)
        if label not in self.labels:
            near = nearest(label, self.labels)
            known = listed([quote(each) for each in self.labels])
            hint = f"; did you mean {quote(near)}?" if near else f"; expected one of {known}"
            raise ConfigError(f"threshold: no label {quote(label)}{hint}")
        self.thresholds[label] = probability

    @property
    def decision_thresholds(self) -> list[float]:
        """Threshold of each class as `decisions` takes it, those that were set included."""
        if self.preprocessing.multi_label:
            return [*self.thresholds.values()]
        return self._fitted_thresholds()

    def decide(self, probabilities: Tensor) -> tuple[list[list[int]], list[float]]:
        """Return the predicted classes of each example, and the probability of the prediction.

        Args:
            probabilities: Probability of each class, (B, C) float64.
        """
        if self.preprocessing.multi_label:
            chosen = torch.from_numpy(reached(probabilities, self.decision_thresholds))
            sure = torch.where(chosen, probabilities, 1 - probabilities).prod(1)
            return [row.nonzero().flatten().tolist() for row in chosen], sure.tolist()
        best = torch.from_numpy(best_class(probabilities, self.decision_thresholds))
        if self.thresholds:
            own = [self.thresholds.get(label, math.nan) for label in self.labels]
            least = torch.tensor(own, dtype=torch.float64, device="cpu")
            # A class at its threshold comes before all others, and one below it after all others.
            ranks = (probabilities >= least).double() - (probabilities < least).double()
            best = (probabilities + 2 * ranks).argmax(dim=1)
        sure = probabilities.gather(1, best.unsqueeze(1)).squeeze(1)
        return best.unsqueeze(1).tolist(), sure.tolist()

    @property
    def labels(self) -> tuple[str, ...]:
        """Label of each class index, as text."""
        return self.preprocessing.labels

    def predict(
        self, sequences: Iterable[Any], groups: Iterable[str | None] | None = None
    ) -> Predictions:
        """Return a prediction for each sequence, in their order.

        An empty sequence gets no label, as an empty row of a file; see `Prediction.problem`.

        Args:
            sequences: Strings, lists of sentences or chats (kind text), lists of symbols (tokens),
                or arrays (T, C) (features); or a table with the columns that the model was trained
                on: a DataFrame, a Dataset, a dict of lists, or a list of dicts.
            groups: Name of each sequence's group, or None. A model with `initial_state: carried`
                starts a sequence from the state at the end of the one before it in its group.

        Raises:
            DataError: If a sequence is of another kind (its number from 1 is named), or if there
                aren't as many groups as sequences.
        """
        rows = self.rows_of(sequences, groups)
        found = self.predict_examples([rows], "sequences")
        return Predictions(found, self.preprocessing.label_set.values)

    def embed(
        self, sequences: Iterable[Any], groups: Iterable[str | None] | None = None
    ) -> npt.NDArray[np.float32]:
        """Return a vector for each sequence, (B, H), for search, clustering or other models.

        It is the pooled hidden state of the recurrent branch, before the last layer. The row of an
        empty sequence is NaN.

        Args:
            sequences: As for `predict`.
            groups: As for `predict`.

        Raises:
            ConfigError: If this is an ensemble.
            DataError: As `predict`.
        """
        network, carried = one_model(self, "embed").network, CarriedStates()
        vectors = [np.zeros((0, recurrent_branch(network).pooled_width), dtype=np.float32)]
        rules = self._prediction_rules(0, None, "error")
        for examples, store in rules.encode_chunks([self.rows_of(sequences, groups)], "sequences"):
            found = embed_sequences(network, store, self.device, carried).numpy()
            found[[example.problem is not None for example in examples]] = np.nan
            vectors.append(found)
        return np.concatenate(vectors)

    def rows_of(
        self, given: Any, groups: Iterable[str | None] | None = None, keep: List[Column] = ()
    ) -> Iterable[Example]:
        """Return sequences, or the rows of a table, as a reader returns them.

        Args:
            given: Sequences or a table, as for `predict`.
            groups: Group of each sequence, or None; a table has a column for it.
            keep: Columns of a table whose cells are kept.
        """
        if columns_of(given) is not None:
            if groups is not None:
                raise DataError("groups: a table has its own, in the column of data.group")
            table = TableSource(given, self.preprocessing.schema, keep=keep)
            return read_rows(table, labelled=False)
        given, schema = as_list(given), self.preprocessing.schema
        if given and self.preprocessing.reads_tables:
            own = [*map(str, schema.sequence_columns()), *column_names(schema.static)]
            columns = f"the model reads the columns {listed(own)}"
            raise DataError(f"sequences: {columns}; give a table")
        names = [None] * len(given) if groups is None else list(groups)
        if len(names) != len(given):
            raise DataError(f"groups: found {len(names)}; expected one for each sequence")
        if not all(name is None or isinstance(name, str) for name in names):
            raise DataError("groups: expected a string or None for each sequence")
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
        """Yield a prediction for each example, in their order, as they come; memory is bounded.

        Args:
            bursts: Examples that arrive together. Carried states pass from burst to burst.
            source: Name of the source in messages, such as a file's.
            report: Counts of rows that were read, cut or empty.
            ranks: Number of most probable labels that have a probability, or None for all.
            empty: error, unk (an unknown token is read) or blank (no prediction) for empty
                sequences; or None for the rule of training, with blank in place of error.
            bad_rows: error or blank, for rows that can't be read.

        Raises:
            DataError: If a row can't be read; predictions for the rows before it come first.
            RunError: If memory ran out, or a prediction isn't finite.
        """
        copies = tee(_lists(bursts), len(self.models))
        streams = [
            self._probabilities(number, copy, source, None if number else report, (empty, bad_rows))
            for number, copy in enumerate(copies)
        ]
        label_set = self.preprocessing.label_set
        names = np.array(label_set.values, dtype=object)
        multi_label = label_set.multi_label
        most = None if multi_label else ranks  # a multi-label row may have any of them
        for found in zip(*streams, strict=True):
            mean = torch.stack([own for _, own, _ in found]).mean(dim=0)
            decided, sure_of = self.decide(mean)
            order = self._ranked(mean, decided, most)
            columns = names[order.numpy()].tolist(), mean.gather(1, order).tolist()
            examples, _, unknown = found[0]
            of_rows = zip(examples, unknown, *columns, decided, sure_of, strict=True)
            for example, share, own, row, best, sure in of_rows:
                if example.problem is None:
                    labels = tuple(label_set.values[index] for index in best)
                    probabilities = dict(zip(own[:most], row[:most], strict=True))
                    label = label_set.join(label_set.decode(best)) if multi_label else labels[0]
                    yield Prediction(label, sure, probabilities, share, example, labels)
                else:
                    yield Prediction("", math.nan, {}, 0.0, example)

    def _ranked(self, probabilities: Tensor, decided: list[list[int]], ranks: int | None) -> Tensor:
        """Return the classes of each example, the predicted one first, then by probability."""
        if self.preprocessing.multi_label:
            return probabilities.argsort(dim=1, descending=True, stable=True)
        best = torch.tensor(decided, device="cpu")
        if ranks == 1:
            return best
        scores = probabilities.scatter_add(1, best, torch.ones_like(probabilities))
        return scores.argsort(dim=1, descending=True, stable=True)

    def threshold(self, precision: float, label: str | None = None) -> CoveragePoint:
        """Return the lowest threshold above which this share of validation predictions was right.

        Args:
            precision: Share of right predictions, in [0, 1].
            label: Count predictions of this label only, or None for all.

        Raises:
            ConfigError: If there is none, or training had no validation split.
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
                f"{best.min_probability:.4f} on); give a lower share"
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
        """Yield the predictions of one of the models, chunk by chunk.

        Yields:
            The examples; the probability of each class, (B, C) float64; the share of unknown tokens
            of each. The numbers of an example with a problem mean nothing.
        """
        model, carried = self.models[number], CarriedStates()
        rules = self._prediction_rules(number, *policy)
        for examples, store in rules.encode_chunks(bursts, source, report):
            logits = predict_logits(model.network, store, self.device, carried=carried)
            found = model.network.probabilities(check_finite(logits, store))
            yield examples, found, unknown_shares(store, rules.token_columns)

    def _prediction_rules(self, number: int, empty: str | None, bad_rows: str) -> Preprocessing:
        """Return a model's preprocessing for prediction, which remembers what it looked up."""
        fitted = self.models[number].preprocessing
        if empty is None and fitted.lengths.empty == "error":
            empty = "blank"
        key = number, empty, bad_rows
        if key not in self._rules:
            self._rules[key] = fitted.for_prediction(empty=empty, bad_rows=bad_rows)
        return self._rules[key]


def one_model(classifier: Classifier, option: str = "") -> Classifier:
    """Return the classifier if it is a single model.

    Args:
        classifier: The classifier.
        option: Option of the command that needs a single model, for the message, or "".

    Raises:
        ConfigError: If the classifier is an ensemble.
    """
    if len(classifier.models) > 1:
        raise ConfigError(f"{option}: ".lstrip(": ") + name_one(classifier.path))
    return classifier


def refuse_multi_label(classifier: Classifier) -> None:
    """Raise a ConfigError if the task is multi-label."""
    if classifier.preprocessing.multi_label:
        raise ConfigError("--steps: follows one label; a row may have several here")


def as_list(sequences: Any) -> list[Any]:
    """Return sequences from Python as a list, or raise a DataError if they are no list."""
    try:
        if not isinstance(sequences, str | bytes):
            return list(sequences)
    except TypeError:
        pass
    found = f"found one {type(sequences).__name__}"
    raise DataError(f"sequences: {found}; expected a list of sequences")


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
    """Yield examples in lists of one chunk at most. The rows before an error come first."""
    for rows, fault in chain.from_iterable(chunked(burst, CHUNK_ROWS) for burst in bursts):
        yield rows
        if fault is not None:
            raise fault
