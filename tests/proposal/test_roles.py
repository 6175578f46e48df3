"""Roles of columns that `init` finds: header, label, sequence, order, row features, ignored."""

import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import Config, parse_config
from seqtrain.errors import DataError
from seqtrain.proposal import InitOptions, Proposal, propose
from seqtrain.sequences.dataset import prepare
from tests.proposal.test_inspection import WORDS

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def write(path: Path, names: list[str], rows: list[list[Any]], mark: str = ",") -> str:
    lines = [mark.join(map(str, row)) for row in ([names, *rows] if names else rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def proposed(path: str, **options: Any) -> tuple[Config, Proposal]:
    proposal = propose([path], InitOptions(**options))
    return parse_config(proposal.text), proposal


def sentences(count: int = 60) -> list[str]:
    draw = random.Random(0)
    return [f"{' '.join(draw.choices(WORDS, k=7))} {row}" for row in range(count)]


def test_a_header_may_have_a_name_that_occurs_as_a_value(tmp_path):
    rows = [[["text", "good", "bad"][i % 3], sentence] for i, sentence in enumerate(sentences())]
    config, _ = proposed(write(tmp_path / "a.csv", ["label", "text"], [*rows, ["label", "x y"]]))
    assert (config.data.label, config.data.sequence) == ("label", "text")


def test_names_that_never_occur_below_are_a_header(tmp_path):
    rows = [["good" if i % 2 else "bad", sentence] for i, sentence in enumerate(sentences())]
    config, _ = proposed(write(tmp_path / "a.csv", ["Zielwert?", "inhalt (roh)"], rows))
    assert (config.data.label, config.data.sequence) == ("Zielwert?", "inhalt (roh)")


def test_a_usual_header_may_be_repeated_below(tmp_path):
    """As in files that were joined, each with its header."""
    rows = [["good" if i % 2 else "bad", sentence] for i, sentence in enumerate(sentences())]
    names = ["label", "text"]
    path = write(tmp_path / "a.csv", names, [*rows, names, *rows])
    config, _ = proposed(path, settings=["data.bad_rows=drop"])
    assert (config.data.label, config.data.sequence) == ("label", "text")


@pytest.mark.parametrize("word", ["plain", "café"])
@pytest.mark.parametrize("damage", [b"", b"\x00\x01"])
def test_a_damaged_file_of_a_folder_is_named_and_left_out(tmp_path, word, damage):
    """Bytes that are no UTF-8, or a binary file."""
    for i, sentence in enumerate(sentences()):
        folder = tmp_path / "texts" / ("good" if i % 2 else "bad")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.txt").write_text(f"{word} {sentence}", encoding="utf-8")
    (folder / "damaged.txt").write_bytes(b"walk " + damage + b"\xff\xfe\x80 home")
    config, proposal = proposed(str(tmp_path / "texts"))
    assert (config.data.bad_rows, config.data.encoding) == ("drop", "utf-8")
    assert [line for line in proposal.warnings if "damaged.txt" in line]


def test_a_column_that_the_user_names_is_in_the_header(tmp_path):
    rows = [[f"{i}.5", "kind" if i % 2 else "mood", s] for i, s in enumerate(sentences())]
    path = write(tmp_path / "a.csv", ["7", "kind", "mood"], rows)
    config, _ = proposed(path, label="kind")
    assert config.data.label == "kind"


def test_the_comment_names_the_rows_that_fit_will_hold_out(tmp_path):
    labels = ["good"] * 40 + ["bad"] * 35 + ["odd"] * 5
    rows = [[label, text] for label, text in zip(labels, sentences(80), strict=True)]
    config, proposal = proposed(write(tmp_path / "a.csv", ["label", "text"], rows))
    held_out = len(prepare(config).splits["validation"])
    assert held_out > config.data.validation * 80
    assert f"# {held_out} rows of train choose" in proposal.text


def test_a_label_of_few_values_beats_codes_that_repeat(tmp_path):
    rows = [[s, 100 + i // 3, "yn"[i % 2]] for i, s in enumerate(sentences(120))]
    config, _ = proposed(write(tmp_path / "a.csv", ["body", "product_id", "verdict"], rows))
    assert config.data.label == "verdict"


def test_equally_good_labels_are_listed_whole(tmp_path):
    rows = [[s, "yn"[i % 2], "ab"[i % 2]] for i, s in enumerate(sentences())]
    path = write(tmp_path / "a.csv", ["body", "first_verdict", "second_verdict"], rows)
    with pytest.raises(DataError) as refused:
        proposed(path)
    first, second = refused.value.problems[1:]
    assert "first_verdict" in first
    assert "second_verdict" in second


def test_the_text_that_tells_the_classes_is_the_sequence(tmp_path):
    draw = random.Random(1)

    def word(alphabet: str) -> str:
        return "".join(draw.choices(alphabet, k=12))

    rows = [[word(LETTERS), word("CNO()=1" if i % 2 else "CSF()#2"), i % 2] for i in range(400)]
    config, _ = proposed(write(tmp_path / "a.csv", ["name", "smiles", "toxic"], rows))
    assert config.data.sequence == "smiles"


def events(steps: int = 6, ids: int = 40) -> list[list[Any]]:
    """Return rows of (case, number, place, age, city, outcome), the case of which is known."""
    draw = random.Random(2)
    places = ["the old mill by the river", "a house on the far hill", "one shop near the lake"]
    rows = []
    for case in range(ids):
        age = 20 + case % 37
        for step in range(steps):
            place = places[draw.randrange(3)] + " " + draw.choice(LETTERS)
            rows.append([f"c{case}", 10 * step, place, age, "xyz"[case % 3], "ab"[case % 2]])
    return rows


EVENTS = ["case_id", "t_ms", "place", "age", "city", "outcome"]


def test_numbers_that_count_up_evenly_within_an_id_are_the_order(tmp_path):
    config, _ = proposed(write(tmp_path / "a.csv", EVENTS, events()), label="outcome")
    assert (config.data.id, config.data.order) == ("case_id", "t_ms")


def test_texts_that_repeat_are_tokens_and_one_value_per_id_is_a_row_feature(tmp_path):
    config, proposal = proposed(write(tmp_path / "a.csv", EVENTS, events()), label="outcome")
    assert config.data.steps == {"place": "token"}
    assert config.data.static == {"age": "number", "city": "token"}
    assert any("'age', 'city': one value" in line for line in proposal.warnings)


def test_a_row_feature_that_gives_the_label_or_the_id_away_is_not_used(tmp_path):
    rows = [[*row, {"a": "fine", "b": "dire"}[row[-1]], f"person {row[0]}"] for row in events()]
    rows = [[*row, f"{row[-3]}{int(row[0][1:]) % 4}"] for row in rows]
    rows = [[*row, 2 * (int(row[0][1:]) % 3) + (row[5] == "b")] for row in rows]
    path = write(tmp_path / "a.csv", [*EVENTS, "verdict", "person", "detail", "stage"], rows)
    config, proposal = proposed(path, label="outcome")
    assert config.data.static == {"age": "number", "city": "token"}
    for name in ("verdict", "detail", "stage"):
        assert any(f"'{name}' gives" in line for line in proposal.warnings)
    assert any("'person' (the id" in line for line in proposal.uses)


@pytest.mark.parametrize("form", ["{}-{}", "won {} of {}"])
def test_many_values_that_each_have_one_label_give_it_away(tmp_path, form):
    """Such as the final scores of matches."""
    draw, rows = random.Random(form), list[list[Any]]()
    for match in range(60):
        one, other = draw.choices(range(5), k=2)
        result = "home" if one > other else "away" if one < other else "drawn"
        own = [form.format(one, other), draw.choice(["rain", "sun", "wind"]), result]
        rows += [[match, 10 * k, draw.choice(["shot", "foul", "card"]), *own] for k in range(8)]
    path = write(tmp_path / "a.csv", ["match_id", "minute", "event", "end", "sky", "result"], rows)
    config, proposal = proposed(path)
    assert config.data.label == "result"
    assert config.data.static == {"sky": "token"}
    assert any("'end' gives" in line for line in proposal.warnings)


def test_times_of_day_and_durations_are_numbers(tmp_path):
    rows = [
        [f"{6 + case % 3}:{case:02}", f"{step * 7 % 5}:{case:02}:09", *row]
        for number, row in enumerate(events())
        for case, step in [divmod(number, 6)]
    ]
    path = write(tmp_path / "a.csv", ["bed", "run", *EVENTS], rows)
    config, _ = proposed(path, label="outcome", settings=["data.validation=null"])
    assert config.data.order == "t_ms"
    assert config.data.steps == {"run": "number", "place": "token"}
    assert config.data.static == {"bed": "number", "age": "number", "city": "token"}
    data = prepare(config)
    column = data.preprocessing.steps.numbers[0]
    seconds = [step * 7 % 5 * 3600 + case * 60 + 9 for case in range(40) for step in range(6)]
    assert column.scale.mean[0] == pytest.approx(sum(seconds) / len(seconds))
    for row in rows:
        row[3] = f"{8 + row[3] // 10}:30"
    path = write(tmp_path / "a.csv", ["bed", "run", "case_id", "at", *EVENTS[2:]], rows)
    assert proposed(path, label="outcome")[0].data.order == "at"


def test_iso_durations_are_numbers_in_seconds(tmp_path):
    """As pandas writes a column of timedeltas to Parquet."""
    rows = [[f"PT{n % 7}M{n % 11}.5S", *row] for n, row in enumerate(events())]
    config, _ = proposed(write(tmp_path / "a.csv", ["run", *EVENTS], rows), label="outcome")
    assert config.data.steps == {"run": "number", "place": "token"}
    config = config.with_keys(data={"validation": None}, training={"refit": False})
    data = prepare(config)
    seconds = [n % 7 * 60 + n % 11 + 0.5 for n in range(len(rows))]
    mean = data.preprocessing.steps.numbers[0].scale.mean[0]
    assert mean == pytest.approx(sum(seconds) / len(seconds))


def test_codes_are_tokens_also_where_the_rows_are_sorted_by_them(tmp_path):
    """As ratings are that are sorted by the rater; the sum of the codes is a measurement."""
    draw = random.Random(4)
    likes = {label: draw.sample(range(200), 30) for label in "abc"}
    rows = []
    for case in range(120):
        label, total = "abc"[case % 3], 0
        for code in sorted(draw.sample(likes[label], 8)):
            total += draw.randint(1, 9)
            rows.append([f"c{case}", code, total, draw.choice([1, 2, 3, 4, 5]), label])
    path = write(tmp_path / "a.csv", ["case_id", "rater", "so_far", "stars", "outcome"], rows)
    config, _ = proposed(path, label="outcome")
    assert config.data.steps == {"rater": "token", "so_far": "number", "stars": "number"}


@pytest.mark.parametrize(("classes", "has_trees"), [(100, True), (150, False)])
def test_many_classes_of_a_step_table_take_no_trees_and_few_updates(tmp_path, classes, has_trees):
    draw = random.Random(5)
    rows = []
    for case in range(4 * classes):
        label = case % classes
        for step in range(4):
            place = f"p{2 * label + draw.randrange(2)}"
            rows.append([f"c{case}", step, place, round(draw.gauss(0, 1), 2), f"user{label}"])
    path = write(tmp_path / "a.csv", ["case_id", "t_ms", "place", "speed", "user"], rows)
    config, _ = proposed(path, label="user", id="case_id")
    assert config.model.trees == has_trees
    per_epoch = 4 * classes * 0.8 / 16  # as the rule of the batch size has it
    assert 700 < config.training.max_epochs * per_epoch < 1300


def test_texts_that_never_repeat_are_no_tokens(tmp_path):
    rows = [[f"Ada {n}", *row] for n, row in enumerate(events())]
    config, proposal = proposed(
        write(tmp_path / "a.csv", ["clerk", *EVENTS], rows), label="outcome", id="case_id"
    )
    assert config.data.steps == {"place": "token"}
    assert any("ignored: 'clerk'" in line for line in proposal.uses)


@pytest.mark.parametrize(
    ("share", "word", "names", "missing"),
    [
        (0.3, "", ["a", "b"], "last"),
        (0.3, "NA", ["a", "b"], "last"),
        (0.05, "", ["a", "b"], "mask"),
        (0.3, "", ["a", "place"], "mask"),
        (0.0, "", ["a", "b"], "error"),
    ],
)
def test_numbers_that_are_often_missing_are_carried_forward(tmp_path, share, word, names, missing):
    draw = random.Random(3)
    rows = []
    for case in range(60):
        for step in range(8):
            cells = [round(draw.gauss(0, 1), 3), round(draw.gauss(0, 1), 3)]
            other = cells[1] if names[1] == "b" else draw.choice("xyz")
            number = word if draw.random() < share else cells[0]
            rows.append([f"c{case}", step, number, other, "ab"[case % 2]])
    path = write(tmp_path / "a.csv", ["case_id", "t_ms", *names, "outcome"], rows)
    assert proposed(path, label="outcome")[0].data.missing == missing
    settings = ["data.standardize=both"]
    again = proposed(path, label="outcome", settings=settings)[0].data.missing
    assert again == ("mask" if missing == "last" else missing)


def test_rows_of_one_customer_on_both_sides_of_a_split_are_warned_of(tmp_path):
    rows = [[f"k{i % 30}", s, "yn"[i % 2]] for i, s in enumerate(sentences(120))]
    path = write(tmp_path / "a.csv", ["customer", "text", "label"], rows)
    config, proposal = proposed(path)
    assert any("--set data.group=customer" in line for line in proposal.warnings)
    config, proposal = proposed(path, settings=["data.group=customer"])
    assert config.data.group == "customer"
    assert not any("customer" in line for line in proposal.warnings)
    unlike = [[f"k{i}", *row[1:]] for i, row in enumerate(rows)]
    write(tmp_path / "a.csv", ["customer", "text", "label"], unlike)
    assert not any("customer" in line for line in proposed(path)[1].warnings)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (lambda i: f"{i % 40}.5", "40 numbers from 0.5 to 39.5"),
        (lambda i: f"{i % 40}", "40 numbers from 0 to 39"),
        (lambda i: f"{i % 40},50", "40 numbers from 0.5 to 39.5"),
    ],
)
def test_labels_that_are_numbers_are_a_quantity(tmp_path, labels, kind):
    rows = [[labels(i), s] for i, s in enumerate(sentences(120))]
    path = write(tmp_path / "a.csv", ["price", "text"], rows, mark=";")
    _, proposal = proposed(path, label="price")
    assert any(f"labels are {kind}" in line for line in proposal.warnings)
    assert not any("label_separator" in line for line in proposal.warnings)


def test_settings_of_the_user_decide_what_depends_on_them(tmp_path):
    path = write(
        tmp_path / "a.csv", ["label", "text"], [["yn"[i % 2], s] for i, s in enumerate(sentences())]
    )
    config, _ = proposed(path, settings=["data.tokenizer=char"])
    assert (config.data.tokenizer, config.model.subwords) == ("char", None)
    assert config.model.ngrams == [1, 6]
    config, _ = proposed(path, settings=["data.tokenizer=bpe"])
    assert (config.data.tokenizer, config.model.subwords) == ("bpe", None)
    config, proposal = proposed(path, settings=["model.ngrams=null"])
    assert config.model.ngrams is None
    config, proposal = proposed(path, settings=["data.validation=null"])
    assert (config.data.validation, config.training.refit) == (None, False)
    assert "validation: null" in proposal.text


def test_columns_may_be_named_by_settings(tmp_path):
    draw = random.Random(0)
    rows = [
        [
            f"p{row // 4}",
            row % 4,
            round(draw.gauss(row // 4 % 2), 3),
            draw.choice("abc"),
            "yn"[row // 4 % 2],
        ]
        for row in range(240)
    ]
    path = write(tmp_path / "a.csv", ["id", "when", "value", "code", "y"], rows)
    config, proposal = proposed(path, settings=["data.steps={value: number}"])
    assert (config.data.id, config.data.steps) == ("id", {"value": "number"})
    assert config.model.ngrams is None  # of tokens
    assert "code" not in proposal.uses[0]
    config, proposal = proposed(path, settings=["data.order=null"])
    assert config.data.order is None
    assert "when" not in proposal.uses[0]
    config, proposal = proposed(path, label="y", settings=["data.sequence=code"])
    assert (config.data.id, config.data.sequence) == (None, "code")
    assert "code" in proposal.uses[0]


def test_damaged_rows_are_left_out_on_request(tmp_path):
    rows: list[list[Any]] = [["yn"[i % 2], s] for i, s in enumerate(sentences())]
    path = write(tmp_path / "a.csv", ["label", "text"], [*rows, ["y", "one", "too many"]])
    with pytest.raises(DataError) as refused:
        proposed(path)
    assert "data.bad_rows=drop" in refused.value.problems[-1]
    config, proposal = proposed(path, settings=["data.bad_rows=drop"])
    assert config.data.bad_rows == "drop"
    assert any("1 row " in line for line in proposal.uses)


def test_all_wrong_column_names_are_reported(tmp_path):
    rows = [["yn"[i % 2], s] for i, s in enumerate(sentences())]
    path = write(tmp_path / "a.csv", ["label", "text"], rows)
    with pytest.raises(DataError) as refused:
        proposed(path, label="lable", sequence=["txt"])
    assert [line.partition(":")[0] for line in refused.value.problems] == ["--label", "--sequence"]


def test_the_whole_command_is_written_into_the_config(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    rows = [["yn"[i % 2], s] for i, s in enumerate(sentences())]
    write(tmp_path / "a.csv", ["y", "text"], rows)
    words = ["a.csv", "--label", "y", "--set", "seed=3", "--set", "training.lr=0.01", "-o", "-"]
    text = cli("init", *words).out
    assert text.startswith(f"# Written by: seqtrain init {' '.join(words)}\n")
    assert 'label: "y"' in text
    assert "in quotes" in text


def test_symbols_in_both_cases_stay_apart(tmp_path):
    """The class is the case of the last symbol, which a lowercased text doesn't have."""
    draw = random.Random(0)
    lines = ["events\tclass"]
    for _ in range(100):
        symbols = draw.choices("AaBb", k=6)
        lines.append(" ".join(symbols) + ("\tupper" if symbols[-1].isupper() else "\tlower"))
    path = tmp_path / "case.tsv"
    path.write_text("\n".join(lines) + "\n")
    config = parse_config(propose([str(path)], InitOptions()).text)
    assert config.data.kind == "tokens"


def test_series_with_decimal_commas_are_numbers(tmp_path):
    path = tmp_path / "series.csv"
    rows = "".join(f"{n},5 {n},25 3;{'ab'[n % 2]}\n" for n in range(20))
    path.write_text("werte;klasse\n" + rows)
    config = parse_config(propose([str(path)], InitOptions()).text)
    assert (config.data.kind, config.data.decimal) == ("features", ",")


def test_a_step_table_without_labels_is_refused(tmp_path):
    draw = random.Random(0)
    rows = [[f"v{i // 4}", draw.choice(["home", "cart", "pay"])] for i in range(240)]
    path = write(tmp_path / "visits.csv", ["visitor", "page"], rows)
    with pytest.raises(DataError, match="row per time step"):
        proposed(path)
    config, _ = proposed(path, sequence=["visitor"], label="page")
    assert (config.data.sequence, config.data.label) == ("visitor", "page")


def test_a_label_among_the_settings_is_the_label(tmp_path):
    rows = [[s, "yn"[i % 2], "ab"[i % 2]] for i, s in enumerate(sentences())]
    path = write(tmp_path / "a.csv", ["body", "first_verdict", "second_verdict"], rows)
    config, proposal = proposed(path, settings=["data.label=second_verdict"])
    assert config.data.label == "second_verdict"
    assert "--label" not in proposal.text.splitlines()[0]
    with pytest.raises(DataError, match=r"second_verdct.*'second_verdict'"):
        proposed(path, settings=["data.label=second_verdct"])


def labelled_rows(form: str, columns: dict[str, list[str]]) -> tuple[list[str], list[list[Any]]]:
    """Return a table of texts, or of the steps of cases, with columns of repeated values."""
    draw, rows = random.Random(3), []
    for case, sentence in enumerate(sentences(80)):
        own = [values[draw.randrange(len(values))] for values in columns.values()]
        for step in range(4 if form == "steps" else 1):
            rows.append([f"c{case}", step, draw.choice("abcd"), *own])
        if form == "texts":
            rows[-1][:3] = [sentence]
    names = ["case_id", "time", "place"] if form == "steps" else ["body"]
    return [*names, *columns], rows


CODES = [f"{10000 + i}" for i in range(8)]


@pytest.mark.parametrize("form", ["steps", "texts"])
@pytest.mark.parametrize("name", ["postcode", "Variant", "zipCode", "customer_nr"])
def test_a_label_that_is_named_like_codes_is_asked_for(tmp_path, monkeypatch, cli, form, name):
    monkeypatch.chdir(tmp_path)
    names, rows = labelled_rows(form, {name: CODES})
    rows = [[*row, f"{index / 7:.3f}"] for index, row in enumerate(rows)]
    write(tmp_path / "a.csv", [*names, "cm"], rows)
    refused = cli("init", "a.csv", "-o", "b.yaml", code=2).err
    (command,) = re.findall(r"seqtrain (init a.csv .*--label .*)", refused)
    cli(*shlex.split(command, comments=True))
    assert parse_config(Path("b.yaml").read_text()).data.label == name


@pytest.mark.parametrize("form", ["steps", "texts"])
@pytest.mark.parametrize(
    ("columns", "label", "is_doubted"),
    [
        (["region", "postcode", "(case) Outcome"], "(case) Outcome", False),
        (["region", "customer_type", "final_result"], "final_result", False),
        (["customer_type", "region", "region_sentiment"], "region_sentiment", False),
        (["postcode", "region"], "region", False),
        (["customer_type", "region"], "region", True),
    ],
)
def test_where_no_name_tells_the_label_others_are_commands(
    tmp_path, form, columns, label, is_doubted
):
    values = {name: CODES if name == "postcode" else ["u", "v", "w"] for name in columns}
    config, proposal = proposed(write(tmp_path / "a.csv", *labelled_rows(form, values)))
    assert config.data.label == label
    assert any("--label customer_type" in x for x in proposal.warnings) == is_doubted


@pytest.mark.parametrize("form", ["steps", "texts"])
def test_what_a_label_determines_may_be_the_label(tmp_path, form):
    names, rows = labelled_rows(form, {"nota": list("ABCF")})
    rows = [[*row, "no" if row[-1] == "F" else "yes"] for row in rows]
    path = write(tmp_path / "a.csv", [*names, "bestanden"], rows)
    config, proposal = proposed(path)
    assert config.data.label == "nota"
    assert any("--label bestanden" in line for line in proposal.warnings)
    config, proposal = proposed(path, label="bestanden")
    assert config.data.label == "bestanden"
    assert any("'nota' gives the label away" in line for line in proposal.warnings)


@pytest.mark.parametrize("name", ["Status", "Priority", "Group"])
@pytest.mark.parametrize("label", ["Satisfaction Rating", "label"])
def test_what_cases_are_sorted_by_may_be_the_label(tmp_path, name, label):
    values = {name: ["u", "v", "w"], label: ["good", "bad"]}
    config, proposal = proposed(write(tmp_path / "a.csv", *labelled_rows("texts", values)))
    assert config.data.label == label
    is_doubted = any(f"--label {name}" in line for line in proposal.warnings)
    assert is_doubted == (label != "label")


def test_columns_that_cannot_rival_the_label_are_no_commands(tmp_path):
    """Whole numbers have too many values."""
    draw = random.Random(3)
    rows = [[text, draw.choice("uv"), draw.randrange(40)] for text in sentences(200)]
    config, proposal = proposed(write(tmp_path / "a.csv", ["body", "kind", "votes"], rows))
    assert config.data.label == "kind"
    assert not any("--label" in line for line in proposal.warnings)


LANGUAGES = {
    "German": ("Kategorie", "Inhalt", "Kundennummer", "Vorgang", "Zeitpunkt"),
    "French": ("Étiquette", "texte", "utilisateur", "séance", "horodatage"),
    "Spanish": ("clase", "mensaje", "paciente", "sesión", "hora"),
    "Portuguese": ("rótulo", "mensagem", "usuário", "sessão", "hora"),
    "Italian": ("etichetta", "testo", "utente", "caso", "when"),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("seed", [1, 2])
def test_names_of_other_languages(tmp_path, language, seed):
    """A code of letters and a number whose name says nothing is an owner, too."""
    draw = random.Random(seed)
    label, text, owner, id, time = LANGUAGES[language]
    owner = draw.choice([owner, "zz"])
    names = [label, text, owner, "alpha", "beta"]
    rows = [
        ["xyz"[i % 3], s, f"K{i // 9}", draw.choice("uvw"), draw.choice("mn")]
        for i, s in enumerate(sentences(180))
    ]
    order = draw.sample(range(5), 5)
    path = write(
        tmp_path / "a.csv", [names[i] for i in order], [[row[i] for i in order] for row in rows]
    )
    config, proposal = proposed(path)
    assert (config.data.label, config.data.sequence) == (label, text)
    assert any(f"data.group={owner}" in line for line in map(shell_words, proposal.warnings))
    names = [label, owner, id, "puls", time, "ort"]
    rows = [
        ["xy"[case % 2], f"K{case // 6}", f"s{case}", draw.random(), step, draw.choice("uvw")]
        for case in range(90)
        for step in range(6)
    ]
    order = draw.sample(range(6), 6)
    path = write(
        tmp_path / "b.csv", [names[i] for i in order], [[row[i] for i in order] for row in rows]
    )
    config, proposal = proposed(path)
    assert (config.data.label, config.data.id, config.data.order) == (label, id, time)
    assert set(config.data.steps) == {"puls", "ort"}
    assert config.data.static is None
    assert any(f"data.group={owner}" in line for line in map(shell_words, proposal.warnings))


def shell_words(line: str) -> str:
    """Return a line without the quotes that a shell takes away."""
    return line.replace("'", "")


@pytest.mark.parametrize("setting", ["data.group=depot", "data.weight=trust"])
def test_the_comment_on_validation_counts_the_rows_that_fit_holds_out(tmp_path, setting):
    """Equal rows and groups stay together, so the share of `data.validation` is only near."""
    draw = random.Random(3)
    pool = [[sentence, ["late", "lost"][row % 2]] for row, sentence in enumerate(sentences(24))]
    shares = [1 / (1 + row) for row in range(24)]
    chosen = draw.choices(pool, shares, k=500)
    rows = [[f"d{min(9, int(draw.expovariate(0.4)))}", 0.5 + row % 2] for row in range(500)]
    joined = [own + pair for own, pair in zip(rows, chosen, strict=True)]
    path = write(tmp_path / "a.csv", ["depot", "trust", "text", "label"], joined)
    config, proposal = proposed(path, settings=[setting])
    held_out = len(prepare(config).splits["validation"])
    assert re.search(rf"validation: 0\.2 +# {held_out} rows", proposal.text)
    assert held_out != 100


def test_rows_without_a_sequence_are_said_and_no_example_of_a_word(tmp_path):
    """A blank text is the first row."""
    rows = [
        [f"{sentence} {'xy'[row % 2]}", "xy"[row % 2]] for row, sentence in enumerate(sentences())
    ]
    rows[0][0] = ""
    _, proposal = proposed(write(tmp_path / "a.csv", ["text", "label"], rows))
    assert any(line.startswith("1 row without") for line in proposal.uses)
    (doubt,) = [line for line in proposal.warnings if "the last word" in line]
    assert re.search("such as '[xy]'", doubt)


@pytest.mark.parametrize("setting", ["data.group=trust", "data.weight=trust"])
def test_columns_of_groups_and_weights_are_neither_labels_nor_ignored(tmp_path, setting):
    rows = [
        [sentence, 0.5 * (1 + row % 4), "xyz"[row % 3]] for row, sentence in enumerate(sentences())
    ]
    path = write(tmp_path / "a.csv", ["text", "trust", "place"], rows)
    config, proposal = proposed(path, settings=[setting])
    assert config.data.label == "place"
    assert not any("ignored" in line for line in proposal.uses)


@pytest.mark.parametrize(
    "names",
    [
        ["titulo", "cuerpo", "idioma", "puntuacion"],
        ["titre", "avis", "langue", "note"],
        ["betreff", "rezension", "sprache", "sterne"],
        ["titolo", "parere", "lingua", "stelle"],
        ["review_title", "review_body", "language", "star_rating"],
    ],
)
def test_the_rating_of_a_review_is_its_label_and_title_and_body_are_its_texts(tmp_path, names):
    draw = random.Random(5)
    texts, titles = sentences(120), [text[::-1] for text in sentences(120)]
    rows = [
        [*own, draw.choice("uv"), draw.randint(1, 5)] for own in zip(titles, texts, strict=True)
    ]
    config, _ = proposed(write(tmp_path / "a.csv", names, rows))
    assert (config.data.label, config.data.sequence) == (names[3], names[:2])
    points = [*names[:3], "points"]
    config, proposal = proposed(write(tmp_path / "a.csv", points, rows))
    assert config.data.label == names[2]
    assert any("--label points" in line for line in proposal.warnings)


def test_a_label_and_an_id_beside_very_many_numbered_columns(tmp_path):
    """The label may be one of these, and the rows may be time steps."""
    draw, width = random.Random(5), 1000
    names = ["wafer_id", "minute", *(f"ch{i}" for i in range(width)), "verdict"]
    rows = [
        [f"w{i // 6:02}", i % 6, *(f"{draw.random():.1f}" for _ in range(width)), "xy"[i // 6 % 2]]
        for i in range(72)
    ]
    config, _ = proposed(write(tmp_path / "steps.csv", names, rows))
    data = config.data
    assert (data.id, data.order, data.label) == ("wafer_id", "minute", "verdict")
    assert data.steps is not None
    assert len([name for name in data.steps if name.startswith("ch")]) == width

    coded = [[*row[:7], i // 6 % 3, *row[8:-1]] for i, row in enumerate(rows)]
    config, _ = proposed(write(tmp_path / "coded.csv", names[:-1], coded), label="ch5")
    assert (config.data.id, config.data.label) == ("wafer_id", "ch5")


SIGNS = {"Hindi": ("कखगचटतपबमस", "ािीुे"), "Tamil": ("கசடதபமரல", "ாிீுே"), "Hebrew": ("אבגדהלמש", "ָּ")}
ACCENTS = ("bcdfgmnt", ["e\u0301", "a\u0300", "o", "i"])


@pytest.mark.parametrize("letters", [*SIGNS.values(), ACCENTS])
def test_words_of_letters_with_combining_marks_are_whole(tmp_path, letters):
    draw = random.Random(3)
    parts = [first + second for first in letters[0] for second in letters[1]]
    words = ["".join(draw.choices(parts, k=draw.randint(2, 4))) for _ in range(300)]
    rows = [["xy"[i % 2], " ".join(draw.choices(words, k=14)) + " !"] for i in range(400)]
    config, _ = proposed(write(tmp_path / "texts.csv", ["label", "review"], rows))
    data = prepare(config)
    assert data.preprocessing.kind == "text"
    if data.preprocessing.sequence.tokenizer_name == "word":
        assert set(data.splits["train"].lengths.tolist()) == {15}
        assert len(data.preprocessing.vocabulary) <= 2 + 1 + len(set(words))


def test_settings_of_texts_that_the_user_asks_for_are_those_of_texts(tmp_path):
    draw = random.Random(4)
    moves = ["e4", "Nf3", "O-O", "Bxc6+", "Qd8", "Rfe1"]
    rows = [["xy"[i % 2], " ".join(draw.choices(moves, k=30))] for i in range(300)]
    path = write(tmp_path / "moves.csv", ["label", "review"], rows)
    assert proposed(path)[0].data.kind == "tokens"
    config, _ = proposed(path, settings=["data.kind=text"])
    assert (config.data.kind, config.model.trees) == ("text", False)
    assert prepare(config).preprocessing.kind == "text"


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("names", [("note", "tags"), ("keywords", "report"), ("a", "b")])
def test_a_text_that_has_the_label_is_not_chosen_beside_another(tmp_path, names, place):
    draw = random.Random(str(names))
    classes = ["heart", "bones", "skin"]
    rows = []
    for i, text in enumerate(sentences(240)):
        label = classes[i % 3]
        words = draw.sample(WORDS, 3)
        words.insert(0 if place == "first" else 3, label)
        rows.append([text, label, " ".join(words)])
    config, proposal = proposed(write(tmp_path / "t.csv", [names[0], "dept", names[1]], rows))
    assert (config.data.sequence, config.data.label) == (names[0], "dept")
    assert any(f"'{names[1]}' gives" in line for line in proposal.warnings)
    config, proposal = proposed(str(tmp_path / "t.csv"), sequence=names[1])
    assert config.data.sequence == names[1]
    assert any(f"the {place} word of '{names[1]}'" in line for line in proposal.warnings)


@pytest.mark.parametrize("name", ["labels", "tags", "topics"])
@pytest.mark.parametrize("most", [1, 3])
def test_objects_that_name_the_labels_of_texts_are_no_events(tmp_path, cli, name, most):
    draw, path = random.Random(4), tmp_path / "issues.json"
    rows = []
    for i in range(120):
        known = draw.sample(["bug", "feature", "docs"], 1 + i % most)
        words = draw.choices(["app", "file", "fails", "opens", "button"], k=9)
        own = [{"id": len(label), "name": label} for label in known]
        text = {"title": f"{known[0]} {i}", "body": " ".join(words)}
        rows.append({"number": i, **text, name: own, "state": ["open", "closed"][i % 2]})
    path.write_text(json.dumps(rows))
    for label in (name, "state"):
        cli("init", path, "--label", label, "-o", tmp_path / f"{label}.yaml")
        data = parse_config((tmp_path / f"{label}.yaml").read_text()).data
        assert (data.sequence, data.label) == (["title", "body"], label)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("form", ["{}", "S{}"])
@pytest.mark.parametrize("name", ["rat", "name", "Kunde", "machine"])
def test_ids_of_a_panel_may_be_counted_within_each_time(tmp_path, name, form, shuffled):
    """A file of panel data often has all ids of the first week first."""
    draw = random.Random(name)
    rows = [
        [week, form.format(unit), f"{draw.random():.1f}", ["chow", "fat"][unit % 7 % 2]]
        for week in range(1, 13)
        for unit in range(1, 41)
    ]
    if shuffled:
        draw.shuffle(rows)
    path = write(tmp_path / "a.csv", ["week", name, "weight", "diet"], rows)
    data = proposed(path, label="diet")[0].data
    assert (data.id, data.order, data.window) == (name, "week", None)
    data = proposed(path)[0].data
    assert (data.id, data.label) == (name, "diet")


@pytest.mark.parametrize("named", [[], ["currency"]])
def test_a_column_of_one_value_is_not_to_be_named_as_a_time_step(tmp_path, named):
    rows = [[f"f{i // 9}", i % 9, "EUR", "uv"[i // 9 % 2]] for i in range(360)]
    path = write(tmp_path / "a.csv", ["firm", "period", "currency", "state"], rows)
    given = {"steps": named} if named else {}
    with pytest.raises(DataError) as error:
        proposed(path, order="period", **given)
    (line,) = error.value.lines
    assert line.startswith("--steps: ")
    assert not line.endswith("name it")


@pytest.mark.parametrize("traits", [["sex"], ["sex", "town"]])
def test_a_label_of_rows_comes_before_traits_of_ids(tmp_path, traits):
    draw, rows = random.Random(len(traits)), list[list[Any]]()
    for unit in range(60):
        own = [draw.choice("xy") for _ in traits]
        onset = draw.randint(4, 14)
        rows += [
            [unit, hour, f"{draw.random():.2f}", *own, int(hour > onset)] for hour in range(12)
        ]
    names = ["patient_id", "hour", "pulse", *traits, "sepsis_label"]
    path = write(tmp_path / "a.csv", names, rows)
    config, proposal = proposed(path)
    assert (config.data.id, config.data.label) == ("patient_id", "sepsis_label")
    assert config.data.window is not None
    assert any("--label sex" in line for line in proposal.warnings)
    assert proposed(path, label="sex")[0].data.window is None
