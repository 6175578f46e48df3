"""The documents: commands run or parse, links lead somewhere, tables are whole."""

import doctest
import io
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from seqtrain.cli.main import COMMANDS as COMMAND_NAMES
from seqtrain.cli.main import load_command, program, run
from seqtrain.config import load_config
from seqtrain.config.schema import KEYS
from tests.helpers.page_tables import TABLES, current

ROOT = Path(__file__).parents[1]
ROOMS_WITH_DOCUMENTS = (".github", "configs", "data", "seqtrain", "tests")
DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        *(path for room in ROOMS_WITH_DOCUMENTS for path in sorted((ROOT / room).rglob("*.md"))),
    )
}
README = DOCUMENTS["README.md"]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = {name: FENCED.findall(text) for name, text in DOCUMENTS.items()}
PROSE = {name: FENCED.sub("", text) for name, text in DOCUMENTS.items()}
SPANS = [
    " ".join(code.split()) for text in PROSE.values() for code in re.findall(r"`([^`]+)`", text)
]
SET_UP = [block for language, block in BLOCKS["README.md"] if language == "sh"]
COMMANDS = {name: load_command(name) for name in COMMAND_NAMES}
OPTIONS = {
    name: {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    for name, command in {"": program(), **COMMANDS}.items()
}
FEW = 60
SECTION_KEYS = re.compile(r"(?:data|batching|model|training|pretraining)\.[a-z][a-z_]+\b(?!\.)")


def seqtrain_commands(block: str) -> list[list[str]]:
    """Return the words of every `seqtrain …` command of a block, pipes and $(…) taken apart."""
    joined = block.replace("\\\n", " ")
    found = re.findall(r"(?:^|[|;(&]|\$ )\s*seqtrain\s+([^|;&)\n>]*)", joined, re.MULTILINE)
    return [shlex.split(words.split(" < ")[0], comments=True) for words in found]


IN_BLOCKS = [
    words
    for blocks in BLOCKS.values()
    for language, block in blocks
    if language in ("sh", "bash")
    for words in seqtrain_commands(block)
]
IN_PROSE = [span.split()[1:] for span in SPANS if span.startswith("seqtrain ")]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory) -> Path:
    """A folder with the data and the configs that ship, the quickstart in one epoch."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "configs", folder / "configs")
    shutil.copytree(ROOT / "data", folder / "data")
    quickstart = folder / "configs" / "quickstart.yaml"
    text = re.sub(r"max_epochs: \d+", "max_epochs: 1", quickstart.read_text(encoding="utf-8"))
    quickstart.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def with_few_rows(workplace, tmp_path_factory) -> Path:
    """The same, with only the first rows of the quickstart's data."""
    folder = tmp_path_factory.mktemp("small") / "clone"
    shutil.copytree(workplace, folder, ignore=shutil.ignore_patterns("runs"))
    for path in (folder / "data" / "orders").glob("*.tsv"):
        header, *rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join([header, *rows[:FEW]]), encoding="utf-8")
    return folder


def test_first_block_trains(with_few_rows, monkeypatch, capsys):
    fit = seqtrain_commands(SET_UP[0])[-1]
    assert fit == ["fit", "configs/quickstart.yaml"]
    monkeypatch.chdir(with_few_rows)
    with pytest.raises(SystemExit) as ended:
        run(fit)
    assert ended.value.code == 0
    (path,) = capsys.readouterr().out.splitlines()
    assert path.startswith("runs/quickstart-")
    assert (with_few_rows / path / "best" / "model.safetensors").is_file()


def test_python_session_runs(with_few_rows, monkeypatch, capsys):
    (session,) = (block for language, block in BLOCKS["README.md"] if language == "python")
    monkeypatch.chdir(with_few_rows)
    exec(compile(session, "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("runs")
    assert sum("_" in line and "(" not in line for line in lines) >= FEW  # a label per row


def test_predictor_that_stays_answers_each_row(with_few_rows, tmp_path, monkeypatch, capsys):
    (session,) = (block for language, block in BLOCKS["README.md"] if language == "py")
    monkeypatch.chdir(with_few_rows)
    if not Path("runs").exists():
        with pytest.raises(SystemExit):
            run(["fit", "configs/quickstart.yaml", "--quiet"])
    program = tmp_path / "seqtrain"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m seqtrain "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    capsys.readouterr()
    names: dict[str, Any] = {}
    try:
        exec(compile(session, "README.md", "exec"), names)
        label = capsys.readouterr().out.strip()
        assert names["classify"]("move 20 from savings to checking")["label"] == label
        assert names["classify"]("")["problem"]
        assert names["classify"]("move 20\nfrom checking to savings")["index"] == 3
    finally:
        names["predictor"].kill()
        names["predictor"].communicate()


@pytest.mark.slow
def test_session_shows_what_the_program_prints():
    """On another processor the last digits may differ: python tests/session.py --write"""
    ended = subprocess.run([sys.executable, str(ROOT / "tests/session.py")], capture_output=True)
    assert ended.returncode == 0, ended.stderr.decode()


class BelowTheCell(io.TextIOBase):
    """Standard error as a notebook shows it: below the cell, with what is printed."""

    def write(self, text: str) -> int:
        return sys.stdout.write(text)


def test_notebook_session_shows_what_its_page_says(workplace, monkeypatch):
    page = "seqtrain/api/README.md"
    (session,) = (block for language, block in BLOCKS[page] if language == "pycon")
    monkeypatch.chdir(workplace)
    monkeypatch.setattr(sys, "stderr", BelowTheCell())
    test = doctest.DocTestParser().get_doctest(session, {}, page, page, 0)
    said: list[str] = []
    rules = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.DocTestRunner(optionflags=rules).run(test, out=said.append)
    assert result.attempted >= 8
    assert result.failed == 0, "".join(said)


def test_own_data_configs_are_valid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("recordings").mkdir()
    Path("recordings/a.csv").touch()
    texts = (block for language, block in BLOCKS["README.md"] if language == "yaml")
    configs = []
    for text in texts:
        (tmp_path / "my.yaml").write_text(text, encoding="utf-8")
        configs.append(load_config(tmp_path / "my.yaml").data)
    found = [data.sequence or data.id for data in configs]
    assert found == [["title", "body"], "visitor", "file"]


def test_recordings_with_a_table_of_labels_are_predicted(tmp_path, monkeypatch, capsys):
    """The commands run as written, and init writes the config that the page shows."""
    (block,) = (text for _, text in BLOCKS["README.md"] if "recordings labels.csv" in text)
    shown = next(text for _, text in BLOCKS["README.md"] if "train: recordings" in text)
    monkeypatch.chdir(tmp_path)
    draw, labels = random.Random(0), ["file,label"]
    for folder in ("recordings", "new-recordings"):
        Path(folder).mkdir()
        for number in range(40):
            rows = [f"{t},{draw.gauss(number % 2, 1)},{draw.random()}" for t in range(20)]
            path = Path(folder, f"rec_{number:03}.csv")
            path.write_text("\n".join(["t,x,y", *rows]) + "\n")
            labels.append(f"{path.name},{'ok' if number % 2 else 'worn'}")
    Path("labels.csv").write_text("\n".join(labels[:41]) + "\n")
    for words in seqtrain_commands(block):
        options = ["--set", "training.max_epochs=1"] if words[0] in ("init", "fit") else []
        with pytest.raises(SystemExit) as ended:
            run([*words, *options])
        assert ended.value.code == 0, capsys.readouterr().err
    Path("shown.yaml").write_text(shown)
    written, page = load_config("pumps.yaml").data, load_config("shown.yaml").data
    assert page.model_dump(exclude={"number_bins"}) == written.model_dump(exclude={"number_bins"})
    predicted = Path("predictions.csv").read_text().splitlines()
    assert [Path(row.split(",")[0]).name for row in predicted[1:]] == [
        f"rec_{number:03}.csv" for number in range(40)
    ]


def test_a_question_of_init_is_answered_by_its_commands(tmp_path, monkeypatch, capsys):
    """The page shows what init prints, and the commands below it run as written."""
    blocks = [text for _, text in BLOCKS["README.md"] if "drill" in text]
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    for name, runs in (("drill.csv", 60), ("new.csv", 6)):
        rows = ["run,time,heat,state"]
        for number in range(runs):
            state = ["ok", "worn"][number % 2]
            first = f"r{number:02},0,{draw.gauss(number % 2, 1)},{state}"
            rows += [first, *(f",{t},{draw.gauss(number % 2, 1)},{state}" for t in range(1, 12))]
        Path(name).write_text("\n".join(rows) + "\n")
    with pytest.raises(SystemExit):
        run(["init", "drill.csv"])
    assert capsys.readouterr().err == "".join(blocks[0].splitlines(keepends=True)[1:])
    for words in seqtrain_commands(blocks[1]):
        options = ["--set", "training.max_epochs=1"] if words[0] == "fit" else []
        with pytest.raises(SystemExit) as ended:
            run([*words, *options])
        assert ended.value.code == 0, capsys.readouterr().err
    predicted = capsys.readouterr().out.splitlines()[-6:]
    assert [row.split("\t")[0] for row in predicted] == [f"r{number:02}" for number in range(6)]


@pytest.mark.parametrize("path", [*(ROOT / "configs").rglob("*.yaml")], ids=lambda x: x.name)
def test_a_config_that_ships_is_valid_and_its_data_that_ship_are_there(path):
    data = load_config(path).data
    named = [x for x in (data.train, data.validation, data.test) if str(x).startswith("data/")]
    assert all((ROOT / str(name)).exists() for name in named)


@pytest.mark.parametrize("words", IN_BLOCKS, ids=" ".join)
def test_command_parses(words):
    name, *rest = words
    COMMANDS[name].make_context(name, list(rest)).close()  # empties the list
    if rest[:1] and rest[0].startswith("configs/"):
        sets = [value for flag, value in pairwise(rest) if flag == "--set"]
        load_config(ROOT / rest[0], sets)


@pytest.mark.parametrize("words", IN_PROSE, ids=" ".join)
def test_command_in_prose_exists(words):
    name = words[0] if words[0] in COMMANDS else ""
    flags = {word.split("=")[0] for word in words if word.startswith("--")}
    assert name or words[0].startswith("--")
    assert flags <= OPTIONS[name]


def test_every_command_is_documented():
    assert sorted(re.findall(r"^\| `seqtrain (\w+)", README, re.MULTILINE)) == sorted(COMMANDS)


def test_the_table_of_commands_is_that_of_help():
    page = DOCUMENTS["seqtrain/cli/README.md"]
    rows = re.findall(r"^\| `([a-z]+)[^|`]*` \| (`--.*) \|$", page, re.MULTILINE)
    assert {name: set(re.findall("--[a-z-]+", cell)) for name, cell in rows} == {
        name: {option for option in OPTIONS[name] if option.startswith("--")} for name in COMMANDS
    }


def test_keys_named_in_documents_exist():
    named = {
        key
        for span in SPANS
        if "/" not in span and not span.endswith((".py", ".md", ".onnx", ".safetensors", ".bin"))
        for key in SECTION_KEYS.findall(span)
    }
    assert named
    assert named <= {*KEYS}


def test_scripts_and_tests_named_in_documents_exist():
    named = {
        path
        for text in DOCUMENTS.values()
        for path in re.findall(r"(?:pytest|python) ((?:tests|data)/\S+\.py)", text)
    }
    assert named
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_files_of_the_rooms_exist():
    """A name without a folder means a file of the room in whose row it is, or of any room."""
    package = ROOT / "seqtrain"
    for line in DOCUMENTS["seqtrain/README.md"].splitlines():
        room = re.match(r"\| `(\w+)/` \|", line)
        base = package / room[1] if room else package
        for name in re.findall(r"`([\w/]+\.py)`", line):
            assert (package / name).is_file() if "/" in name else any(base.rglob(name)), name


def anchors(text: str) -> set[str]:
    """Return the anchors that a Markdown viewer gives to the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", text), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    links = re.findall(r"\]\(([^)]+)\)", PROSE[name])
    local = [link for link in links if "://" not in link]
    broken = []
    for link in local:
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        exists = target.is_file()
        if not exists or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert broken == []


def test_front_page_leads_to_every_document():
    own = {name for name in DOCUMENTS if name.count("/") < 3}
    own -= {"README.md", ".github/PULL_REQUEST_TEMPLATE.md"}
    reachable = set(re.findall(r"\]\(([^)#]+\.md)", README))
    inner = {
        f"data/{found}" for found in re.findall(r"\(([^)#]+\.md)", DOCUMENTS["data/README.md"])
    }
    assert own - reachable - inner == set()


@pytest.mark.parametrize("page", TABLES)
def test_tables_follow_from_the_code(page):
    assert DOCUMENTS[page] == current(page), "run python -m tests.helpers.page_tables"
    assert TABLES[page]() in DOCUMENTS[page]
