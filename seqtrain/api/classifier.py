"""Classifiers: loaded models that predict, one by itself or several as an ensemble.

B sequences, C classes, H width of a vector.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as List
from itertools import tee
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from seqtrain.api.named_runs import RunLike, directory_of
from seqtrain.api.prediction import Prediction, Predictions, label_text
from seqtrain.api.prediction_input import memory_parts
from seqtrain.engines.devices import select_device
from seqtrain.errors import CheckpointError, ConfigError, parameter
from seqtrain.evaluation.calibration import Calibration
from seqtrain.evaluation.logits import check_finite, embed_sequences, predict_logits
from seqtrain.evaluation.thresholds import CoveragePoint, most_covered
from seqtrain.files.writing import write_folder
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.carried import CarriedStates
from seqtrain.model.network import ClassifierNetwork
from seqtrain.runs.destination import check_destination
from seqtrain.runs.model_folder import Model, load_model, model_files, pack_model, unpack_model
from seqtrain.runs.run_directory import members, model_folder, name_one
from seqtrain.sequences.decisions import best_class, reached
from seqtrain.sequences.encoder import EncodingReport, encode_for_prediction, unknown_shares
from seqtrain.sequences.examples import Sequences
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.tables.blocks import BadCellError, Float32s
from seqtrain.text import Summarized, listed, nearest, quote


class Classifier(Summarized):
    """A trained model, or an ensemble that predicts by the mean of its models' probabilities.

    A classifier can be pickled.

    Args:
        models: Models with the same labels and kind of sequences.
        device: Device that computes. The networks are moved to it.
        path: Directory from which the models were loaded.

    Attributes:
        models, device, path: The arguments of these names.
        preprocessing: Preprocessing of the first model, which says how sequences are read.
        labels: Label of each class index, as text.
        thresholds: Maps a label to the lowest probability at which it is predicted. In a
            multi-label task it has all labels, at first with the means of the models' calibrated
            thresholds. In a single-label task it has the labels that `set_threshold` added. Such a
            label is preferred to all others if it reaches its threshold. It comes last if it
            doesn't.
    """

    def __init__(self, models: List[Model], device: torch.device, path: Path) -> None:
        self.models, self.device, self.path = models, device, path
        for model in models:
            model.network.to(device)
            if model.preprocessing.pretrained is not None:
                model.preprocessing.pretrained.device = str(device)
        self.preprocessing: Preprocessing = models[0].preprocessing
        self.labels: tuple[str, ...] = self.preprocessing.labels
        calibrated = zip(*(model.thresholds for model in models), strict=True)
        self._calibrated = [fmean(each) for each in calibrated]
        self.thresholds: dict[str, float] = {}
        if self.preprocessing.multi_label:
            self.thresholds = dict(zip(self.labels, self._calibrated, strict=True))
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

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the model to a folder that `load` and all commands take, and return its path.

        Thresholds of `set_threshold` aren't saved.

        Args:
            folder: New folder.
            force: Replace a model folder at this path.

        Raises:
            ConfigError: If this is an ensemble, or the folder holds anything else.
            RunError: If the folder can't be written.
        """
        target = Path(folder)
        model = one_model(self, "save").models[0]
        check_destination(target, "model", parameter("folder"), force=force)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_folder(target, model_files(model))
        return target

    def summary(self) -> dict[str, str]:
        """Return entries of a short representation, by heading: path, model, classes and so on."""
        fitted = self.preprocessing
        members = len(self.models)
        found = {
            "path": str(self.path),
            "model": _description(self.models[0].network),
            "classes": f"{len(self.labels)}",
            "sequences": " by ".join(filter(None, (fitted.kind, fitted.sequence.tokenizer_name))),
            "device": str(self.device),
        }
        return found | ({"members": f"{members}"} if members > 1 else {})

    @property
    def network(self) -> ClassifierNetwork:
        """The network. A ConfigError is raised if the classifier is an ensemble."""
        return one_model(self).models[0].network

    @property
    def calibration(self) -> Calibration:
        """The calibration. A ConfigError is raised if the classifier is an ensemble."""
        return one_model(self).models[0].calibration

    @property
    def separator(self) -> str | None:
        """Text between the labels of one sequence, or None in a single-label task."""
        return self.preprocessing.label_set.separator

    def set_threshold(self, label: Any, probability: float) -> None:
        """Set the lowest probability at which a label is predicted, as `thresholds` describes it.

        Args:
            label: The label, as text or with its type in the training table.
            probability: The threshold, in [0, 1].

        Raises:
            ConfigError: If there is no such label, or the threshold isn't a probability.
        """
        if not 0 <= probability <= 1:
            raise ConfigError(f"threshold: found {probability!r}; expected a number from 0 to 1")
        self.thresholds[self._known_label(label)] = float(probability)

    def _known_label(self, label: Any) -> str:
        """Return a label of the model as text.

        Raises:
            ConfigError: If there is no such label.
        """
        try:
            text = label_text(label)
        except BadCellError as error:
            raise ConfigError(f"threshold: {error}") from None
        if text not in self.labels:
            near = nearest(text, self.labels)
            known = listed([quote(each) for each in self.labels])
            if near:
                hint = f"; did you mean {quote(near)}?"
            else:
                hint = f"; expected one of {known}"
            raise ConfigError(f"threshold: no label {quote(text)}{hint}")
        return text

    @property
    def decision_thresholds(self) -> list[float]:
        """Threshold of each class, (C,), for the functions of `seqtrain.sequences.decisions`.

        In a multi-label task, thresholds of `set_threshold` are included. In a single-label task,
        the list is empty unless one of two classes is rare. `decide` then applies thresholds of
        `set_threshold` itself.
        """
        if self.preprocessing.multi_label:
            return list(self.thresholds.values())
        return self._calibrated

    def decide(self, probabilities: Any) -> tuple[list[list[int]], list[float]]:
        """Return the predicted classes of each example, and the probability of each prediction.

        The calibrated thresholds and `thresholds` are applied.

        Args:
            probabilities: Probability of each class, (B, C) float64, an array or a tensor.

        Returns:
            For each example, the indices of its predicted classes: one, or any number if
            multi-label. And for each example, the probability that exactly these classes are right.
        """
        shares = np.asarray(probabilities)
        if self.preprocessing.multi_label:
            chosen = reached(shares, list(self.thresholds.values()))
            sure = np.where(chosen, shares, 1 - shares).prod(axis=1)
            return [np.flatnonzero(row).tolist() for row in chosen], sure.tolist()
        best = best_class(shares, self._calibrated)
        if self.thresholds:
            least = np.array([self.thresholds.get(label, math.nan) for label in self.labels])
            # A class at its threshold comes before all others, and one below it after all others.
            ranks = (shares >= least) * 1.0 - (shares < least)
            best = (shares + 2 * ranks).argmax(axis=1)
        return best[:, None].tolist(), shares[np.arange(len(best)), best].tolist()

    def predict(
        self, sequences: Iterable[Any], groups: Iterable[str | None] | None = None
    ) -> Predictions:
        """Return a prediction for each sequence, in the order of the sequences.

        By default, an empty sequence gets no label (see `Prediction.problem`). If ``data.empty``
        wasn't error in training, an empty sequence is read as one unknown token.

        Args:
            sequences: A list of sequences, or a table with the columns that the model was trained
                on: a DataFrame, a Dataset, a dict of lists, or a list of dicts. A sequence of kind
                text is a string, a list of sentences, or a chat. Of kind tokens it is a list of
                symbols. Of kind features it is an array with a vector for each time step, (T, F).
            groups: Name of each sequence's group, or None. A model with `initial_state: carried`
                starts each sequence from the final state of the previous sequence of its group.

        Raises:
            DataError: If a sequence is of another kind, or if the model needs a table. Also if
                `groups` isn't a string or None for each sequence.
            RunError: If memory ran out, or a prediction isn't finite.
        """
        parts, name = memory_parts(sequences, self.preprocessing, groups)
        return Predictions(self.predict_parts(parts, name), self.preprocessing.label_set.values)

    def embed(
        self, sequences: Iterable[Any], groups: Iterable[str | None] | None = None
    ) -> Float32s:
        """Return a vector for each sequence, (B, H), for search, clustering or other models.

        It is the pooled hidden state of the recurrent branch, before the last layer. The row of a
        sequence for which `predict` gives no label, such as an empty one, is NaN.

        Args:
            sequences: As for `predict`.
            groups: As for `predict`.

        Raises:
            ConfigError: If this is an ensemble.
            DataError: If `predict` raises it.
        """
        network = one_model(self, "embed").network
        carried = CarriedStates()
        vectors = [np.zeros((0, recurrent_branch(network).pooled_width), dtype=np.float32)]
        parts, name = memory_parts(sequences, self.preprocessing, groups)
        for part, store in encode_for_prediction(self._prediction_rules(0), parts, name):
            found = embed_sequences(network, store, self.device, carried).numpy()
            found[list(part.problems)] = np.nan
            vectors.append(found)
        return np.concatenate(vectors)

    def predict_parts(
        self,
        parts: Iterable[Sequences],
        source: str,
        report: EncodingReport | None = None,
        empty: str | None = None,
        bad_rows: str | None = None,
        advice: List[str] = (),
    ) -> Iterator[Prediction]:
        """Yield a prediction for each sequence, in the order of the sequences.

        Sequences are read and predicted part by part, so that memory is bounded.

        Args:
            parts: Parts of the input. Each is predicted before the next one is read.
            source: Name of the source for messages, such as the name of a file.
            report: Receives counts of the rows that were read, cut or empty, or None.
            empty: What an empty sequence gets: "error" raises an error, "unk" reads an unknown
                token, and "blank" makes no prediction. None is "blank" if the model was trained
                with ``data.empty: error``, and "unk" if not.
            bad_rows: What a row that can't be read gets: "error" raises an error, and "blank" makes
                no prediction. None is "blank" if the model was trained with
                ``data.bad_rows: drop``, and "error" if not.
            advice: Further lines of the error for a row that can't be read.

        Raises:
            DataError: If a row can't be read, or if it is empty and `empty` is "error". Predictions
                for the rows before it come first.
            RunError: If memory ran out, or a prediction isn't finite.
        """
        encoded, carried = [], [CarriedStates() for _ in self.models]
        for number, copy in enumerate(tee(parts, len(self.models))):
            counts = report if number == 0 else None
            rules = self._prediction_rules(number, empty)
            encoded.append(
                encode_for_prediction(rules, copy, source, counts, bad_rows=bad_rows, advice=advice)
            )
        label_set = self.preprocessing.label_set
        classes, multi_label = label_set.values, label_set.multi_label
        for of_models in zip(*encoded, strict=True):
            found = []
            for model, (_, store), states in zip(self.models, of_models, carried, strict=True):
                logits = predict_logits(model.network, store, self.device, carried=states)
                found.append(model.network.probabilities(check_finite(logits, store)))
            shares = torch.stack(found).mean(dim=0).numpy()
            part, store = of_models[0]
            unknown = unknown_shares(store, len(self.preprocessing.sequence.tokens))
            decided, sure = self.decide(shares)
            shares[list(part.problems)] = math.nan
            for index, own in enumerate(shares):
                example = part.example(index)
                if example.problem is not None:
                    yield Prediction("", math.nan, (), classes, own, 0.0, example, multi_label)
                    continue
                best = decided[index]
                labels = tuple(classes[number] for number in best)
                if multi_label:
                    label = label_set.join(label_set.decode(best))
                else:
                    label = labels[0]
                yield Prediction(
                    label, sure[index], labels, classes, own, unknown[index], example, multi_label
                )

    def threshold(self, precision: float, label: str | None = None) -> CoveragePoint:
        """Return a threshold such that predictions from it on reach a precision.

        The model stores about a hundred thresholds, and twenty per label. Of those that reach the
        precision on validation, the one with the most predictions is returned.

        Args:
            precision: Share of the predictions that must be right, in [0, 1].
            label: Label whose predictions are counted, or None to count all predictions.

        Returns:
            The threshold, and the share and accuracy of the predictions that reach it. If `label`
            is set, these are recall and precision of the label.

        Raises:
            ConfigError: If there is no such label, or no stored threshold reaches the precision.
                Also if the classifier is an ensemble, or if it is multi-label and `label` is None.
        """
        points = self.calibration.coverage
        if label is not None:
            of_class = dict(zip(self.labels, self.calibration.classes, strict=False))
            points = of_class.get(self._known_label(label), [])
        elif self.preprocessing.multi_label:
            raise ConfigError("threshold: a row may have several labels here; name one of them")
        if not points:
            raise ConfigError(
                f"threshold: {self.path} knows none (it had no validation split, or "
                "training.calibration was none); choose a probability yourself"
            )
        found = most_covered(points, precision)
        if found is None:
            best = max(points, key=lambda point: point.accuracy)
            raise ConfigError(
                f"threshold: none reaches {precision:.2%} on validation; at best "
                f"{best.accuracy:.2%} of the predictions are right (from probability "
                f"{best.min_probability:.4f} on); give a lower share"
            )
        return found

    def _prediction_rules(self, number: int, empty: Any = None) -> Preprocessing:
        """Return the preprocessing of a model with rules for prediction.

        Equal arguments return the same object, because it caches the tokens that it looked up.

        Args:
            number: Index of the model in `models`.
            empty: As for `predict_parts`.
        """
        fitted = self.models[number].preprocessing
        if empty is None and fitted.lengths.empty == "error":
            empty = "blank"
        key = number, empty
        if key not in self._rules:
            self._rules[key] = fitted.for_prediction(empty=empty)
        return self._rules[key]


def load(run: RunLike = None, *, device: str = "auto") -> Classifier:
    """Load the classifier of a run, or of an ensemble.

    Processes that are forked after this call compute with one thread of torch.

    Args:
        run: A run directory, a model folder, what `fit` returned, or None for the newest run. A
            classifier is returned unchanged, on its device.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError: If there is no run, or no complete model. Also if the models of an ensemble
            differ in their labels or kind of sequences.
        ConfigError: If there is no such device.
    """
    if isinstance(run, Classifier):
        return run
    chosen = select_device(device)
    path = directory_of(run).path
    models = {at.name: load_model(model_folder(at)) for at in members(path) or [path]}
    check_alike({name: model.preprocessing for name, model in models.items()}, path)
    return Classifier(list(models.values()), chosen, path)


def check_alike(fitted: Mapping[str, Preprocessing], path: Path) -> None:
    """Check that models can predict together: they need the same labels and kind of sequences.

    Args:
        fitted: Maps the name of each model to its preprocessing. There is at least one.
        path: Directory of the models, for messages.

    Raises:
        CheckpointError: If models differ in the labels or their order, in the kind of sequences, or
            in whether an example may have several labels.
    """
    tasks = {name: (x.labels, x.kind, x.multi_label) for name, x in fitted.items()}
    first, task = next(iter(tasks.items()))
    for name, other in tasks.items():
        if other != task:
            raise CheckpointError(
                f"{path}: {name} has other labels than {first}, so they can't predict together; "
                "name one of them"
            )


def one_model(classifier: Classifier, option: str = "") -> Classifier:
    """Return the classifier after checking that it is a single model.

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
    """Raise a ConfigError if the task is multi-label. The message is about the option --steps."""
    if classifier.preprocessing.multi_label:
        raise ConfigError(f"{parameter('steps')}: follows one label; a row may have several here")


def _description(network: ClassifierNetwork) -> str:
    """Return a description of a model for people, such as "gru of 128, pooling last, ngrams"."""
    config = network.config
    if isinstance(config.pooling, str):
        pooling = [config.pooling]
    else:
        pooling = config.pooling
    more = [name for name in ("subwords", "convolutions") if getattr(config, name)]
    more += network.solved_branches
    layers = f"{config.num_layers} × " if config.num_layers > 1 else ""
    rnn = f"{config.rnn} of {layers}{config.hidden_size}" + " both ways" * config.bidirectional
    return ", ".join([rnn, f"pooling {' + '.join(pooling)}", *more])
