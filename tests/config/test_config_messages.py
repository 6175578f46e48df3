"""Every wrong value is told on one line: where, what was found, what is allowed."""

import pytest

from seqtrain.config import Config, config_from_mapping, parse_config
from seqtrain.config.expectation import FOREIGN_NAMES, KNOWN_KEYS, SECTIONS
from seqtrain.errors import ConfigError

DATA = "data: {train: a.csv, sequence: s, label: l}\n"


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "cfg.yaml")
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
        'cfg.yaml:4:10: data.label: found no; write true or false, or quote it ("no") if text is '
        "meant",
        "cfg.yaml:5:3: data.hidden_size: unknown key; did you mean model.hidden_size?",
        "cfg.yaml:7:8: model.rnn: found 'grru'; expected gru, lstm or rnn; did you mean 'gru'?",
        "cfg.yaml:8:3: model.rnn: given twice, on lines 7 and 8; keep one",
        "cfg.yaml:10:3: training.lrr: unknown key; did you mean training.lr?",
        "cfg.yaml:11:7: training.lr: found -1; expected a number above 0 and at most 1000",
        "cfg.yaml:12:11: batching: found 5; expected a mapping of keys",
        "cfg.yaml:13:1: train: unknown key; did you mean data.train?",
    )


def test_a_key_that_is_gone_may_stand_with_its_default() -> None:
    assert parse_config(f"{DATA}training: {{shards: null}}", "cfg.yaml").training.lr > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("modle: {}", "1:1: modle: unknown key; did you mean model?"),
        ("model: {hidden-size: 3}", "1:9: model.hidden-size: unknown key; did you mean model.hidd"),
        ("model: {epochs: 3}", "1:9: model.epochs: unknown key; did you mean training.max_epochs?"),
        ("optimizer: adam", "1:1: optimizer: unknown key; did you mean training.optimizer?"),
        ("training.lr: 1", "1:1: training.lr: unknown key; write lr under training"),
        ("training: {shards: 4}", "training.shards: this key was removed: processes"),
        ("training: {learning_rate: 1}", "learning_rate: unknown key; did you mean training.lr?"),
        ("learning_rate: 1", "learning_rate: unknown key; did you mean training.lr?"),
        ("model: {cell: lstm}", "1:9: model.cell: unknown key; did you mean model.rnn?"),
        ("model: {seed: 1}", "model.seed: unknown key; seed stands at the top, in no section"),
        (
            "zzz: 1",
            "1:1: zzz: unknown key; expected seed, data, batching, model, training, pretraining or "
            "tune",
        ),
        (
            "batching: {zzz: 1}",
            "zzz: unknown key; expected batch_size, max_tokens, bucketing or sort",
        ),
    ],
)
def test_unknown_key_names_the_nearest(text: str, expected: str) -> None:
    assert expected in problems(DATA.rstrip() + "\n" + text)[0].replace("cfg.yaml:2", "1")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("training: {lr: 0}", "training.lr: found 0; expected a number above 0 and at most 1000"),
        ("training: {lr: .inf}", "found .inf; expected a number above 0 and at most 1000"),
        ("training: {lr: 1e400}", "found 1e400; expected a number above 0 and at most 1000"),
        ("training: {warmup: .nan}", "found .nan; expected a number of at least 0 and below 1"),
        ("training: {lr: 1, 5}", "training.5: unknown key; expected max_epochs"),
        ("training: {lr: true}", "found true; expected a number above 0"),
        ("training: {lr: '0.1'}", "found '0.1'; expected a number above 0"),
        ("training: {patience: 2.5}", "found 2.5; expected a whole number from 1 to 2147483647, a"),
        ("training: {patience: 0}", "auto or null"),
        ("training: {device: CPU}", "expected auto, cpu, cuda, mps or cuda:N; did you mean 'cpu'?"),
        ("training: {device: 0}", "found 0; expected auto, cpu, cuda, mps or cuda:N"),
        ("training: {class_weights: {a: 1, b: -2}}", "class_weights.b: found -2; expected a numbe"),
        ("training: {class_weights: balance}", "balanced, {label: weight} or null; did you mean"),
        ("batching: {batch_size: 1e3}", "found 1e3; expected a whole number from 1 to 1000000"),
        ("model: {bidirectional: 1}", "found 1; expected true or false"),
        ("model: {hidden_size: 1000000000}", "expected a whole number from 1 to 65536"),
        ("model: []", "model: found an empty list; expected a mapping of keys"),
        ("seed: 9223372036854775808", "expected a whole number from 0 to 9223372036854775807"),
        ("seed: " + "9" * 60, "seed: found 999999999999999999999999999999999999999…; expected"),
    ],
)
def test_wrong_value_says_what_was_found_and_what_is_allowed(line: str, expected: str) -> None:
    assert any(expected in problem for problem in problems(DATA + line))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", ["1:1: data.train: missing; expected a file path or a list of file paths"]),
        (
            "train: x.foo",
            ["2:10: data.train: found 'x.foo'; expected an ending .csv, .tsv, .jsonl"],
        ),
        (
            "train: x.jsonl.gz",
            [
                "1:1: data.sequence: missing; expected a column name or index (format jsonl",
                "1:1: data.label: missing; expected a column name or index (format jsonl",
            ],
        ),
        (
            "{train: x.csv, sequence: null, label: 1}",
            ["2:28: data.sequence: missing; expected a column name or index"],
        ),
        (
            "{train: x.csv, sequence: s, label: s}",
            ["2:38: data.label: found 's', a column of data."],
        ),
        (
            "{train: x.csv, sequence: [1, s], label: s}",
            ["data.label: found 's', a column of data."],
        ),
        (
            "{train: x.csv, sequence: [a, -1], label: s}",
            ["2:32: data.sequence.1: found -1; expect"],
        ),
        (
            "{train: x.csv, sequence: [], label: s}",
            ["data.sequence: found an empty list; expected"],
        ),
        (
            "{train: x.ts, kind: text}",
            ["data.kind: found text, but data.train is ts, which holds features; write"],
        ),
        (
            "{train: x.txt, kind: features}",
            ["2:24: data.kind: found features, but data.train is txt; expected jsonl, npz"],
        ),
        (
            "{train: x.ft, kind: features}",
            ["data.kind: found features, but data.train is fasttext; expected jsonl, npz, parquet"],
        ),
        (
            "{train: x.csv, kind: features, sequence: s, label: l}",
            ["data.kind: found features, but data.train is csv; expected jsonl, npz, parquet"],
        ),
        ("{train: x.txt, validation: y.ts}", ["data.kind: found text, but data.validation is ts"]),
        (
            "{train: x.txt, test: y.foo}",
            ["2:24: data.test: found 'y.foo'; expected an ending .csv"],
        ),
        (
            "{train: x.txt, validation: 1.5}",
            ["data.validation: found 1.5; expected a file path, a list of file paths, a"],
        ),
    ],
)
def test_data_section(data: str, expected: list[str]) -> None:
    found = problems(f"data:\n  {data}\n")
    assert len(found) == len(expected)
    for problem, start in zip(found, expected, strict=True):
        assert start in problem


def test_quotes_are_advised_only_where_no_number_could_be_meant() -> None:
    (problem,) = problems("data: {train: x.txt, validation: 1.5}")
    assert problem.endswith(", a number above 0 and below 1, {fold: I, of: N} or null")


def test_rules_between_keys_are_told_beside_other_problems() -> None:
    found = problems("data: {train: x.csv, label: l, min_count: 0}\n")
    assert [line.split(": ")[1] for line in found] == ["data.sequence", "data.min_count"]


@pytest.mark.parametrize(
    "data",
    [
        "{train: x.csv.gz, sequence: 0, label: 1}",
        "{train: X.TSV, sequence: [a, b], label: c, validation: 0.1}",
        "{train: x.ndjson, kind: features, sequence: s, label: l}",
        "{train: x.ts, kind: features}",
        "{train: x.ts.gz, standardize: series}",
        "{train: x.npz, kind: features, test: y.ts}",
        "{train: x.fasttext}",
        "{train: x.anything, format: txt}",
    ],
)
def test_formats_and_columns_that_fit_are_accepted(data: str) -> None:
    assert isinstance(parse_config(f"data: {data}"), Config)


def test_folder_is_read_as_txt(tmp_path: object) -> None:
    assert parse_config(f"data: {{train: '{tmp_path}'}}").data.train == str(tmp_path)


def test_empty_sections_are_defaults() -> None:
    assert parse_config(DATA + "model:\ntraining:\n") == parse_config(DATA)


FIELDS = [path for path in KNOWN_KEYS if path[0] not in SECTIONS or len(path) == 2]


@pytest.mark.parametrize("path", FIELDS, ids=lambda path: ".".join(path))
@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf", "-1", "[]", "1e300"])
def test_every_key_refuses_nonsense_in_plain_words(path: tuple[str, ...], value: str) -> None:
    lines = ["data:", "  train: a.csv", "  sequence: s", "  label: l"]
    lines = [line for line in lines if not line.startswith(f"  {path[-1]}:")]
    key, indent = path[-1], "  " * (len(path) - 1)
    if path[0] != "data":
        lines += [f"{path[0]}:"] * (len(path) - 1)
    lines.append(f"{indent}{key}: {value}")
    where = f"cfg.yaml:{len(lines)}:{len(indent) + len(key) + 3}: {'.'.join(path)}"
    (problem,) = (line for line in problems("\n".join(lines)) if "missing; exp" not in line)
    assert problem.startswith(where)
    for jargon in ("Input", "constrained", "literal[", "pydantic", "type=", "valid "):
        assert jargon not in problem


def test_foreign_names_lead_to_keys_that_exist() -> None:
    assert set(FOREIGN_NAMES) <= set(KNOWN_KEYS)
    leaves = {key[-1] for key in KNOWN_KEYS}
    assert not leaves & {name for names in FOREIGN_NAMES.values() for name in names}


def test_lines_stay_short() -> None:
    long = "x" * 3000
    text = f"""
? {long}
: 1
training:
  ? {long}
  : 1
  lr: {long}
  device: {long}
data: {{train: !{long} 1}}
"""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, f"/{long}/cfg.yaml")
    assert len(caught.value.problems) == 5
    for problem in caught.value.problems:
        assert len(f"seqtrain: {problem}") < 200
        assert "cfg.yaml:" in problem


def test_control_characters_never_reach_the_terminal() -> None:
    (problem, *_) = problems('"\\e[31m\\nx\\u202e": 1')
    assert problem.isprintable()


def test_thousands_of_problems_are_counted_and_answered_soon() -> None:
    found = problems("".join(f"key{number}: no\n" for number in range(3000)))
    assert len(found) == 51
    assert found[-1] == "5951 more problems not shown"


def test_plain_mapping_is_checked_alike() -> None:
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
        "data.train: found a value of type bytes; expected a file path or a list of file paths",
        "data.label: found true; expected a column name, a column index from 0 or null",
        "training.lrr: unknown key; did you mean training.lr?",
        "training.lr: found nan; expected a number above 0 and at most 1000",
        "training.class_weights.0: found key 0; expected text as key",
        "model.rnn: found 'grru'; expected gru, lstm or rnn; did you mean 'gru'?",
        "7: unknown key; expected seed, data, batching, model, training, pretraining or tune",
    }


def test_plain_mapping_takes_paths_sections_and_overrides(tmp_path: object) -> None:
    model = parse_config(DATA + "model: {rnn: lstm}").model
    given = {"data": {"train": tmp_path, "format": "txt"}, "model": model}
    config = config_from_mapping(given, ["model.num_layers=2"])
    assert (config.data.train, config.model.rnn, config.model.num_layers) == (
        str(tmp_path),
        "lstm",
        2,
    )
    assert given["model"] is model
    assert config.model.model_fields_set == {"rnn", "num_layers"}
    with pytest.raises(
        ConfigError, match="config: found an empty list; expected a mapping of sections"
    ):
        config_from_mapping([])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "model: {unroll: masked, engine: native}",
            "c.yaml:2:33: model.engine: found native, which reads packed sequences alone; "
            "expected auto or torch for unroll masked",
        ),
        (
            "model: {join: sum}",
            "c.yaml:2:15: model.join: found sum, but with bidirectional: false there is one "
            "direction and nothing to join; expected concat, or set bidirectional: true",
        ),
        (
            "model: {initial_scale: 0.5}",
            "c.yaml:2:24: model.initial_scale: found 0.5, but initial_state is zeros, which draws "
            "nothing; expected 0.1, or set initial_state: random",
        ),
        (
            "model: {bidirectional: true}\ntraining: {bptt: 5}",
            "c.yaml:3:18: training.bptt: found 5, but the backward direction begins at a "
            "sequence's end, so that no piece comes first; expected null, or set "
            "model.bidirectional: false",
        ),
        (
            "model: {unroll: padded}\ntraining: {bptt: 5}",
            "c.yaml:3:18: training.bptt: found 5, but padding changes the state that the next "
            "piece begins with; expected null, or set model.unroll: packed or masked",
        ),
        (
            "model: {initial_state: carried}",
            "c.yaml:2:24: model.initial_state: found carried, but no group says which rows follow "
            "one another; set data.group (pieces of one long sequence are carried on anyway: "
            "training.bptt)",
        ),
        (
            "training: {bptt: 0}",
            "c.yaml:2:18: training.bptt: found 0; expected a whole number from 1 to 2147483647 "
            "or null",
        ),
    ],
)
def test_keys_that_do_not_go_together_say_why(keys: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(f"data: {{train: a.tsv, sequence: s, label: l}}\n{keys}\n", "c.yaml")
    assert caught.value.problems == (problem,)


@pytest.mark.parametrize(
    ("keys", "model", "problem"),
    [
        (
            "group: g",
            "{}",
            "data.group: found 'g', but model.initial_state is zeros, which doesn't use it; "
            "expected null, or set model.initial_state: carried",
        ),
        (
            "group: g, validation: 0.1",
            "{initial_state: carried}",
            "data.validation: found 0.1, which would part the groups of data.group; expected a "
            "file or null",
        ),
        (
            "validation: 0.5, test: 0.5",
            "{}",
            "data.test: found 0.5, which with data.validation: 0.5 leaves nothing to train on; "
            "expected a number below 0.5",
        ),
        (
            "group: g, kind: tokens, test: b.npz",
            "{initial_state: carried}",
            "data.group: found 'g', but data.test is npz, which has no such column; expected null",
        ),
        (
            "group: g",
            "{initial_state: carried, bidirectional: true}",
            "model.initial_state: found carried, but the backward direction begins where no row "
            "before ended; expected zeros, random or learned, or set bidirectional: false",
        ),
        (
            "group: g",
            "{initial_state: carried, unroll: padded}",
            "model.initial_state: found carried, but padding changes the state that the next row "
            "begins with; expected zeros, random or learned, or set unroll: packed or masked",
        ),
    ],
)
def test_groups_and_carried_states_ask_for_each_other(keys: str, model: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(
            f"data: {{train: a.tsv, sequence: s, label: l, {keys}}}\nmodel: {model}\n", "c.yaml"
        )
    (found,) = caught.value.problems
    assert found.split(": ", 1)[1] == problem
