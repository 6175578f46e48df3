"""The resolved configuration as YAML reads back to itself; the schema serves editors."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.config import Config, config_schema, parse_config, render_config
from seqtrain.config.expectation import KNOWN_KEYS
from tests.helpers.examples import examples

TRICKY = [
    "no",
    "012",
    "a: b",
    "1e-3",
    "null",
    "~",
    "#x",
    "x #y",
    "- a",
    "é",
    "日本",
    "\u2028",
    "\ufeff",
]
TRICKY += ["\x85", "\t", "'", '"', "\\", "{a}", "x" * 2000, "\U0001f600", "\n", " ", "2024-01-01"]
TEXT = st.sampled_from(TRICKY) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
PATH = TEXT.filter(lambda text: "\0" not in text)
FRACTION = st.floats(0, 1, exclude_max=True)
POSITIVE = st.floats(0, 1000, exclude_min=True)
COUNT = st.integers(1, 65536)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Draw a configuration whose keys fit together."""
    columns = draw(st.lists(PATH | st.integers(0, 9), min_size=2, max_size=4, unique_by=repr))
    values = {
        "seed": draw(st.integers(0, 2**63 - 1)),
        "data": {
            "train": draw(PATH),
            "validation": draw(st.none() | PATH | FRACTION.filter(bool)),
            "format": draw(st.sampled_from(["csv", "tsv", "jsonl"])),
            "header": draw(st.sampled_from(["auto", True, False])),
            "sequence": draw(st.sampled_from([columns[1], columns[1:]])),
            "label": columns[0],
            "max_length": draw(st.none() | COUNT),
        },
        "training": {
            "lr": draw(POSITIVE),
            "warmup": draw(FRACTION),
            "max_grad_norm": draw(st.none() | POSITIVE),
            "class_weights": draw(
                st.none() | st.just("balanced") | st.dictionaries(TEXT, POSITIVE, max_size=3)
            ),
            "device": draw(st.sampled_from(["auto", "cpu", "cuda", "cuda:1", "mps"])),
        },
    }
    return Config.model_validate(values)


@given(configs(), st.booleans())
@examples(150)
def test_rendered_text_reads_back_to_the_same_configuration(config: Config, marked: bool) -> None:
    text = render_config(config, defaulted=marked)
    assert parse_config(text) == config
    keys = [line.split(":")[0].strip() for line in text.splitlines()]
    assert keys == [path[-1] for path in sorted_as_written()]


def sorted_as_written() -> list[tuple[str | int, ...]]:
    """Order the known keys as a file has them: each section, then its keys."""
    top = [path[0] for path in KNOWN_KEYS if len(path) == 1]
    return sorted(KNOWN_KEYS, key=lambda path: top.index(path[0]))


def test_very_long_label_reads_back() -> None:
    weights = "{? '" + "x" * 3000 + "' : 2.0, a: 1.0}"
    config = parse_config(f"data: {{train: a.txt}}\ntraining: {{class_weights: {weights}}}")
    assert parse_config(render_config(config)) == config


def test_plain_where_possible_and_defaults_marked() -> None:
    config = parse_config(
        "data: {train: ../data/a-1.tsv, sequence: [0, 'no'], label: label}\ntraining: {lr: 1e-5}"
    )
    lines = render_config(config, defaulted=True).splitlines()
    assert "  train: ../data/a-1.tsv" in lines
    assert '  sequence: [0, "no"]' in lines
    assert "  lr: 1e-05" in lines
    assert {line.index("#") for line in lines if "#" in line} == {28}
    marked = {line.split(":")[0].strip() for line in lines if line.endswith("  # default")}
    assert {"seed", "rnn", "validation", "max_epochs", "batch_size"} <= marked
    assert not marked & {"train", "sequence", "label", "training"}
    assert "#" not in render_config(config)


def test_value_equal_to_the_default_but_given_is_not_marked() -> None:
    text = "data: {train: a.txt}\nmodel: {rnn: gru}"
    options = ("seed=0",)
    lines = render_config(parse_config(text, overrides=options), defaulted=True).splitlines()
    assert "seed: 0" in lines
    assert "  rnn: gru" in lines


def test_schema_describes_every_key_for_editors() -> None:
    schema = json.loads(json.dumps(config_schema()))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "seqtrain configuration"
    assert schema["required"] == ["data"]
    assert schema["additionalProperties"] is False
    for section in schema["$defs"].values():
        assert section["description"]
        assert section["additionalProperties"] is False
        for key in section["properties"].values():
            assert key["description"]


@pytest.mark.parametrize("key", ["train", "rnn", "lr", "batch_size"])
def test_schema_names_keys(key: str) -> None:
    assert any(key in section["properties"] for section in config_schema()["$defs"].values())


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("{train: x.ts}", "features  # default"),
        ("{train: X.NPZ.gz}", "features  # default"),
        ("{train: x, format: ts}", "features  # default"),
        ("{train: x.ts, kind: auto}", "features"),
        ("{train: x.npz, kind: tokens}", "tokens"),
        ("{train: x.txt}", "text  # default"),
        ("{train: x.jsonl, sequence: s, label: l}", "text  # default"),
    ],
)
def test_kind_goes_by_trains_format_and_is_never_auto(data: str, kind: str) -> None:
    config = parse_config(f"data: {data}")
    (line,) = [
        " ".join(line.split())
        for line in render_config(config, defaulted=True).splitlines()
        if line.startswith("  kind:")
    ]
    assert line == " ".join(f"kind: {kind}".split())
    assert parse_config(render_config(config)) == config


def test_kind_goes_by_a_train_file_named_by_an_override() -> None:
    config = parse_config("data: {train: x.txt}", overrides=["data.train=y.ts"])
    assert config.data.kind == "features"
