"""A classifier stands for its run in every function: loaded, or of a fitted estimator."""

import numpy as np
import pytest

import seqtrain
from seqtrain.errors import CheckpointError, ConfigError, DataError
from seqtrain.sklearn import SequenceClassifier
from tests.helpers.tiny import rows

TEXTS, LABELS = zip(*rows(60, seed=1), strict=True)
TABLE = {"sequence": list(TEXTS), "label": list(LABELS)}
SMALL = {"embedding_dim": 8, "hidden_size": 8, "dropout": 0.0, "lr": 0.02, "max_epochs": 4}


@pytest.fixture(scope="module")
def estimator() -> SequenceClassifier:
    return SequenceClassifier(**SMALL).fit(list(TEXTS), list(LABELS))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> seqtrain.Run:
    folder = tmp_path_factory.mktemp("run")
    config = {
        "data": {"sequence": "sequence", "label": "label", "validation": 0.25},
        "model": {"hidden_size": 8, "embedding_dim": 8},
        "training": {"max_epochs": 2},
    }
    return seqtrain.fit(config, train=TABLE, run_dir=folder / "r", progress=False)


def test_an_estimator_is_saved_and_predicts_the_same(estimator, tmp_path):
    folder = estimator.classifier_.save(tmp_path / "new" / "model")
    again = seqtrain.load(folder)
    assert again.labels == tuple(sorted({*LABELS}))
    found = again.predict(list(TEXTS))
    assert found.labels == estimator.predict(list(TEXTS)).tolist()
    np.testing.assert_allclose(found.probabilities, estimator.predict_proba(list(TEXTS)))


def test_saving_replaces_a_model_only_with_force(estimator, run, tmp_path):
    classifier = estimator.classifier_
    classifier.save(tmp_path / "m")
    with pytest.raises(ConfigError, match="force=True"):
        classifier.save(tmp_path / "m")
    classifier.save(tmp_path / "m", force=True)
    (tmp_path / "m" / "mine").touch()
    with pytest.raises(ConfigError, match="mine"):
        classifier.save(tmp_path / "m", force=True)
    with pytest.raises(ConfigError):
        classifier.save(run.path, force=True)
    assert (run.path / "config.yaml").exists()


def test_an_estimator_is_scored_checked_and_exported(estimator, tmp_path):
    classifier = estimator.classifier_
    found = seqtrain.evaluate(classifier, data=TABLE)
    assert found.scores.accuracy == estimator.score(list(TEXTS), list(LABELS))
    assert seqtrain.check(classifier, data=TABLE).passed
    pytest.importorskip("onnx")
    seqtrain.export(classifier, tmp_path / "port")
    assert (tmp_path / "port" / "model.onnx").exists()
    same = seqtrain.diff(classifier, seqtrain.load(classifier.save(tmp_path / "m")), data=TABLE)
    assert same.counts["only_a"] == same.counts["only_b"] == 0


def test_training_goes_on_from_an_estimator(estimator, tmp_path):
    config = {
        "data": {"sequence": "sequence", "label": "label", "empty": "unk", "validation": None},
        "model": {"hidden_size": 8, "embedding_dim": 8, "dropout": 0.0},
        "training": {"max_epochs": 1},
    }
    run = seqtrain.fit(
        config,
        train=TABLE,
        init_from=estimator.classifier_,
        run_dir=tmp_path / "r",
        progress=False,
    )
    assert seqtrain.load(run).labels == estimator.classifier_.labels


def test_a_loaded_classifier_stands_for_its_run(run, tmp_path):
    loaded = seqtrain.load(run)
    by_run = seqtrain.evaluate(run, split="validation")
    by_classifier = seqtrain.evaluate(loaded, split="validation")
    assert by_classifier.scores == by_run.scores
    page = tmp_path / "r.html"
    frame = pytest.importorskip("pandas").DataFrame(TABLE)
    seqtrain.report(loaded, page, data=frame)
    assert page.exists()
    mistakes = seqtrain.split_results(loaded, data=TABLE, explain=1)
    assert mistakes.scores.num_examples == len(TEXTS)
    assert [each.is_correct for each in mistakes.errors] == [False] * len(mistakes.errors)


def test_what_has_no_run_is_refused_with_the_way_that_works(estimator, tmp_path):
    for wrong in (5, ["r"], estimator):
        with pytest.raises(ConfigError, match=r"^run: found .*expected a run directory"):
            seqtrain.evaluate(wrong, data=TABLE)
    with pytest.raises(ConfigError, match="classifier_"):
        seqtrain.load(estimator)
    with pytest.raises(CheckpointError, match="data="):
        seqtrain.evaluate(estimator.classifier_)
    page = tmp_path / "r.html"
    with pytest.raises(CheckpointError, match="is no run"):
        seqtrain.report(estimator.classifier_, page, data=TABLE)
    with pytest.raises(ConfigError, match=r"^runs: found none"):
        seqtrain.report([], page)
    with pytest.raises(ConfigError, match=r"^config: found .*Classifier"):
        seqtrain.tune(estimator.classifier_, trials=1)


@pytest.mark.parametrize("labels", [["", "x"] * 30, [1.0, 2.0] * 30, [" a", "a"] * 30])
def test_labels_that_no_file_holds_are_predicted(labels):
    fitted = SequenceClassifier(**SMALL).fit(list(TEXTS), np.array(labels))
    assert {*fitted.predict(list(TEXTS))} <= {*labels}


@pytest.mark.parametrize("labels", [[3, 7] * 30, [True, False] * 30])
def test_typed_labels_are_those_of_the_classifier(labels, tmp_path):
    fitted = SequenceClassifier(**SMALL).fit(list(TEXTS), labels)
    assert {*fitted.classifier_.predict(list(TEXTS)).labels} <= {*labels}
    found = fitted.predict(list(TEXTS))
    assert found.dtype == np.array(labels).dtype
    again = seqtrain.load(fitted.classifier_.save(tmp_path / "m"))
    assert again.predict(list(TEXTS)).labels == found.tolist()


@pytest.mark.parametrize("wrong", [7, -0.1, float("nan"), np.float32(1.5)])
def test_a_threshold_is_a_probability(estimator, wrong):
    with pytest.raises(ConfigError, match="threshold"):
        estimator.classifier_.set_threshold("up", wrong)


def test_compare_takes_a_table():
    config = {
        "data": {"sequence": "sequence", "label": "label", "validation": 0.25},
        "model": {"hidden_size": 4, "embedding_dim": 4},
    }
    found = seqtrain.compare(config, train=TABLE, seconds=0.3)
    assert found.recommended
    assert 30 < found.rows < len(TEXTS)


def test_data_that_are_gone_are_asked_for_by_names_that_exist(tmp_path):
    config = {"data": {"sequence": "sequence", "label": "label", "validation": 0.25}}
    settings = {"model": {"hidden_size": 4}, "training": {"max_epochs": 1}}
    other = {name: cells[1:] for name, cells in TABLE.items()}  # no fixture holds these rows
    config |= settings
    path = seqtrain.fit(config, train=other, run_dir=tmp_path / "gone", progress=False).path
    with pytest.raises(DataError, match=r"data=") as refused:
        seqtrain.evaluate(path)
    assert "train=" not in str(refused.value)
    assert "--" not in str(refused.value)
