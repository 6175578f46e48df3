"""A classifier of sequences for scikit-learn: cross_val_score, GridSearchCV, Pipeline, pickle.

    SequenceClassifier(hidden_size=64).fit(texts, labels).predict(["some text"])

Needs the package scikit-learn: pip install 'seqtrain[sklearn]'.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.api.fit import fit
from seqtrain.api.predictors import Classifier, Prediction, as_list
from seqtrain.data.read_options import Schema
from seqtrain.data.readers import TableSource
from seqtrain.data.readers.sequences import plain
from seqtrain.data.readers.table_source import columns_of
from seqtrain.data.sources import with_given_data
from seqtrain.errors import CheckpointError, ConfigError, DataError, SeqtrainError
from seqtrain.evaluation.devices import select_device
from seqtrain.files.writing import blocks_of, write_folder
from seqtrain.runs.model_folder import FILES as MODEL_FILES
from seqtrain.runs.model_folder import Model, load_model, model_files
from seqtrain.text import quote

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.preprocessing import MultiLabelBinarizer
    from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data
except ImportError as error:
    raise ConfigError(
        f"seqtrain.sklearn needs scikit-learn 1.6 or newer ({error}); "
        "install it with: pip install 'seqtrain[sklearn]'"
    ) from None

Array = npt.NDArray[Any]
RUN = "run"
KEYS = {
    **{name: f"model.{name}" for name in ("rnn", "embedding_dim", "hidden_size", "dropout")},
    **{name: f"training.{name}" for name in ("lr", "max_epochs", "device")},
}
"""Keys of the config that are parameters of their own."""
IN_MEMORY = re.compile(r"^(train|sequences):(?=[0-9])|^sequences: |^(?=sequence )")
"""Begins a message about sequences in memory, which are X here."""


class InputError(DataError, ValueError):
    """X, y or a parameter is wrong; a ValueError too, as scikit-learn's tools expect."""


class SequenceClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # has no types
    """Classifier of sequences of unequal length, as a scikit-learn estimator.

    X is a list of texts, of lists of symbols, or of arrays (T, F) of feature vectors; an array
    (B, T) holds series of one channel, with NaN behind shorter ones, (B, T, F) of several; or a
    table, as `seqtrain.fit` takes it, of which `sequence` names a column (without it, one of
    numbers is an array). A fitted one is pickled as the files of its model folder.

    Args:
        sequence: column of the sequence where X is a table; None: the only one.
        rnn, embedding_dim, hidden_size, dropout: as in the config's section model.
        lr, max_epochs: as in its section training.
        settings: any other keys of the config, as {"data.validation": 0.1, "model.num_layers": 2}.
        random_state: seed of weights, batches and the held-out share.
        device: auto, cpu, cuda, cuda:N or mps.

    Attributes:
        classes_: the labels, sorted; the columns of y, where it holds 0s and 1s for several labels.
        classifier_: the trained `seqtrain.Classifier`, whose labels are indices of classes_.
        n_features_in_: T, where X was an array (B, T).
    """

    def __init__(
        self,
        *,
        sequence: str | None = None,
        rnn: str = "gru",
        embedding_dim: int | None = 128,
        hidden_size: int = 128,
        dropout: float = 0.5,
        lr: float = 0.004,
        max_epochs: int | str = "auto",
        settings: dict[str, Any] | None = None,
        random_state: Any = 0,
        device: str = "auto",
    ) -> None:
        self.sequence = sequence
        self.rnn = rnn
        self.embedding_dim = embedding_dim
        self.hidden_size = hidden_size
        self.dropout = dropout
        self.lr = lr
        self.max_epochs = max_epochs
        self.settings = settings
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any) -> SequenceClassifier:
        """Train on sequences and their labels; an InputError says what is wrong with them."""
        binarizer = MultiLabelBinarizer() if _are_lists(y) else None
        y = y if binarizer is None else binarizer.fit_transform(y)
        sequences = self._sequences(X, y, reset=True)
        self._listed = binarizer is not None
        self._multi_label = type_of_target(y) == "multilabel-indicator"
        y = check_array(y, accept_sparse=False) if self._multi_label else column_or_1d(y, warn=True)
        check_consistent_length(sequences, y)
        if any(label is None for label in y.flat):
            raise InputError("y: found None; expected a label for each sequence")
        check_classification_targets(y)
        self.classes_, indices = np.unique(y, return_inverse=True)
        labels: list[Any] = indices.tolist()
        if self._multi_label:
            self.classes_ = np.arange(y.shape[1]) if binarizer is None else binarizer.classes_
            labels = [np.flatnonzero(row).tolist() for row in y]
        if len(self.classes_) < 2:
            raise InputError(
                f"y: found one class, {self.classes_.tolist()[0]!r}; expected at least two"
            )
        rows = {"s": sequences, "l": labels}
        with TemporaryDirectory() as folder:
            try:
                config, _held = with_given_data(self._config(sequences), {"train": rows})
                fit(config, run_dir=Path(folder, RUN), cache=False)
                model = load_model(Path(folder, RUN, "best"))
            except SeqtrainError as error:
                raise InputError(*_renamed(error)) from None
        self.classifier_ = self._classifier(model)
        return self

    def predict(self, X: Any) -> Any:
        """Return the label of each sequence, (B,); or 0s and 1s, (B, C), or lists, as y was."""
        found = self._predictions(X)
        if not self._multi_label:
            return np.array([self.classes_[int(each.label)] for each in found])
        indices = [sorted(map(int, each.labels)) for each in found]
        if self._listed:
            return [self.classes_[each].tolist() for each in indices]
        classes = np.arange(len(self.classes_))
        return np.array([np.isin(classes, each) for each in indices]).astype(int)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each of classes_ for each sequence, (B, C)."""
        found = self._predictions(X)
        names = [str(index) for index in range(len(self.classes_))]
        return np.array([[each.probabilities.get(name, 0.0) for name in names] for each in found])

    def _predictions(self, X: Any) -> list[Prediction]:
        check_is_fitted(self)
        sequences = self._sequences(X, reset=False)
        try:
            return self.classifier_.predict(sequences)
        except SeqtrainError as error:
            raise InputError(*_renamed(error)) from None

    def _config(self, sequences: list[Any]) -> dict[str, Any]:
        seed = int(check_random_state(self.random_state).randint(2**31))
        sections: dict[str, Any] = {"seed": seed}
        keys = {"data.sequence": "s", "data.label": "l", "data.empty": "unk"}
        keys["data.kind"] = _kind(sequences)
        if self._multi_label:
            keys["data.label_separator"] = ","
        keys |= {key: getattr(self, name) for name, key in KEYS.items()}
        for name, value in {**keys, **(self.settings or {})}.items():
            section, _, key = name.partition(".")
            if not key:
                raise ConfigError(f"settings: found {name!r}; expected names as training.patience")
            sections.setdefault(section, {})[key] = value
        weights = sections["training"].get("class_weights")
        if isinstance(weights, Mapping):
            given = {str(label): weight for label, weight in weights.items()}
            names = [*map(str, self.classes_.tolist())]
            if given.keys() != {*names}:
                found = f"found {', '.join(given)}; expected the labels {', '.join(names)}"
                raise InputError(f"training.class_weights: {found}")
            indices = {str(index): given[name] for index, name in enumerate(names)}
            sections["training"]["class_weights"] = indices
        return sections

    def _classifier(self, model: Model) -> Classifier:
        return Classifier([model], select_device(self.device), Path("SequenceClassifier"))

    def _sequences(self, X: Any, *y: Any, reset: bool) -> list[Any]:
        """Return X as a list of sequences; of a table, its column of them."""
        if y and y[0] is None:
            raise InputError("SequenceClassifier requires y to be passed, but the target y is None")
        array = np.asarray(X) if hasattr(X, "__array__") else X
        is_numeric = getattr(getattr(array, "dtype", None), "kind", "O") in "biuf"
        names = None if is_numeric and self.sequence is None else columns_of(X)
        is_sparse = hasattr(array, "toarray")  # and refused
        if names is None and (is_sparse or getattr(array, "ndim", 1) == 2):
            try:
                given = {"reset": reset, "dtype": np.float64, "ensure_all_finite": "allow-nan"}
                given |= {"multi_output": True} if y else {}
                checked = validate_data(self, X, *y, **given)
            except ValueError as error:
                if "could not convert string" not in str(error):
                    raise
                raise InputError("X: found a table of texts; give one column of it") from None
            rows = checked[0] if y else checked
            array = [row[: 1 + max(np.flatnonzero(~np.isnan(row)), default=-1)] for row in rows]
        try:
            array = array if names is None else self._column_of(X, [*map(str, names)])
            sequences = [_checked(sequence) for sequence in as_list(array)]
        except DataError as error:
            raise InputError(*_renamed(error)) from None
        if not sequences:
            raise InputError("X: found no sequences (0 samples)")
        return sequences

    def _column_of(self, X: Any, names: list[str]) -> list[Any]:
        if self.sequence not in names and len(names) != 1:
            found = quote(", ".join(names))
            raise InputError(f"X: found the columns {found}; name the sequence's: sequence='NAME'")
        name = self.sequence or names[0]
        return list(TableSource(X, Schema(sequence=name), "X").values[name])

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        trained = state.get("classifier_")
        if trained is not None:
            saved = model_files(trained.models[0])
            files = {name: b"".join(blocks_of(x)) for name, x in saved.items()}
            state = {**state, "classifier_": files}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read the model folder; refuse anything but its files, for a pickle may hold any."""
        super().__setstate__(state)
        files = state.get("classifier_")
        if files is not None:
            whole = isinstance(files, dict) and all(isinstance(f, bytes) for f in files.values())
            if not whole or not files.keys() <= MODEL_FILES:
                raise CheckpointError("classifier_: expected the files of a model folder")
            with TemporaryDirectory() as folder:
                write_folder(Path(folder, "best"), files)
                self.classifier_ = self._classifier(load_model(Path(folder, "best")))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.string = True
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags


def _renamed(error: SeqtrainError) -> list[str]:
    """Name X, and its row, where the data in memory is named."""
    return [
        IN_MEMORY.sub(lambda found: "X: row " if found[0].endswith(":") else "X: ", line)
        for line in error.problems
    ]


def _checked(sequence: Any) -> Any:
    """Return a sequence; refuse what can't be one. A missing one is empty."""
    if not isinstance(sequence, str | Sequence | np.ndarray) and plain(sequence) is not None:
        raise InputError(
            f"X: found {type(sequence).__name__}; expected texts, lists of symbols or arrays. "
            "Reshape your data"
        )
    return plain(sequence) if isinstance(sequence, str) else sequence


def _are_lists(y: Any) -> bool:
    """Whether each row has a list of labels, which are no 0s and 1s."""
    is_list = isinstance(y, list | tuple)
    if not is_list or not all(isinstance(each, list | tuple | set) for each in y):
        return False
    return len({*map(len, y)}) > 1 or any(isinstance(label, str) for each in y for label in each)


def _kind(sequences: list[Any]) -> str:
    """Return text, tokens or features, by what the first sequence that isn't empty holds."""
    first = next((each for each in sequences if hasattr(each, "__len__") and len(each)), "")
    if isinstance(first, str):
        return "text"
    return "tokens" if isinstance(first[0], str) else "features"
