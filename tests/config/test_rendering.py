"""Rendering of a config, which reads back to itself, and the schema for editors."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.config import Config, config_schema, parse_config, render_config
from seqtrain.config.schema import KEYS, SECTIONS
from tests.helpers.examples import examples

TRICKY = ["no", "012", "a: b", "1e-3", "null", "~", "#x", "x #y", "- a", "é", "日本", "\u2028"]
TRICKY += ["\ufeff", "\x85", "\t", "'", '"', "\\", "{a}", "\U0001f600", "\n", " ", "2024-01-01"]
TEXT = st.sampled_from(TRICKY) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
PATH = TEXT.filter(lambda text: "\0" not in text)
FRACTION = st.floats(0, 1, exclude_max=True)
POSITIVE = st.floats(0, 1000, exclude_min=True)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Draw a config whose keys fit together."""
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
            "max_length": draw(st.none() | st.integers(1, 65536)),
        },
        "training": {
            "lr": draw(POSITIVE),
            "max_grad_norm": draw(st.none() | POSITIVE),
            "class_weights": draw(
                st.none() | st.just("balanced") | st.dictionaries(TEXT, POSITIVE, max_size=3)
            ),
            "device": draw(st.sampled_from(["auto", "cpu", "cuda:1", "mps"])),
        },
    }
    return Config.model_validate(values)


@given(configs(), st.booleans())
@examples(150)
def test_rendered_text_reads_back_to_the_same_config(config, marked):
    text = render_config(config, defaulted=marked)
    assert parse_config(text) == config
    keys = [line.split(":")[0].strip() for line in text.splitlines()]
    assert sorted(keys) == sorted(key.rpartition(".")[2] for key in KEYS)


def test_plain_where_possible_and_defaults_marked():
    config = parse_config(
        "data: {train: ../data/a-1.tsv, sequence: [0, 'no'], label: label}\n"
        "training: {lr: 1e-5}\nmodel: {rnn: gru}",
        overrides=["seed=0"],
    )
    lines = render_config(config, defaulted=True).splitlines()
    assert "  train: ../data/a-1.tsv" in lines
    assert '  sequence: [0, "no"]' in lines
    assert "  lr: 1e-05" in lines
    marked = {line.split(":")[0].strip() for line in lines if line.endswith("  # default")}
    assert {"hidden_size", "validation", "max_epochs", "batch_size"} <= marked
    assert not marked & {"train", "sequence", "label", "training", "seed", "rnn"}
    assert "#" not in render_config(config)


def test_schema_describes_every_key_for_editors():
    schema = json.loads(json.dumps(config_schema()))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["required"] == ["data"]
    assert schema["additionalProperties"] is False
    for section in SECTIONS.values():
        found = schema["$defs"][section.__name__]
        assert found["description"]
        assert found["additionalProperties"] is False
        assert set(found["properties"]) == set(section.model_fields)
        assert all(key["description"] for key in found["properties"].values())


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("{train: X.NPZ.gz}", "features  # default"),
        ("{train: x, format: ts}", "features  # default"),
        ("{train: x.ts, kind: auto}", "features"),
        ("{train: x.npz, kind: tokens}", "tokens"),
        ("{train: x.jsonl, sequence: s, label: l}", "text  # default"),
    ],
)
def test_kind_goes_by_trains_format_and_is_never_auto(data, kind):
    config = parse_config(f"data: {data}")
    lines = render_config(config, defaulted=True).splitlines()
    (line,) = [" ".join(line.split()) for line in lines if line.startswith("  kind:")]
    assert line == " ".join(f"kind: {kind}".split())
    assert parse_config(render_config(config)) == config
