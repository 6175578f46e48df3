"""Forms of X and y that the estimator takes, and forms that it refuses in a line."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV

import seqtrain
from seqtrain.errors import ConfigError, SeqtrainWarning
from seqtrain.sklearn import SequenceClassifier

SMALL = {"embedding_dim": 4, "hidden_size": 4, "max_epochs": 2, "dropout": 0.0, "lr": 0.03}
DRAW = np.random.default_rng(0)
Y = ["up", "down"] * 20
IDS = [DRAW.integers(0, 4, 6) + 4 * (label == "up") for label in Y]
SERIES = [DRAW.normal(label == "up", 0.1, (4 + row % 3, 2)) for row, label in enumerate(Y)]
WORDS = [[f"w{number}" for number in row] for row in IDS]


def predicted(X, y=Y, **parameters):
    return SequenceClassifier(**SMALL, **parameters).fit(X, y).predict(X[:4])


def test_tensors_are_arrays():
    tensors = [torch.tensor(each, requires_grad=True) for each in SERIES]
    assert predicted(tensors).tolist() == predicted(SERIES).tolist()


@pytest.mark.parametrize(
    "form", [np.array, torch.tensor, list, lambda rows: [torch.tensor(row) for row in rows]]
)
def test_whole_numbers_are_tokens_if_the_kind_says_so(form):
    found = predicted(form(np.array(IDS)), data__kind="tokens")
    assert found.tolist() == predicted([[*map(str, row)] for row in IDS]).tolist()


def test_columns_of_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"s": WORDS, "l": Y})
    expected = predicted(WORDS).tolist()
    assert predicted(frame["s"], frame["l"]).tolist() == expected
    assert predicted(frame.select("s"), frame["l"], sequence="s").tolist() == expected


def test_frames_of_other_libraries_than_pandas_are_arrays_of_numbers():
    polars, arrow = (pytest.importorskip(name) for name in ("polars", "pyarrow"))
    numbers, columns = np.array(IDS), [f"c{number}" for number in range(6)]
    expected = predicted(numbers, data__kind="tokens").tolist()
    for frame in (polars.DataFrame(numbers), arrow.table([*numbers.T], names=columns)):
        assert predicted(frame, data__kind="tokens").tolist() == expected


def test_categories_of_polars_are_texts():
    polars = pytest.importorskip("polars")
    texts, labels = polars.Series([" ".join(row) for row in WORDS]), polars.Series(Y)
    found = predicted(texts.cast(polars.Categorical), labels.cast(polars.Categorical))
    assert found.tolist() == predicted(list(texts)).tolist()


@pytest.mark.parametrize("dtype", ["Float64", "float64[pyarrow]", "Int64"])
def test_a_frame_of_nullable_numbers_is_an_array(dtype):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    kind = {"data__kind": "tokens"} if dtype == "Int64" else {}
    array = np.array(IDS) if kind else DRAW.normal(size=(40, 6))
    frame = pandas.DataFrame(array).astype(dtype)
    assert predicted(frame, **kind).tolist() == predicted(array, **kind).tolist()
    if not kind:
        frame.iloc[:, 5], array[:, 5] = pandas.NA, np.nan
        assert predicted(frame).tolist() == predicted(array).tolist()


@pytest.mark.parametrize("dtype", ["string", "category", "string[pyarrow]"])
def test_columns_of_pandas_with_types_of_their_own(dtype):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    texts = pandas.Series([" ".join(row) for row in WORDS])
    found = predicted(texts.astype(dtype), pandas.Series(Y).astype(dtype))
    assert found.tolist() == predicted(list(texts)).tolist()


def test_nullable_integers_stay_integers():
    pandas = pytest.importorskip("pandas")
    found = predicted(WORDS, pandas.Series([label == "up" for label in Y]).astype("Int64"))
    assert found.dtype.kind == "i"


def test_columns_without_an_index_are_taken():
    pandas = pytest.importorskip("pandas")
    texts = [" ".join(row) for row in WORDS]
    expected = predicted(texts).tolist()
    for X in (pandas.Index(texts), pandas.array(texts)):
        assert predicted(X, pandas.array(Y)).tolist() == expected
    truth = pandas.array([label == "up" for label in Y], dtype="boolean")
    assert predicted(texts, truth).dtype == bool


def test_a_missing_label_is_named():
    for labels in ([None, *Y[1:]], np.array([None, *Y[1:]])):
        with pytest.raises(ValueError, match=r"^y: found None"):
            predicted(WORDS, labels)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_series_of_lists_has_several_labels(library):
    lists = [["up", "down"] if row % 3 else [label] for row, label in enumerate(Y)]
    labels = pytest.importorskip(library).Series(lists)
    assert predicted(WORDS, labels) == predicted(WORDS, lists)


@pytest.mark.parametrize(
    "X", [np.zeros((40, 0, 2)), np.zeros((40, 5, 0)), [b"up"] * 40, np.array([b"up"] * 40)]
)
def test_empty_axes_and_bytes_are_refused(X):
    with pytest.raises(ValueError, match=r"^X: found [^\n]*expected[^\n]*$"):
        SequenceClassifier(**SMALL).fit(X, Y)


def test_masked_numbers_are_missing_in_every_form_of_an_array():
    masks = DRAW.random((40, 6)) < 0.2
    flat = np.ma.masked_array(DRAW.normal(size=(40, 6)), masks)
    for X in (flat, flat[:, :, None], [*flat], [*flat[:, :, None]]):
        blank = X.filled(np.nan) if isinstance(X, np.ndarray) else [x.filled(np.nan) for x in X]
        masked = SequenceClassifier(**SMALL, data__missing="mask").fit(X, Y)
        assert (masked.predict_proba(X) == masked.predict_proba(blank)).all()
        with pytest.raises(ValueError, match="missing value"):
            SequenceClassifier(**SMALL).fit(X, Y)


@pytest.mark.parametrize(
    ("keys", "labels", "words"),
    [
        ({}, np.array(["up", 1] * 3, object), "y: .*int, str"),
        ({"settings": [1]}, ["up", "down"] * 3, "settings: found list"),
    ],
)
def test_labels_of_two_types_and_settings_that_are_no_dict_are_refused(keys, labels, words):
    with pytest.raises(ValueError, match=words):
        SequenceClassifier(**SMALL, **keys).fit(["rise", "fall", "lift"] * 2, labels)


def test_masked_tokens_are_padding_at_the_end_and_refused_within():
    padded = np.ma.masked_array(IDS, mask=False)
    padded[:, 4:] = np.ma.masked
    expected = predicted([row[:4].tolist() for row in IDS], data__kind="tokens").tolist()
    assert predicted(padded, data__kind="tokens").tolist() == expected
    padded[2, 1] = np.ma.masked
    for X in (padded, [*padded[:, :4]]):
        with pytest.raises(ValueError, match=r"^X: row 3: .*found null"):
            predicted(X, data__kind="tokens")


def test_masked_labels_and_weights_are_refused():
    mask = [row == 3 for row in range(40)]
    with pytest.raises(ValueError, match=r"^y: found masked"):
        predicted(WORDS, np.ma.masked_array(Y, mask))
    for weights in (np.ones(40), np.ones(40, int)):
        given = np.ma.masked_array(weights, mask)
        with pytest.raises(ValueError, match="sample_weight"):
            SequenceClassifier(**SMALL).fit(WORDS, Y, sample_weight=given)
        config = {"data": {"sequence": "s", "label": "l", "kind": "tokens"}}
        with pytest.raises(ConfigError, match=r"^sample_weight: expected finite"):
            seqtrain.fit(config, train={"s": WORDS, "l": Y}, sample_weight=given, run_dir="none")


def test_an_empty_sequence_is_an_error_by_its_row():
    fitted = SequenceClassifier(**SMALL, data__empty="error").fit(WORDS, Y)
    with pytest.raises(ValueError, match=r"^X: row 2: "):
        fitted.predict_proba([WORDS[0], []])


def test_all_unknown_parameters_are_named_at_once():
    with pytest.raises(TypeError, match=r"hiden_size.*hidden_size.*model__layers.*num_layers"):
        SequenceClassifier(hiden_size=3, model__layers=2)
    with pytest.raises(ValueError, match="dropout"):
        SequenceClassifier().set_params(lr=0.1, dropot=1)


@pytest.mark.filterwarnings("always")
def test_a_search_takes_arrays_of_values_and_gives_a_warning_once():
    grid = {"hidden_size": np.arange(3, 5), "model__ngrams": [np.array([1, 2])]}
    with warnings.catch_warnings(record=True) as caught:
        search = GridSearchCV(SequenceClassifier(**SMALL), grid, cv=2, error_score="raise")
        search.fit(WORDS, Y)
    own = [str(each.message) for each in caught if each.category is SeqtrainWarning]
    assert own
    assert len(own) == len({*own})
