"""Every wrong value gets one line: where, what was found, what is allowed, the nearest name."""

from __future__ import annotations

import pytest

from seqtrain.config import config_from_mapping, parse_config
from seqtrain.config.problems import KEYS, RETIRED_KEYS
from seqtrain.config.rules import Clash, clashes
from seqtrain.config.schema import SECTIONS
from seqtrain.errors import ConfigError

DATA = "data: {train: a.csv, sequence: s, label: l}\n"
PLAIN_KEYS = [key for key in KEYS if key not in SECTIONS]


def problems(text: str, *options: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "cfg.yaml", options)
    return caught.value.problems


def test_all_problems_come_together_in_the_order_of_the_file() -> None:
    text = """\
seed: -1
data:
  train: 2024
  label: no
  hidden_size: 3
model:
  rnn: grru
  rnn: lstm
training:
  lrr: 1
  lr: -1
batching: 5
train: x
"""
    assert problems(text) == (
        "cfg.yaml:1:7: seed: found -1; expected a whole number from 0 to 9223372036854775807",
        "cfg.yaml:3:10: data.train: found 2024; expected a file path or a list of file paths; "
        'quote it ("2024") if text is meant',
        'cfg.yaml:4:10: data.label: found no; quote it ("no") if text is meant, else write true, '
        "false, null or a plain decimal number",
        "cfg.yaml:5:3: data.hidden_size: unknown key; did you mean model.hidden_size?",
        "cfg.yaml:7:8: model.rnn: found 'grru'; expected gru, lstm or rnn; did you mean gru?",
        "cfg.yaml:8:3: model.rnn: given twice, on lines 7 and 8; keep one",
        "cfg.yaml:10:3: training.lrr: unknown key; did you mean training.lr?",
        "cfg.yaml:11:7: training.lr: found -1; expected a number above 0 and at most 1000",
        "cfg.yaml:12:11: batching: found 5; expected a mapping of keys",
        "cfg.yaml:13:1: train: unknown key; did you mean data.train?",
    )


@pytest.mark.parametrize(
    ("line", "where", "text"),
    [
        ("train: {max_epochs: 3}", "1: train", "did you mean training?"),
        ("model: {hidden-size: 3}", "9: model.hidden-size", "did you mean model.hidden_size?"),
        ("training.lr: 1", "1: training.lr", "write lr under training"),
        ("training: {training.lr: 1}", "12: training.training.lr", "write lr under training"),
        ("learning_rate: 1", "1: learning_rate", "did you mean training.lr?"),
        (
            "zzz: 1",
            "1: zzz",
            "expected seed, data, batching, model, training, pretraining or tune",
        ),
        (
            "batching: {zzz: 1}",
            "12: batching.zzz",
            "expected batch_size, max_tokens, bucketing or sort",
        ),
    ],
)
def test_unknown_key_names_the_nearest(line: str, where: str, text: str) -> None:
    assert problems(DATA + line) == (f"cfg.yaml:2:{where}: unknown key; {text}",)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("training: {lr: 1e400}", "found inf; expected a number above 0 and at most 1000"),
        ("training: {lr: 1, 5}", "training.5: unknown key; expected max_epochs"),
        ("training: {patience: 2.5}", "found 2.5; expected a whole number from 1 to 2147483647, a"),
        ("training: {device: CPU}", "expected auto, cpu, cuda, mps or cuda:N; did you mean cpu?"),
        ("training: {class_weights: {a: 1, b: -2}}", "class_weights.b: found -2; expected a numbe"),
        ("training: {class_weights: balance}", "balanced, {label: weight} or null; did you mean"),
        ("training: {augment: {slice: 1}}", "augment: found {slice: 1.0}; expected slice below 1"),
        ("batching: {batch_size: 1e3}", "found 1000.0; expected a whole number from 1 to 1000000"),
        ("model: {ngrams: [3, 2]}", "model.ngrams: found [3, 2]; expected the shorter size first"),
        ("model: {convolutions: [[8, 4, 1]]}", "found [8, 4, 1]; expected an odd kernel"),
        ("model: {pooling: [mean, mean]}", "found [mean, mean]; expected each of them once"),
        ("model: no", 'model: found no; quote it ("no")'),
        ("seed: " + "9" * 60, "seed: found 999999999999999999999999999999999999999…; expected"),
        ("tune: {space: {training.lr: [no]}}", "tune.space.training.lr.0: found no; quote it"),
    ],
)
def test_wrong_value_says_what_was_found_and_what_is_allowed(line: str, expected: str) -> None:
    (problem,) = problems(DATA + line)
    assert expected in problem


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            "train: x.foo",
            ["2:10: data.train: found 'x.foo'; expected an ending .csv, .tsv, .arff"],
        ),
        ("{train: x.zip}", ["data.train: found 'x.zip'; unpack it first: unzip 'x.zip'"]),
        (
            "{train: [x.csv, y.ts], sequence: s, label: l}",
            ["data.kind: found", "found 'x.csv' (csv), 'y.ts' (ts); expected files of one format"],
        ),
        (
            "train: x.jsonl.gz",
            [
                "1:1: data.sequence: missing; expected a column name or index (format jsonl)",
                "1:1: data.label: missing; expected a column name or index (format jsonl)",
            ],
        ),
        (
            "{train: x.csv, sequence: [1, s], label: s}",
            ["data.label: found 's', a column of data."],
        ),
        ("{train: x.csv, sequence: [a, -1], label: s}", ["2:32: data.sequence.1: found -1; expec"]),
        (
            "{train: x.ts, kind: text}",
            ["data.kind: found text, but data.train is ts; expected features"],
        ),
        (
            "{train: x.ft, kind: features}",
            ["but data.train is fasttext; expected text or tokens; for features: csv, tsv, jsonl"],
        ),
        (
            "{train: x.txt, test: y.foo}",
            ["2:24: data.test: found 'y.foo'; expected an ending .csv"],
        ),
        (
            "{train: x.txt, validation: {fold: 3, of: 2}}",
            ["found {fold: 3, of: 2}; expected fold from 1 to of"],
        ),
        (
            "{train: x.txt, validation: 0.5, test: 0.5}",
            ["data.test: found 0.5; with data.validation: 0.5 no row is left to train on"],
        ),
        # A wrong key hides no other problem, and makes none up.
        ("{train: x.csv, label: l, min_count: 0}", ["data.sequence: missing", "data.min_count:"]),
        ("{train: 1, kind: features}", ["data.train: found 1; expected a file path"]),
    ],
)
def test_data_section(data: str, expected: list[str]) -> None:
    found = problems(f"data:\n  {data}\n")
    assert len(found) == len(expected)
    for problem, start in zip(found, expected, strict=True):
        assert start in problem


OF_A_KEY = {
    "data.group": "g",
    "data.id": "i",
    "data.order": "o",
    "data.sequence": "s",
    "data.steps": "{x: token}",
    "data.standardize": "series",
    "training.augment": "{slice: 0.1}",
    "training.bptt": "5",
    "model.ngrams": "[1, 2]",
    "training.ngrams_lr": "1.5",
    "model.attention_size": "8",
    "model.subwords": "[3, 5]",
    "model.vectors": "v.vec",
    "model.vectors_keep": "7",
    "model.initial_scale": "0.5",
    "pretraining.data": "more.tsv",
    "pretraining.objective": "autoencoder",
    "model.convolutions": "[[8, 3, 1]]",
    "model.unroll": "masked",
}


@pytest.mark.parametrize("clash", clashes(), ids=lambda clash: f"{clash.key}, {clash.other}")
def test_keys_that_do_not_go_together_say_why(clash: Clash) -> None:
    def option(key: str, words: list[str]) -> str:
        return f"{key}={OF_A_KEY.get(key, 'true') if words[0] in ('set', 'not') else words[0]}"

    options = [option(clash.key, clash.values)]
    files = (
        "train: a.npz" if clash.others[0] == "features" else "train: a.tsv, sequence: s, label: l"
    )
    if "steps" in clash.others and clash.key == "data.steps":
        options.append("data.kind=text")
    elif clash.other not in ("data.kind", "model.initial_state"):
        options.append(option(clash.other, clash.others))
    found = problems(f"data: {{{files}}}", *options)
    assert any(
        line.startswith(f"--set {options[0]}: found") and clash.text in line for line in found
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ["model.unroll=masked", "model.engine=native"],
            "--set model.engine=native: found 'native', but model.unroll is 'masked'; expected "
            "auto or torch",
        ),
        (
            ["training.bptt=5", "model.bidirectional=true"],
            "--set training.bptt=5: found 5, but model.bidirectional is true, which reads from the "
            "end; set that to false",
        ),
        (
            ["data.group=g", "model.initial_state=carried", "data.validation=0.1"],
            "--set data.validation=0.1: found 0.1, which would divide data.group; expected a file",
        ),
        (
            ["data.group=g", "model.initial_state=carried", "data.test=b.npz", "data.kind=tokens"],
            "--set data.group=g: found 'g', but data.test is npz, which has no columns; expected "
            "null",
        ),
        (
            ["model.vectors=a.bin"],
            "--set model.vectors=a.bin: found 'a.bin'; a binary file; expected text, such as a "
            ".vec file or one of GloVe",
        ),
        (
            [
                "pretraining.objective=language_model",
                "model.bidirectional=true",
                "model.num_layers=2",
            ],
            "--set pretraining.objective=language_model: found language_model, but the upper of 2 "
            "bidirectional layers see the token; expected autoencoder, or set model.num_layers: 1",
        ),
    ],
)
def test_rules_between_keys(options: list[str], problem: str) -> None:
    assert problems(DATA, *options) == (problem,)


def test_keys_and_values_that_went_say_what_to_use_instead() -> None:
    retired = [key.split(".") for key in RETIRED_KEYS]
    gone = [(s, key) for s, key in retired if key not in SECTIONS[s].model_fields]
    for section, key in gone:
        (problem,) = problems(DATA, f"{section}.{key}=7")
        assert problem.startswith(f"--set {section}.{key}=7: this key was removed: ")
        default = RETIRED_KEYS[f"{section}.{key}"][0]
        text = f"{DATA}tune: {{}}\n"
        options = [f"{section}.{key}={'null' if default is None else default}"]
        assert parse_config(text, overrides=options) == parse_config(text)


@pytest.mark.parametrize("value", [".nan", "-.inf", "-1", "[]", "1e300"])
def test_every_key_refuses_nonsense_in_plain_words(value: str) -> None:
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


def test_thousands_of_problems_are_counted_and_reported_soon() -> None:
    found = problems("".join(f"key{number}: no\n" for number in range(3000)))
    assert len(found) == 51
    assert found[-1] == "2951 more problems not shown"


def test_mapping_of_python_is_checked_alike() -> None:
    good = {"data": {"train": "a.csv", "sequence": "s", "label": "l"}}
    assert config_from_mapping(good) == parse_config(DATA)
    with pytest.raises(ConfigError) as caught:
        config_from_mapping(
            {
                "data": {"train": b"x", "label": True},
                "training": {"lrr": 1, "lr": float("nan"), "class_weights": {0: 1.0}},
                "model": {"rnn": "grru"},
                "7": 1,
            }
        )
    assert set(caught.value.problems) == {
        "data.train: found b'x'; expected a file path or a list of file paths",
        "data.label: found true; expected a column name, a column index from 0 or null",
        "training.lrr: unknown key; did you mean training.lr?",
        "training.lr: found nan; expected a number above 0 and at most 1000",
        "training.class_weights.0: found key 0; expected text as key",
        "model.rnn: found 'grru'; expected gru, lstm or rnn; did you mean gru?",
        "7: unknown key; expected seed, data, batching, model, training, pretraining or tune",
    }


def test_mapping_takes_paths_sections_and_overrides(tmp_path: object) -> None:
    model = parse_config(DATA + "model: {rnn: lstm}").model
    given = {"data": {"train": tmp_path}, "model": model}  # a folder is read as txt
    config = config_from_mapping(given, ["model.num_layers=2"])
    assert (config.data.train, config.model.rnn) == (str(tmp_path), "lstm")
    assert given["model"] is model
    assert config.model.model_fields_set == {"rnn", "num_layers"}
    with pytest.raises(ConfigError, match=r"config: found \[\]; expected a mapping of sections"):
        config_from_mapping([])  # type: ignore[arg-type]
