"""A classifier of sequences for scikit-learn: cross_val_score, GridSearchCV, Pipeline, pickle.

SequenceClassifier(hidden_size=64).fit(texts, labels).predict(["some text"])
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    validate_data,
)

from seqtrain.api.classifier import Classifier
from seqtrain.api.estimator_input import (
    LAYOUTS,
    NUMERIC,
    InputError,
    are_lists,
    given_labels,
    kind_of_sequences,
    renamed,
    sequences_of,
    weights_by_index,
    with_labels,
    without_mask,
    without_padding,
)
from seqtrain.api.fit import fit
from seqtrain.api.prediction import Predictions
from seqtrain.api.run_events import Event
from seqtrain.config.schema import Config
from seqtrain.engines.devices import select_device
from seqtrain.errors import ConfigError, DataError, Interrupted, SeqtrainError
from seqtrain.runs.model_folder import Model, load_model, pack_model, unpack_model
from seqtrain.tables.blocks import Array
from seqtrain.tables.memory import columns_of
from seqtrain.text import nearest
from seqtrain.training.events import EpochEvent

RUN_NAME = "run"
"""Name of the run in a temporary folder."""
KEYS_OF_PARAMETERS = {
    **{name: f"model.{name}" for name in ("rnn", "embedding_dim", "hidden_size", "dropout")},
    **{name: f"training.{name}" for name in ("lr", "max_epochs", "device")},
    "class_weight": "training.class_weights",
    "validation_fraction": "data.validation",
}
"""Maps each parameter that sets a key of the config under another name to this key."""
CONTINUING = ("warm_start", "partial_fit")
"""Names under which scikit-learn trains an estimator further."""
CONTINUE = "; train further with seqtrain.fit(config, train=…, init_from=estimator.classifier_)"
"""The way to train a model further. New rows may have words that its vocabulary lacks, so the state
of its optimizer can't be continued."""
FILES = {"data.train", "data.test"}
"""Keys of the config that name files, which an estimator doesn't read."""
X_COLUMN, Y_COLUMN = "sequence", "label"
"""Names of the columns of the table that an estimator trains on."""


class SequenceClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # has no types
    """Classifier of sequences of unequal length, as a scikit-learn estimator.

    X is one of:

    - a list (or an array of objects) of texts, of lists of symbols, or of arrays (T, C),
    - an array (B, 1) of texts,
    - an array (B, T) of series with one channel; NaN at the end of a series is padding,
    - an array (B, T, C) of series; trailing steps that are NaN in all channels are padding,
    - a table as `seqtrain.fit` takes it, whose column `sequence` has the sequences.

    A fitted estimator is pickled as the files of its model folder.

    Args:
        sequence: Column of the sequence if X is a table, or None for its only column.
        layout: Order of the axes of a series: time_channels (T, C), or channels_time (C, T) as in
            aeon and sktime.
        rnn, embedding_dim, hidden_size, dropout: As in the section `model` of a config.
        lr, max_epochs: As in the section `training` of a config.
        class_weight: None, "balanced", or a dict that maps labels to weights.
        validation_fraction: Share of the examples that choose the best epoch, or None to use all
            examples for training. `fit` takes other examples as `validation_data`.
        settings: Values of other keys of the config, such as {"training.patience": 5}.
        random_state: Seed of weights, batches and the held-out share.
        device: auto, cpu, cuda, cuda:N or mps.
        verbose: True to show the epochs on stderr, or in a notebook as a table.
        keys: Other keys of the config as parameters: `model__num_layers`, `training__patience`.

    Attributes:
        classes_: The labels, sorted; in a multi-label task with 0s and 1s, the column numbers of y.
        classifier_: The trained `seqtrain.Classifier`, which `evaluate`, `check`, `export` and
            `fit(init_from=…)` take, and which has `save(folder)`. Its labels are those of y. They
            are indices of `classes_` if y has labels that a file can't hold, such as blank ones.
        thresholds_: Lowest probability at which each of `classes_` is predicted, (C,), or None if
            the most probable class is. A task with a rare class or several labels has thresholds.
        history_: A dict for each epoch of training: epoch, train_loss, train_accuracy, and with
            validation examples validation_loss and the like. Epochs of pretraining and of a refit
            aren't included.
        n_features_in_: Number of columns, if X was an array (B, T) or a DataFrame.
        feature_names_in_: Names of the columns, if X was a DataFrame.
    """

    def __init__(
        self,
        *,
        sequence: str | None = None,
        layout: str = "time_channels",
        rnn: str = "gru",
        embedding_dim: int | None = 128,
        hidden_size: int = 128,
        dropout: float = 0.5,
        lr: float = 0.004,
        max_epochs: int | str = "auto",
        class_weight: Mapping[Any, float] | str | None = None,
        validation_fraction: float | None = None,
        settings: dict[str, Any] | None = None,
        random_state: Any = 0,
        device: str = "auto",
        verbose: bool = False,
        **keys: Any,
    ) -> None:
        self.sequence = sequence
        self.layout = layout
        self.rnn = rnn
        self.embedding_dim = embedding_dim
        self.hidden_size = hidden_size
        self.dropout = dropout
        self.lr = lr
        self.max_epochs = max_epochs
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.settings = settings
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        if not all(map(_is_key, keys)):
            raise TypeError(self._unknown([name for name in keys if not _is_key(name)]))
        for name, value in keys.items():
            setattr(self, name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, also those such as `model__num_layers`."""
        keys = {name: value for name, value in vars(self).items() if _is_key(name)}
        params: dict[str, Any] = super().get_params(deep=deep)
        return params | keys

    def set_params(self, **params: Any) -> SequenceClassifier:
        """Set parameters, also those such as `model__num_layers`, and return the estimator.

        Raises:
            ValueError: If there is no parameter of a name. The error lists all such names.
        """
        known = set(self._get_param_names())
        unknown = [name for name in params if name not in known and not _is_key(name)]
        if unknown:
            raise ValueError(self._unknown(unknown))
        for name in filter(_is_key, params):
            setattr(self, name, params[name])
        super().set_params(**{name: x for name, x in params.items() if not _is_key(name)})
        return self

    def _unknown(self, names: list[str]) -> str:
        """Return a message about parameters that don't exist, with similar ones that do."""
        known = [*self._get_param_names(), *_nested_names()]
        found = []
        for name in names:
            near = nearest(name, known)
            similar = f" (did you mean {near}?)" if near else ""
            found.append(f"{name!r}{CONTINUE if name in CONTINUING else similar}")
        return f"SequenceClassifier has no parameter {', '.join(found)}"

    def __getattr__(self, name: str) -> Any:
        if name in CONTINUING:
            raise AttributeError(f"SequenceClassifier has no {name}{CONTINUE}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        validation_data: tuple[Any, Any] | None = None,
    ) -> SequenceClassifier:
        """Train on sequences and their labels, and return the estimator.

        Args:
            X: Sequences; see the class.
            y: Labels, (B,); in a multi-label task 0s and 1s, (B, C), or a list of lists of labels.
            sample_weight: Weight of each example in the loss, (B,), or None.
            validation_data: Other sequences and labels that choose the best epoch, or None. A label
                that y lacks counts as unknown.

        Raises:
            InputError: If X, y or a parameter is wrong, or training failed.
            ValueError: If X or y fails a check of scikit-learn.
            Interrupted: If a signal stopped training.
        """
        y = given_labels(y)
        self._binarizer = None
        if are_lists(y):
            self._binarizer = MultiLabelBinarizer()
            y = self._binarizer.fit_transform(y)
        sequences = self._sequences(X, y, reset=True)
        y = self._checked_labels(y, sequences)
        rows: dict[str, Any] = {"train": {X_COLUMN: sequences, Y_COLUMN: self._encoded(y)}}
        if validation_data is not None:
            others, labels = validation_data[0], given_labels(validation_data[1])
            if self._binarizer is not None:
                labels = self._binarizer.transform(labels)
            others = self._sequences(others, reset=False)
            check_consistent_length(others, labels)
            rows["validation"] = {
                X_COLUMN: others,
                Y_COLUMN: self._encoded(np.asarray(labels)),
            }
        weights = None
        if sample_weight is not None:
            given = without_mask(sample_weight)  # a masked weight is refused as NaN
            weights = _check_sample_weight(given, sequences, ensure_non_negative=True)
        self.history_: list[dict[str, float]] = []
        with TemporaryDirectory() as folder:
            try:
                fit(
                    self._config(sequences),
                    **rows,
                    sample_weight=weights,
                    run_dir=Path(folder, RUN_NAME),
                    progress=self.verbose,
                    listener=self._note_epoch,
                )
                model = load_model(Path(folder, RUN_NAME, "best"))
            except SeqtrainError as error:
                raise InputError(*renamed(error, self._parameters())) from None
            except Interrupted as stop:
                raise Interrupted(
                    stop.signal_number, "fit was stopped; the estimator isn't trained"
                ) from None
        self._columns = [int(label) for label in model.preprocessing.labels]
        self.classifier_ = self._classifier(with_labels(model, self.classes_.tolist()))
        return self

    def predict(self, X: Any) -> Any:
        """Return the label of each sequence, (B,).

        It is the most probable label, unless the task has `thresholds_`: with two classes of which
        one is rare, the rare one is predicted from its threshold on.

        In a multi-label task return 0s and 1s, (B, C), or a list of lists of labels, as y was.

        Raises:
            InputError: If X is wrong, or memory ran out.
            ValueError: If X fails a check of scikit-learn, or the estimator isn't fitted.
        """
        found = self._predictions(X)
        values = self.classifier_.preprocessing.label_set.values
        column = dict(zip(values, self._columns, strict=True))
        if not self._multi_label:
            return self.classes_[[column[each.label] for each in found]]
        has = np.zeros((len(found), len(self.classes_)), dtype=int)
        for row, each in zip(has, found, strict=True):
            row[[column[label] for label in each.labels]] = 1
        if self._binarizer is None:
            return has
        return [self.classes_[row > 0].tolist() for row in has]

    @property
    def thresholds_(self) -> Array | None:
        """Threshold of each of `classes_`, (C,), or None. NaN for a class that train lacked."""
        check_is_fitted(self)
        least = self.classifier_.decision_thresholds
        if not least:
            return None
        thresholds = np.full(len(self.classes_), np.nan)
        thresholds[self._columns] = least
        return thresholds

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each of `classes_` for each sequence, (B, C).

        It is 0 for a class whose sequences were all empty and dropped (``data.empty: drop``).
        Errors are raised as by `predict`.
        """
        found = self._predictions(X)
        probabilities = np.zeros((len(found), len(self.classes_)))
        probabilities[:, self._columns] = found.probabilities
        return probabilities

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy. If multi-label, all labels of an example must be right."""
        predicted = self.predict(X)
        y = given_labels(y)
        if self._binarizer is not None:
            binarizer = MultiLabelBinarizer().fit([*y, *predicted])
            y = binarizer.transform(y)
            predicted = binarizer.transform(predicted)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _checked_labels(self, y: Any, sequences: list[Any]) -> Array:
        """Return y as an array after checking it. Set `classes_`.

        Raises:
            InputError: If a label is None, or if there is only one class, or texts among numbers.
            ValueError: If y fails a check of scikit-learn.
        """
        given = list(np.asarray(y, dtype=object).flat)
        if any(label is None for label in given):
            raise InputError("y: found None; expected a label for each sequence")
        are_objects = getattr(getattr(y, "dtype", None), "kind", "") == "O"
        if are_objects and len({isinstance(label, str) for label in given}) > 1:
            types = ", ".join(sorted({type(label).__name__ for label in given}))
            raise InputError(f"y: found labels of the types {types}; expected one type")
        self._multi_label = type_of_target(y) == "multilabel-indicator"
        if self._multi_label:
            y = check_array(y, accept_sparse=False)
        else:
            y = column_or_1d(y, warn=True)
        check_consistent_length(sequences, y)
        check_classification_targets(y)
        if self._binarizer is not None:
            self.classes_ = self._binarizer.classes_
        else:
            if self._multi_label:
                self.classes_ = np.arange(y.shape[1])
            else:
                self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            found = self.classes_.tolist()[0]
            raise InputError(f"y: found one class, {found!r}; expected at least two")
        labels: Array = y
        return labels

    def _encoded(self, y: Array) -> list[Any]:
        """Return the index in `classes_` of each label, or "unknown" for a label that it lacks.

        In a multi-label task, return a list of the indices of each example's labels.
        """
        if self._multi_label:
            return [np.flatnonzero(row).tolist() for row in y]
        index = {label: number for number, label in enumerate(self.classes_.tolist())}
        return [index.get(label, "unknown") for label in y.tolist()]

    def _note_epoch(self, event: Event) -> None:
        """Add an epoch of training to `history_`."""
        if isinstance(event, EpochEvent) and event.phase == "training":
            row = {"epoch": event.epoch, "train_loss": event.loss}
            row["train_accuracy"] = event.accuracy
            if event.validation:
                scores = event.validation.metric_values()
            else:
                scores = {}
            row |= {f"validation_{name}": value for name, value in scores.items()}
            self.history_.append(row)

    def _predictions(self, X: Any) -> Predictions:
        check_is_fitted(self)
        sequences = self._sequences(X, reset=False)
        try:
            found = self.classifier_.predict(sequences)
        except SeqtrainError as error:
            raise InputError(*renamed(error, {})) from None
        for row, each in enumerate(found, start=1):
            if each.problem is not None:
                raise InputError(f"X: row {row}: {each.problem}")
        return found

    def _parameters(self) -> dict[str, str]:
        """Map each key of the config that a parameter sets to the name of the parameter."""
        found = {key: name for name, key in KEYS_OF_PARAMETERS.items()}
        nested = filter(_is_key, self.get_params(deep=False))
        return found | {name.replace("__", "."): name for name in nested}

    def _config(self, sequences: list[Any]) -> dict[str, Any]:
        """Return the config for training: a dict of sections, each a dict of keys and values.

        It also has the "seed".

        Raises:
            ConfigError: If `settings` isn't a dict, or one of its keys has no section.
            InputError: If `class_weight` names an unknown label.
        """
        values: dict[str, Any] = {
            "data.sequence": X_COLUMN,
            "data.label": Y_COLUMN,
            "data.empty": "unk",
            "data.kind": kind_of_sequences(sequences),
            "data.label_separator": "," if self._multi_label else None,
        }
        values |= {key: getattr(self, name) for name, key in KEYS_OF_PARAMETERS.items()}
        nested = self.get_params(deep=False)
        values |= {name.replace("__", "."): x for name, x in nested.items() if _is_key(name)}
        settings = self.settings or {}
        if not isinstance(settings, Mapping):
            found = type(settings).__name__
            raise ConfigError(
                f"settings: found {found}; expected a dict such as {{'training.patience': 5}}"
            )
        values |= settings
        for name in FILES.intersection(values):
            raise ConfigError(f"{name}: an estimator learns the rows that fit takes; leave it out")
        seed = int(check_random_state(self.random_state).randint(2**31))
        sections: dict[str, Any] = {"seed": seed}
        for name, value in values.items():
            section, _, key = name.partition(".")
            if not key:
                raise ConfigError(f"settings: found {name!r}; expected names as training.patience")
            sections.setdefault(section, {})[key] = value
        weights = sections["training"]["class_weights"]
        if isinstance(weights, Mapping):
            sections["training"]["class_weights"] = weights_by_index(
                weights, self.classes_.tolist()
            )
        return sections

    def _classifier(self, model: Model) -> Classifier:
        return Classifier([model], select_device(self.device), Path("SequenceClassifier"))

    def _sequences(self, X: Any, *y: Any, reset: bool) -> list[Any]:
        """Return X as a list of sequences.

        If X is an array of numbers, scikit-learn checks it, together with y. If `reset` is True,
        the number and the names of its columns are stored. If False, they must equal the stored
        ones.

        Raises:
            InputError: If X or `layout` is wrong, if X has no sequence, or if y is None.
            ValueError: If X fails a check of scikit-learn.
        """
        if self.layout not in LAYOUTS:
            raise InputError(f"layout: found {self.layout!r}; expected {' or '.join(LAYOUTS)}")
        if y and y[0] is None:
            raise InputError("SequenceClassifier requires y to be passed, but the target y is None")
        if hasattr(X, "__array__") and not hasattr(X, "shape"):
            X = np.asarray(X)
        kind = getattr(self, "data__kind", None)
        X = without_mask(X, kind)
        is_table = columns_of(X) is not None and (self.sequence is not None or not _is_numeric(X))
        if is_table and hasattr(X, "shape"):
            validate_data(self, X, reset=reset, skip_check_array=True)
        if not is_table and (len(getattr(X, "shape", ())) == 2 or hasattr(X, "toarray")):
            array = np.asarray(X) if hasattr(X, "__array__") else X
            if not (array.shape[1] == 1 and array.dtype.kind in "OUT"):  # sparse ones are refused
                return self._rows_of_numbers(array, *y, reset=reset, kind=kind)
        try:
            sequences = sequences_of(X, self.sequence, self.layout, kind if reset else "known")
        except DataError as error:
            raise InputError(*renamed(error, {})) from None
        if not sequences:
            raise InputError("X: found no sequences (0 samples)")
        return sequences

    def _rows_of_numbers(self, X: Any, *y: Any, reset: bool, kind: str | None) -> list[Any]:
        """Return the rows of an array of numbers, (B, T), without the NaN at their ends.

        The rows are float64, or whole numbers if they are tokens. `y` and `reset` are as for
        `_sequences`.

        Raises:
            InputError: If X holds texts.
            ValueError: If X fails another check of scikit-learn.
        """
        are_tokens = kind == "tokens" and X.dtype.kind in "iu"
        dtype = X.dtype if are_tokens else np.float64
        options = {"reset": reset, "dtype": dtype, "ensure_all_finite": "allow-nan"}
        if y:
            options["multi_output"] = True
        try:
            checked = validate_data(self, X, *y, **options)
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise InputError("X: found a table of texts; give one column of it") from None
        rows = checked[0] if y else checked
        if are_tokens:
            return list(rows)
        return [without_padding(row) for row in rows]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        trained = state.get("classifier_")
        if trained is not None:
            state = {**state, "classifier_": pack_model(trained.models[0])}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled estimator, with its model if it was fitted.

        Raises:
            CheckpointError: If the stored model is damaged.
        """
        super().__setstate__(state)
        files = state.get("classifier_")
        if files is not None:
            self.classifier_ = self._classifier(unpack_model(files))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.string = True
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags


@cache
def _nested_names() -> tuple[str, ...]:
    """Return the names of the parameters that are named as keys of the config."""
    sections = {name: field.annotation for name, field in Config.model_fields.items()}
    return tuple(
        f"{section}__{key}"
        for section, kind in sections.items()
        for key in getattr(kind, "model_fields", ())
    )


def _is_numeric(X: Any) -> bool:
    """Return True for an array or a data frame of numbers."""
    array = np.asarray(X) if hasattr(X, "__array__") else X
    return getattr(getattr(array, "dtype", None), "kind", "O") in NUMERIC


def _is_key(name: str) -> bool:
    """Return True for a parameter that is named as a key of the config: section__key."""
    return name in _nested_names()
