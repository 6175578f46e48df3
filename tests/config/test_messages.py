"""Every wrong value gets one line: where, what was found, what is allowed, the nearest name."""

import pytest

from seqtrain.config import config_from_mapping, parse_config
from seqtrain.config.problems import KEYS, RETIRED_KEYS
from seqtrain.config.rules import CLASHES
from seqtrain.config.schema import SECTIONS
from seqtrain.errors import ConfigError

DATA = "data: {train: a.csv, sequence: s, label: l}\n"
PLAIN_KEYS = [key for key in KEYS if key not in SECTIONS]


def problems(text: str, *options: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "cfg.yaml", options)
    return caught.value.problems


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
    "data.label_separator": "'|'",
    "training.logit_adjustment": "0.5",
}


@pytest.mark.parametrize("clash", CLASHES.strip().splitlines())
def test_keys_that_do_not_go_together_say_why(clash):
    *sides, text = map(str.split, clash.split("|"))

    def option(key: str, words: list[str]) -> str:
        return f"{key}={OF_A_KEY.get(key, 'true') if words[0] in ('set', 'not') else words[0]}"

    (key, *values), *others = sides
    options, mentioned = [option(key, values)], [word for other in others for word in other]
    files = "train: a.npz" if "features" in mentioned else "train: a.tsv, sequence: s, label: l"
    if "steps" in mentioned and key == "data.steps":
        options.append("data.kind=text")
    for other, *words in others:
        if other == "model.num_layers":
            options.append("model.num_layers=2")
        elif other not in ("data.kind", "model.initial_state"):
            options.append(option(other, words))
    found = problems(f"data: {{{files}}}", *options)
    said = " ".join(text)
    assert any(line.startswith(f"--set {options[0]}: found") and said in line for line in found)


def test_keys_and_values_that_went_say_what_to_use_instead():
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
    assert found[-1] == "2951 more problems not shown"


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
    with pytest.raises(ConfigError, match=r"config: found \[\]; expected a mapping of sections"):
        config_from_mapping([])  # type: ignore[arg-type]
