"""Everyday tables: what isn't doubted, and which texts and labels are found by their names."""

import json
import random
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import parse_config
from seqtrain.errors import DataError
from seqtrain.proposal import InitOptions, propose
from tests.proposal.test_forms import draw, sentence, write

__all__ = ["draw"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(name: str, rows: list[dict[str, Any]]) -> str:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def data_of(path: str) -> Any:
    return parse_config(Path(path).read_text()).data


def proposed(path: str, **options: Any) -> tuple[Any, list[str]]:
    proposal = propose([path], InitOptions(**options))
    return parse_config(proposal.text).data, proposal.warnings


@pytest.mark.parametrize(
    ("column", "form"),
    [("file", "{}.json"), ("source", "{}.txt"), ("ZIP code", "{}XX"), ("case_id", "{}a")],
)
def test_names_of_files_and_codes_are_no_measurements(draw, cli, column, form):
    rows = [
        [form.format(draw.randint(100, 99999)), sentence(draw), "ab"[i % 2], "uvw"[i // 2 % 3]]
        for i in range(80)
    ]
    write(Path("a.csv"), [column, "said", "p", "q"], rows)
    said = cli("init", "a.csv", code=2).err
    assert "--label p" in said
    assert "each number in a column" not in said


@pytest.mark.parametrize("word", ["Total", "Summe"])
def test_totals_without_a_label_are_left_out_without_a_doubt(draw, word):
    rows = [[f"n{i}", sentence(draw), "ab"[i % 2]] for i in range(80)]
    doubts = {}
    for label in ("", "a"):
        write(Path("a.csv"), ["nr", "text", "label"], [*rows, [word, sentence(draw), label]])
        doubts[label] = any("totals" in line for line in proposed("a.csv")[1])
    assert doubts == {"": False, "a": True}


def test_negative_numbers_and_points_are_no_symbols(draw):
    kinds = "--set data.kind="
    for low in (-300, 0):
        rows = [[*(draw.randint(low, 300) for _ in range(12)), i % 2] for i in range(80)]
        write(Path("a.csv"), [*(f"x{i}" for i in range(12)), "y"], rows)
        assert any(kinds in line for line in proposed("a.csv")[1]) == (low == 0)
    points = [[[draw.randint(0, 255), draw.randint(0, 255)] for _ in range(9)] for _ in range(80)]
    written("a.jsonl", [{"drawing": own, "word": "uv"[i % 2]} for i, own in enumerate(points)])
    data, doubts = proposed("a.jsonl")
    assert data.sequence == "drawing"
    assert not any(kinds in line for line in doubts)


@pytest.mark.parametrize("person", ["player_id", "Name", "account", "white_id"])
def test_names_of_many_are_not_offered_as_labels(draw, cli, person):
    rows = [[f"p{i % 30}", sentence(draw), "ab"[i % 2], "uvw"[i % 3]] for i in range(90)]
    write(Path("a.csv"), [person, "said", "p", "q"], rows)
    offered = re.findall("--label (\\S+)", cli("init", "a.csv", code=2).err)
    assert offered == ["p", "q"]


@pytest.mark.parametrize("other", ["Type", "category"])
def test_a_property_beside_a_label_is_no_doubt(draw, other):
    rows = [[sentence(draw), draw.choice("uvw"), "ab"[i % 2]] for i in range(80)]
    write(Path("a.csv"), ["text", other, "Label"], rows)
    data, doubts = proposed("a.csv")
    assert data.label == "Label"
    assert not any("--label" in line for line in doubts)


@pytest.mark.parametrize("rating", ["overall", "score", "Score"])
@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0, 4.0, 5.0], [1, 2, 3]])
def test_a_rating_is_the_label_beside_a_flag(draw, rating, values):
    rows = [
        {"review": sentence(draw), rating: values[i % len(values)], "verified": draw.random() < 0.5}
        for i in range(90)
    ]
    data, doubts = proposed(written("a.jsonl", rows))
    assert data.label == rating
    assert any("--label verified" in line for line in doubts)


@pytest.mark.parametrize("values", [lambda draw: draw.randint(0, 90), lambda draw: draw.random()])
def test_a_score_of_many_values_is_no_rating(draw, values):
    rows = [[sentence(draw), round(values(draw), 1), "ab"[i % 2]] for i in range(90)]
    write(Path("a.csv"), ["review", "score", "approved"], rows)
    assert proposed("a.csv")[0].label == "approved"


@pytest.mark.parametrize("fields", ["custom_fields", "items"])
@pytest.mark.parametrize("key", ["value", "qty"])
def test_lists_of_objects_beside_free_text_are_no_sequence(draw, cli, fields, key):
    rows = [
        {
            "url": f"https://a.b/{i}.json",
            "subject": sentence(draw),
            "raw_subject": sentence(draw),
            "description": sentence(draw) + sentence(draw),
            fields: [{"id": 36 + n, key: draw.choice("uvw")} for n in range(2)],
            "tags": [["x"], ["y"], ["x", "y"]][i % 3],
            "p": "ab"[i % 2],
            "q": "cd"[i // 2 % 2],
        }
        for i in range(90)
    ]
    written("a.jsonl", rows)
    assert proposed("a.jsonl", label="tags")[0].sequence == ["subject", "description"]
    path = written("b.jsonl", [{k: x for k, x in row.items() if k != "tags"} for row in rows])
    assert "--sequence" not in cli("init", path, code=2).err


HEADLINES = [
    ("Тема", "Описание"),
    ("заголовок", "текст"),
    ("Temat", "Treść"),
    ("Onderwerp", "Bericht"),
    ("Başlık", "Açıklama"),
    ("标题", "正文"),
    ("件名", "本文"),
    ("제목", "내용"),
]


@pytest.mark.parametrize(("title", "body"), HEADLINES)
def test_headlines_and_bodies_of_further_languages_are_joined(draw, title, body):
    rows = [[i, sentence(draw), sentence(draw) + sentence(draw), "ab"[i % 2]] for i in range(80)]
    write(Path("a.csv"), ["nr", title, body, "label"], rows)
    assert proposed("a.csv")[0].sequence == [title, body]


PAIRS = [("sentence1", "sentence2"), ("said_a", "said_b"), ("#1 Text", "#2 Text"), ("X1", "X2")]


@pytest.mark.parametrize("names", [*PAIRS, ("premise", "hypothesis")])
@pytest.mark.parametrize("are_longer", [True, False])
def test_two_texts_whose_names_differ_in_one_character_are_joined(draw, cli, names, are_longer):
    """Also where parses stand beside them, and the first one comes again in several pairs."""
    known = [sentence(draw) for _ in range(30)]
    rows = []
    for i in range(90):
        first, second = known[i % 30], sentence(draw) * (1 + 4 * are_longer)
        rows.append([i, first, f"( {first} )", second, f"( {second} )", draw.choice("ab")])
    forms = [(own, f"{own}_parse") for own in names]
    write(Path("a.csv"), ["nr", *forms[0], *forms[1], "label"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    assert data_of("c.yaml").sequence == [*names]
    (option,) = re.findall("to read one alone: (--sequence .*)", said)
    cli("init", "a.csv", "-o", "c.yaml", "--force", *shlex.split(option))
    assert data_of("c.yaml").sequence == names[0]


def test_a_third_text_leaves_a_pair_to_the_user(draw):
    rows = [[*(sentence(draw) for _ in range(3)), draw.choice("ab")] for _ in range(80)]
    write(Path("a.csv"), ["line_1", "line_2", "remark", "label"], rows)
    with suppress(DataError):  # by chance, one of three texts may tell the label better
        assert isinstance(proposed("a.csv")[0].sequence, str)


def test_joined_texts_of_few_words_in_both_cases_stay_texts(draw):
    """One text of such words is read as symbols."""
    words = [f"{own[:1].upper()}{own[1:]}" for own in sentence(draw).split()]
    rows = []
    for _ in range(80):
        texts = [" ".join(draw.choices([*words, *map(str.lower, words)], k=8)) for _ in range(2)]
        rows.append([*texts, draw.choice("ab")])
    write(Path("a.csv"), ["question1", "question2", "same"], rows)
    data, _ = proposed("a.csv", sequence=["question1", "question2"], label="same")
    assert (data.kind, data.sequence) == ("text", ["question1", "question2"])


@pytest.mark.parametrize("mark", [",", "."])
def test_a_log_is_no_csv_for_the_decimals_of_its_seconds(draw, cli, mark):
    lines = [
        f"2024-01-01 10:{i:02}:07{mark}123 INFO [main] {sentence(draw, *'ab'[: i % 3])}\n"
        for i in range(60)
    ]
    Path("app.log").write_text("".join(lines))
    assert "--format csv" not in cli("init", "app.log", code=2).err


@pytest.mark.parametrize("at", [0, 3])
def test_a_short_id_and_a_number_beside_a_text_are_no_sequence(tmp_path, at):
    """Such as the games of a chess site: an id of letters and digits, ratings, and moves."""
    draw = random.Random(at)
    rows = []
    for number in range(120):
        words = " ".join(draw.choices(["e4", "Nf3", "d5", "Qh5", "c6"], k=draw.randint(5, 20)))
        id = "".join(draw.choices("abcdefghABCDEFGH0123456789", k=8))
        row = [draw.randint(800, 2400), words, "uv"[number % 2]]
        rows.append([*row[:at], id, *row[at:]])
    names = ["rating", "moves", "winner"]
    names.insert(at, "id")
    path = write(tmp_path / "a.csv", names, rows)
    assert proposed(str(path))[0].sequence == "moves"


def test_objects_with_texts_of_few_words_in_changing_case_stay_text(tmp_path):
    draw = random.Random(5)
    words = ["card", "bill", "my", "the", "was", "again"]
    rows = []
    for number in range(80):
        said = [
            {
                "author": draw.choice("ab"),
                "message": " ".join(draw.choices(words, k=4)).capitalize(),
            }
            for _ in range(5)
        ]
        rows.append(json.dumps({"id": f"c{number}", "tag": "uv"[number % 2], "messages": said}))
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(rows) + "\n")
    data = proposed(str(path))[0]
    assert (data.sequence, data.kind) == ("messages", "text")
