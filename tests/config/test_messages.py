"""Messages about wrong values: place, found value, allowed values, nearest name."""

import re
from pathlib import Path

import numpy as np
import pytest

from seqtrain import init
from seqtrain.config import Config, config_from_mapping, parse_config, resolved_config
from seqtrain.config.schema import KEYS, SECTIONS
from seqtrain.errors import ConfigError

POOLINGS = ("last", "mean", "max", "sum", "attention")
DATA = "data: {train: a.csv, sequence: s, label: l}\n"
PLAIN_KEYS = [key for key in KEYS if key not in SECTIONS]


def problems(text: str, *options: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "cfg.yaml", options)
    return caught.value.problems


CONFLICTS = [
    "data.id=i data.kind=tokens",
    "data.steps={x: token} data.sequence=null",
    "data.kind=text data.steps={x: token} data.id=i",
    "data.kind=steps",
    "data.order=o",
    "data.sequence=s data.steps={x: token} data.id=i",
    "data.standardize=series",
    "data.standardize=series data.steps={x: token} data.id=i data.sequence=null",
    "training.augment={slice: 0.1}",
    "training.augment={slice: 0.1} data.steps={x: token} data.id=i data.sequence=null",
    "model.freeze=true data.kind=features",
    "model.trees=true",
    "model.kernels=true",
    "model.kernels=true data.steps={x: token} data.id=i data.sequence=null",
    "model.ngrams=[1, 2] data.kind=features",
    "model.ngrams={x: [1, 2]}",
    "model.ngrams=[1, 2] data.steps={x: number} data.id=i data.sequence=null",
    "model.ngrams=[1, 2] data.steps={x: token, y: token} data.id=i data.sequence=null",
    "model.ngrams={z: [1, 2]} data.steps={x: token} data.id=i data.sequence=null",
    "model.subwords=[3, 5] data.kind=features",
    "model.subwords=[3, 5] data.tokenizer=char",
    "model.vectors=v.vec data.kind=features",
    "model.vectors=v.vec data.tokenizer=bpe",
    "model.engine=native model.unroll=masked",
    "model.initial_state=carried",
    "model.initial_state=carried data.group=g model.bidirectional=true",
    "model.initial_state=carried data.group=g model.unroll=padded",
    "training.bptt=5 model.bidirectional=true",
    "training.bptt=5 model.unroll=padded",
    "training.logit_adjustment=0.5 data.label_separator='|'",
    "training.refit=true",
    "training.refit=true data.validation=0.1 model.initial_state=carried data.group=g",
    "training.refit=true data.validation=0.1 pretraining.objective=autoencoder",
    "training.refit=true data.validation=0.1 training.schedule=plateau",
    "pretraining.objective=autoencoder data.kind=features",
    "pretraining.objective=autoencoder model.convolutions=[[8, 3, 1]]",
    "pretraining.objective=language_model model.bidirectional=true model.num_layers=2",
    "data.label=s",
    "data.static={l: token}",
    "data.group=g data.train=a.npz data.label=null data.sequence=null",
]
"""Options that conflict; the first key of each is complained about."""


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_keys_that_conflict_are_refused(conflict):
    options = re.split(" (?=[a-z_]+[.][a-z_]+=)", conflict)
    key = options[0].partition("=")[0]
    found = problems(DATA, *options)
    assert any(line.startswith(f"--set {key}=") for line in found)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ("model.ngrams_spelling=true model.ngrams=[1, 2]", "model.ngrams_spelling"),
        ("model.attention_size=8 model.pooling=[last, max]", "model.attention_size"),
        ("model.vectors_keep=7", "model.vectors_keep"),
        ("model.join=sum", "model.join"),
        ("model.initial_scale=0.5", "model.initial_scale"),
        ("pretraining.data=more.tsv", "pretraining.data"),
    ],
)
def test_a_key_that_only_refines_another_is_ignored_without_it(options, key):
    config = parse_config(DATA, overrides=re.split(" (?=[a-z_]+[.][a-z_]+=)", options))
    assert config.value(key) == parse_config(DATA).value(key)


@pytest.mark.parametrize("text", ["0,1", "10%", "2.5 %"])
def test_a_fraction_that_is_written_as_text_is_no_file(text):
    (problem,) = problems(DATA, f"data.validation='{text}'")
    assert f"found '{text}'; expected a fraction such as 0.1" in problem


@pytest.mark.parametrize(
    ("on", "near"),
    [
        ("{nr: case}", "{left: nr, right: case}"),
        ("{left: nr, rihgt: case}", "{left: nr, right: case}"),
        ("{left: [nr, s], right: case}", None),
        ("[]", None),
        ("[nr, 7]", None),
        ("7", None),
    ],
)
def test_another_form_of_the_key_of_a_join_is_refused_with_the_right_one(
    on, near, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("nr,s\n1,x y\n2,z y\n")
    Path("b.csv").write_text("case,l\n1,u\n2,v\n")
    option = f"data.join=[{{file: b.csv, on: {on}}}]"
    with pytest.raises(ConfigError) as caught:
        init("a.csv", settings=[option])
    for (problem,) in (problems(DATA, option), caught.value.problems):
        assert "expected COLUMN, a list, {left: COL" in problem
        assert problem.partition("; did you mean ")[2] == (f"{near}?" if near else "")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("training.num_epochs", "training.max_epochs"),
        ("n_epochs", "training.max_epochs"),
        ("training.learning_rate", "training.lr"),
        ("training.batch", "batching.batch_size"),
        ("model.hidden", "model.hidden_size"),
        ("model.num_hidden", "model.hidden_size"),
        ("model.dropout_rate", "model.dropout"),
        ("data.max_len", "data.max_length"),
        ("maxlen", "data.max_length"),
        ("training.early_stopping", "training.patience"),
        ("data.text_column", "data.sequence"),
        ("data.dev", "data.validation"),
    ],
)
def test_names_that_other_tools_have_find_the_key(name, key):
    (problem,) = problems(DATA, f"{name}=3")
    assert problem.endswith(f"did you mean {key}?")


def test_keys_below_a_misspelt_section_are_checked():
    text = f"{DATA}trainig:\n  lrr: 0.1\n  patience: soon\nmodle: {{rnn: gru}}\n"
    assert {line.partition("; ")[0] for line in problems(text)} == {
        "cfg.yaml:2:1: trainig: unknown key",
        "cfg.yaml:3:3: training.lrr: unknown key",
        "cfg.yaml:4:13: training.patience: found 'soon'",
        "cfg.yaml:5:1: modle: unknown key",
    }


def test_changed_keys_are_validated():
    config = parse_config(DATA)
    assert config.with_keys(training={"lr": 0.5}).training.lr == 0.5
    for wrong in ({"lr": -1.0}, {"lrr": 1.0}, {"bptt": 5}):
        with pytest.raises(ConfigError, match="training"):
            config.with_keys(training=wrong, model={"bidirectional": True})
    with pytest.raises(ConfigError, match="trainin"):
        config.with_keys(trainin={})


def test_values_of_numpy_tuples_and_paths_are_those_of_a_file():
    given = {
        "seed": np.int64(3),
        "data": {
            "train": (Path("a.csv"),),
            "sequence": "s",
            "label": "l",
            "max_length": np.uint8(9),
        },
        "model": {"hidden_size": np.int32(4), "ngrams": (np.int64(1), 2), "pooling": (*POOLINGS,)},
        "training": {"lr": np.float32(0.5), "class_weights": {np.str_("x"): np.float64(2)}},
    }
    text = """
        {seed: 3, data: {train: [a.csv], sequence: s, label: l, max_length: 9},
        model: {hidden_size: 4, ngrams: [1, 2], pooling: [last, mean, max, sum, attention]},
        training: {lr: 0.5, class_weights: {x: 2}}}
    """
    assert resolved_config(given) == parse_config(text)


def test_a_config_made_in_python_reports_its_problems_alike():
    with pytest.raises(ConfigError, match="seed: found 'x'; expected a whole number"):
        Config(seed="x", data={"train": "a.csv", "sequence": "s", "label": "l"})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [".nan", "-.inf", "-1", "[]", "1e300"])
def test_every_key_refuses_nonsense_in_plain_words(value):
    for key in PLAIN_KEYS:
        section, _, leaf = key.rpartition(".")
        lines = ["data:", "  train: a.csv", "  sequence: s", "  label: l"]
        lines = [line for line in lines if not line.startswith(f"  {leaf}:")]
        indent = "  " if section else ""
        lines += [f"{section}:"] * (section not in ("", "data"))
        lines.append(f"{indent}{leaf}: {value}")
        where = f"cfg.yaml:{len(lines)}:{len(indent) + len(leaf) + 3}: {key}"
        (problem,) = (line for line in problems("\n".join(lines)) if "missing; exp" not in line)
        assert problem.startswith(where)
        for jargon in ("Input", "constrained", "literal[", "pydantic", "type=", "valid "):
            assert jargon not in problem


def test_thousands_of_problems_are_counted_and_reported_soon():
    found = problems("".join(f"key{number}: no\n" for number in range(3000)))
    assert len(found) == 51
    assert found[-1].startswith("2,951 more problems")


def test_mapping_of_python_is_checked_alike():
    good = {"data": {"train": "a.csv", "sequence": "s", "label": "l"}}
    assert config_from_mapping(good) == parse_config(DATA)
    training = {"lrr": 1, "class_weights": {0: 1.0}}
    with pytest.raises(ConfigError) as caught:
        config_from_mapping({"data": {"train": b"x", "label": "l"}, "training": training, "7": 1})
    assert set(caught.value.problems) == {
        "data.train: found b'x'; expected a file path or a list of file paths",
        "training.lrr: unknown key; did you mean training.lr?",
        "training.class_weights.0: found key 0; expected text as key",
        "7: unknown key; expected seed, data, batching, model, training, pretraining or tune",
    }


def test_mapping_takes_paths_sections_and_overrides(tmp_path):
    model = parse_config(DATA + "model: {rnn: lstm}").model
    given = {"data": {"train": tmp_path}, "model": model}  # a folder is read as txt
    config = config_from_mapping(given, ["model.num_layers=2"])
    assert (config.data.train, config.model.rnn) == (str(tmp_path), "lstm")
    assert given["model"] is model
    assert config.model.model_fields_set == {"rnn", "num_layers"}
    with pytest.raises(ConfigError, match=r"^config: found \[\]"):
        config_from_mapping([])  # type: ignore[arg-type]
