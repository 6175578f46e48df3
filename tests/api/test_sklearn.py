"""The estimator in scikit-learn's own tools, with sequences of unequal length."""

import os
import pickle
import signal
import tempfile
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from seqtrain.api.fit import fit
from seqtrain.errors import CheckpointError, ConfigError, DataError, SeqtrainWarning
from seqtrain.sklearn import SequenceClassifier
from seqtrain.training.events import UpdateEvent
from tests.helpers.tiny import rows

SMALL = {
    "embedding_dim": 8,
    "hidden_size": 8,
    "dropout": 0.0,
    "lr": 0.02,
    "max_epochs": 6,
}
SETTINGS = {"batching.batch_size": 8}
TEXTS, LABELS = zip(*rows(60, seed=1), strict=True)


def small(*, settings: dict[str, Any] | None = None, **given: Any) -> SequenceClassifier:
    return SequenceClassifier(**{**SMALL, **given}, settings={**SETTINGS, **(settings or {})})


@pytest.fixture(scope="module")
def fitted() -> SequenceClassifier:
    return small().fit(list(TEXTS), list(LABELS))


NAN = "a missing value within a series needs data.missing: mask; at its end it is padding"
NOT_APPLICABLE = {
    "check_do_not_raise_errors_in_init_or_set_params": "a keyword must be a key of the config",
    "check_estimators_pickle": NAN,
    "check_sample_weight_equivalence_on_dense_data": "batches of a repeated example differ",
}
"""Checks of scikit-learn that don't apply, and why."""


@pytest.mark.slow
@parametrize_with_checks(
    [small(max_epochs=40, settings={"model.embedding_dropout": 0.0})],
    expected_failed_checks=lambda estimator: NOT_APPLICABLE,
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_lists_of_labels_are_learned_predicted_and_scored_as_whole_sets():
    given = [[label, "all"] if i % 7 else [label] for i, label in enumerate(LABELS)]
    several = small(max_epochs=20).fit(list(TEXTS), given)
    assert several.classes_.tolist() == sorted({*LABELS, "all"})
    found = several.predict(list(TEXTS))
    assert sum({*a} == {*b, "all"} for a, b in zip(found, given, strict=True)) > 50
    assert several.predict_proba(list(TEXTS)[:5]).shape == (5, 3)
    right = np.mean([{*a} == {*b} for a, b in zip(found, given, strict=True)])
    assert several.score(list(TEXTS), given) == pytest.approx(right)
    assert several.score(list(TEXTS), [["never seen"]] * len(TEXTS)) == 0


def test_texts_are_classified(fitted):
    assert fitted.score(list(TEXTS), list(LABELS)) > 0.9
    probabilities = fitted.predict_proba(list(TEXTS)[:5])
    assert probabilities.shape == (5, 2)
    assert fitted.classes_.tolist() == ["down", "up"]
    best = fitted.classes_[probabilities.argmax(1)]
    assert best.tolist() == fitted.predict(np.array(TEXTS[:5])).tolist()


def test_more_than_ten_labels_keep_their_places():
    labels = [i % 12 for i in range(60)]
    texts = [f"word{label} the word{label}" for label in labels]
    assert small(max_epochs=80).fit(texts, labels).predict(texts).tolist() == labels


def test_class_weights_are_given_by_labels():
    labels = np.arange(60) % 12
    weights = {label: 50.0 if label == 2 else 1.0 for label in range(12)}
    heavy = small(settings={"training.class_weights": weights})
    assert set(heavy.fit(["the same words"] * 60, labels).predict(["the same words"])) == {2}
    with pytest.raises(ValueError, match=r"^class_weight: found 1;.*'down', 'up'"):
        small(settings={"training.class_weights": {1: 1}}).fit(list(TEXTS), list(LABELS))


def test_nan_stands_behind_the_shorter_rows_of_an_array():
    slopes = np.random.default_rng(0).choice([-1.0, 1.0], 60)
    rows = slopes[:, None] * np.arange(8)
    rows[np.arange(8) > 3 + np.arange(60)[:, None] % 5] = np.nan
    found = small().fit(rows, slopes)
    assert found.score(rows, slopes) > 0.9
    short = found.predict_proba([row[~np.isnan(row)] for row in rows])
    np.testing.assert_allclose(found.predict_proba(rows), short, atol=1e-6)


def test_a_pickle_holds_the_files_of_the_model_folder(fitted):
    state = fitted.__getstate__()
    assert {"model.json", "model.safetensors", "vocabulary.json"} == set(state["classifier_"])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        again.predict_proba(list(TEXTS)), fitted.predict_proba(list(TEXTS))
    )
    assert not hasattr(clone(fitted), "classifier_")


@pytest.mark.parametrize(
    "files", [{"../../outside": b"x"}, {"model.json": "x"}, {"more.json": b""}, {}, 5]
)
def test_a_crafted_pickle_writes_nothing_elsewhere(fitted, files, tmp_path, monkeypatch):
    """A reader of pickles that allows this class alone hands it any state."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    state = {**fitted.__getstate__(), "classifier_": files}
    with pytest.raises(CheckpointError):
        SequenceClassifier.__new__(SequenceClassifier).__setstate__(state)
    assert not list(tmp_path.iterdir())


def test_mistakes_are_value_errors(fitted):
    texts, labels = list(TEXTS), list(LABELS)
    with pytest.raises(ValueError, match=r"^rnn: found 'elman'"):
        small(rnn="elman").fit(texts, labels)
    with pytest.raises(ValueError, match=r"^model__pooling: found 'nope'"):
        small(model__pooling="nope").fit(texts, labels)
    with pytest.raises(ValueError, match=r"^validation_fraction: found 2"):
        small(validation_fraction=2).fit(texts, labels)
    with pytest.raises(ValueError, match=r"training\.patiense"):
        small(settings={"training.patiense": 3}).fit(texts, labels)
    with pytest.raises(ValueError, match=r"data.+train"):
        small(data__train="other.csv").fit(texts, labels)
    with pytest.raises(ValueError, match="'up'"):
        small().fit(texts, ["up"] * 60)
    with pytest.raises(ValueError, match=r"^X: row 2: 2 channels; expected 1"):
        small().fit([np.ones((3, 1)), np.ones((3, 2))], ["up", "down"])
    with pytest.raises(ValueError, match="y: found None"):
        small().fit(texts, [None, *labels[1:]])
    for given, words in (
        ([["a", "list"], [1.5]], "X: sequence 2"),
        ("a text", "X: found one str; expected a list of sequences"),
        ({"a": "text"}, "X: the column a is a str; expected its values"),
        ({"a": ["text"], "b": ["text"]}, "X: found the columns 'a, b'; name the sequence's"),
        (np.array([["a", "b"], ["c", "d"]]), "X: found a table of texts; give one column of it"),
        (["a", 1.5], "X: found float; expected texts"),
        (np.array([0.5, 1.0]), "X: found float64; expected texts"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            fitted.predict(given)
        assert isinstance(caught.value, DataError)


@pytest.mark.parametrize("sequence", [None, "text"])
def test_columns_of_a_table(sequence):
    missing = float("nan") if sequence is None else None
    table: dict[str, Any] = {"text": [missing, *TEXTS[1:]]}
    texts = ["", *TEXTS[1:]]
    if sequence is not None:
        table["title"] = ["a b"] * len(TEXTS)
    of_table, of_list = small(sequence=sequence).fit(table, LABELS), small().fit(texts, LABELS)
    expected = of_list.predict_proba(texts)
    np.testing.assert_array_equal(of_table.predict_proba(table), expected)
    rows = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    np.testing.assert_array_equal(of_table.predict_proba(rows), expected)


def test_a_table_must_have_the_named_column():
    with pytest.raises(ValueError, match=r"^X: .*'title'"):
        small(sequence="text").fit({"title": TEXTS}, LABELS)


def test_keys_of_the_config_are_parameters():
    estimator = small(model__num_layers=2, training__patience=1)
    assert clone(estimator).get_params()["model__num_layers"] == 2
    estimator.set_params(model__num_layers=3, hidden_size=5)
    assert (estimator.get_params()["model__num_layers"], estimator.hidden_size) == (3, 5)
    with pytest.raises(ValueError, match=r"^model__num_layers"):
        small(model__num_layers=-2).fit(list(TEXTS), list(LABELS))


def test_steps_that_are_nan_in_all_channels_at_the_end_are_padding():
    draw = np.random.default_rng(0)
    series = draw.normal(size=(40, 6, 2))
    lengths = 2 + np.arange(40) % 5
    series[np.arange(6) >= lengths[:, None]] = np.nan
    series[0, 0, 1] = np.nan
    fitted = small(max_epochs=2, settings={"data.missing": "mask"}).fit(series, LABELS[:40])
    cut = [row[:length] for row, length in zip(series, lengths, strict=True)]
    padded, plain = fitted.predict_proba(series), fitted.predict_proba(cut)
    np.testing.assert_allclose(padded, plain, atol=1e-6)


def test_channels_may_come_before_time():
    series = np.random.default_rng(0).normal(size=(40, 2, 6))
    with pytest.warns(SeqtrainWarning, match="layout='channels_time'"):
        small(max_epochs=1).fit(series, LABELS[:40])
    plain = small(max_epochs=2).fit(series.transpose(0, 2, 1), LABELS[:40])
    other = small(max_epochs=2, layout="channels_time").fit(series, LABELS[:40])
    expected = plain.predict_proba(series.transpose(0, 2, 1))
    np.testing.assert_array_equal(other.predict_proba(series), expected)
    np.testing.assert_allclose(other.predict_proba([*series]), expected, atol=1e-6)


@pytest.mark.parametrize("held_out", [True, False])
def test_weights_of_examples_count_in_the_refit(held_out):
    texts, labels = [f"the same words {i // 2}" for i in range(60)], np.array(["down", "up"] * 30)
    fraction = 0.2 if held_out else None
    given = None if held_out else (texts[:10], labels[:10])
    for heavy in ("down", "up"):
        weights = np.where(labels == heavy, 20.0, 0.5)
        model = small(max_epochs=20, validation_fraction=fraction, training__refit=True)
        fitted = model.fit(texts, labels, sample_weight=weights, validation_data=given)
        assert fitted.predict(["the same words"]).tolist() == [
            heavy
        ]  # validation sets the temperature


def test_rows_of_files_have_no_weights(tmp_path):
    lines = ["text,label", *(f"word {i},{'ab'[i % 2]}" for i in range(40))]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    config = {"data": {"train": str(path), "sequence": "text", "label": "label"}}
    with pytest.raises(ConfigError, match="sample_weight"):
        fit(config, run_dir=tmp_path / "run", sample_weight=np.ones(40))


def test_validation_data_and_the_history_of_epochs():
    """Epochs of pretraining have no part in it."""
    texts, labels = list(TEXTS), list(LABELS)
    settings = {"pretraining.objective": "language_model", "pretraining.max_epochs": 3}
    plain = small(max_epochs=2, settings=settings).fit(texts[:40], labels[:40])
    assert [row["epoch"] for row in plain.history_] == [1, 2]
    assert "validation_loss" not in plain.history_[0]
    fitted = small(max_epochs=2).fit(texts[:40], labels[:40], validation_data=(texts, labels))
    assert 0 <= fitted.history_[-1]["validation_accuracy"] <= 1
    held_out = small(max_epochs=2, validation_fraction=0.25).fit(texts, labels)
    assert "validation_macro_f1" in held_out.history_[-1]


def test_columns_of_one_text_and_names_of_features():
    pandas = pytest.importorskip("pandas")
    column = np.array(TEXTS, dtype=object)[:, None]
    expected = small(max_epochs=1).fit(list(TEXTS), LABELS).predict_proba(list(TEXTS))
    fitted = small(max_epochs=1).fit(column, LABELS)
    np.testing.assert_array_equal(fitted.predict_proba(column), expected)
    frame = pandas.DataFrame({"text": TEXTS})
    fitted = small(max_epochs=1).fit(frame, LABELS)
    assert fitted.feature_names_in_.tolist() == ["text"]
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame.rename(columns={"text": "other"}))


def test_lists_of_whole_numbers_say_how_they_were_read():
    lists = [[3, 1, 2 + i % 2] for i in range(40)]
    with pytest.warns(SeqtrainWarning, match="series"):
        small(max_epochs=1).fit(lists, LABELS[:40])
    tokens = small(max_epochs=1, data__kind="tokens").fit(lists, LABELS[:40])
    assert tokens.classifier_.preprocessing.kind == "tokens"


def test_a_stop_ends_cross_validation_with_advice_of_no_folder(monkeypatch):
    def stop(self: object, event: object) -> None:
        if isinstance(event, UpdateEvent):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SequenceClassifier, "_note_epoch", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        cross_val_score(small(), list(TEXTS), list(LABELS), cv=2)
    assert "--resume" not in str(caught.value)
    assert tempfile.gettempdir() not in str(caught.value)


def test_a_classifier_is_pickled_after_it_predicted(fitted):
    classifier = fitted.classifier_
    found = classifier.predict(list(TEXTS))
    again = pickle.loads(pickle.dumps(classifier)).predict(list(TEXTS))
    np.testing.assert_array_equal(again.probabilities, found.probabilities)


def test_predictions_are_an_array_and_a_frame(fitted):
    classifier = fitted.classifier_
    found = classifier.predict([*TEXTS[:3], ""])
    assert found.probabilities.shape == (4, 2)
    np.testing.assert_allclose(found.probabilities[:3].sum(1), 1)
    for library in ("pandas", "polars"):
        pytest.importorskip(library)
        frame = found.to_frame(library)
        classes = [f"probability_{label}" for label in found.classes]
        assert [*frame.columns] == ["label", "probability", *classes]
        assert list(frame["label"]) == found.labels


def test_embeddings_are_those_of_one_sequence_at_a_time(fitted):
    classifier = fitted.classifier_
    together = classifier.embed(list(TEXTS[:7]))
    assert together.shape == (7, 8)
    alone = np.concatenate([classifier.embed([text]) for text in TEXTS[:7]])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert classifier.embed([]).shape == (0, 8)


def test_training_further_is_refused_with_the_way_that_works():
    with pytest.raises(TypeError, match="init_from"):
        SequenceClassifier(warm_start=True)
    assert not hasattr(small(), "partial_fit")
    with pytest.raises(AttributeError, match="init_from"):
        small().partial_fit  # noqa: B018


def test_warnings_about_the_data_are_passed_on():
    others = ["up" if label == "down" else "down" for label in LABELS]
    with pytest.warns(SeqtrainWarning, match="label"):
        small(max_epochs=1).fit([*TEXTS, *TEXTS], [*LABELS, *others])


def test_weights_of_classes_are_compared_by_value():
    labels = [0.0, 1.0] * 30
    heavy = small(class_weight={0: 50, 1: 1}).fit(["the same words"] * 60, labels)
    assert heavy.predict(["the same words"]).tolist() == [0.0]
    heavy = small(class_weight={True: 50, False: 1}).fit(["the same words"] * 60, labels)
    assert heavy.predict(["the same words"]).tolist() == [1.0]
    with pytest.raises(DataError, match="class_weight"):
        small(class_weight={"0": 2.0}).fit(list(TEXTS), labels)


def test_a_rare_class_is_predicted_from_its_threshold_on():
    """Of the rows with "high", two in five have the rare class, so it is never the likeliest."""
    texts = [f"high n{i % 5}" if i % 3 == 0 else f"low n{i % 7}" for i in range(300)]
    labels = ["yes" if i % 15 in (0, 6) else "no" for i in range(300)]
    fitted = small(validation_fraction=0.4, max_epochs=8).fit(texts, labels)
    shares, least = fitted.predict_proba(texts), fitted.thresholds_
    assert least is not None
    assert least.sum() == pytest.approx(1)
    predicted = fitted.predict(texts)
    np.testing.assert_array_equal(predicted == "yes", shares[:, 1] >= least[1])
    assert (predicted != fitted.classes_[shares.argmax(1)]).any()
