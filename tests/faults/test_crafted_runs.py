"""Files of a run that anybody may have written, in the commands that show, compare and export."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import pytest

from seqtrain.cli.main import run as run_program
from seqtrain.export.export_folder import export
from tests.helpers.program import fit, write_project
from tests.helpers.tiny import listing
from tests.helpers.watched import watch

SHORT = ("--set", "training.max_epochs=1", "--set", "training.checkpoint_every=null")
HUGE = "1" + "0" * 400
NUMBERS = ("1e999", "-1e999", HUGE, "1e300", "5e-324", '"x"', "[[1]]", "{}", "true", "null")
KEYS = ("epoch", "seconds", "tokens", "lr", "tokens_per_second", "best", "train", "validation")
LISTING = (("runs", ".", "--sort", "seconds"), ("runs", ".", "--json"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a finished run and its export."""
    folder = tmp_path_factory.mktemp("finished")
    write_project(folder)
    fit(folder, "r", *SHORT)
    export(folder / "r", folder / "port")
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that run, in a project that is the current directory."""
    shutil.copytree(finished, tmp_path / "p")
    monkeypatch.chdir(tmp_path / "p")
    return tmp_path / "p" / "r"


def ended(*arguments: str) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code, stdout and stderr."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as code:
        run_program(list(arguments))
    out.flush()
    return int(str(code.value.code)), out.buffer.getvalue().decode(), err.getvalue()


def write_metrics(run: Path, key: str, value: str) -> None:
    """Put a value under a key of two epochs, and under the scores inside the last two keys."""
    inner = f'{{"loss": {value}, "accuracy": {value}, "macro_f1": {value}}}'
    values = {"event": '"epoch"', "epoch": "1", "best": "true", "seconds": "1", "tokens": "5"}
    values[key] = inner if key in ("train", "validation") else value
    line = "{" + ", ".join(f'"{name}": {text}' for name, text in values.items()) + "}\n"
    other = line.replace('"epoch": 1', '"epoch": 2').replace(value, "0")
    (run / "metrics.jsonl").write_text(line + other + '{"event": "end", "test": ' + inner + "}\n")


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("key", KEYS)
def test_numbers_of_the_metrics_are_shown_or_left_out(
    run: Path, key: str, figure: Callable[[str], None], step: int
) -> None:
    numbers = NUMBERS[::step]
    for place, value in enumerate(numbers):
        write_metrics(run, key, value)
        code, _, err = ended("report", "r", "-o", "r.html", "--force")
        assert code in (0, 2), (value, err)
        shutil.copytree(run, run.parent / f"with-{place}")
    for command in LISTING:
        code, out, err = ended(*command)
        assert code == 0, (command, err)
        assert out.count("with-") >= len(numbers)
    figure(f"metrics with odd values under {key}: {len(numbers)} runs reported or refused, listed")


@pytest.mark.parametrize("value", [1.5, None, ["a"], {"b": [1]}, "\x1b[31m", 10**400])
def test_an_environment_is_shown_whatever_it_holds(run: Path, value: object) -> None:
    path = run / "environment.json"
    environment = json.loads(path.read_text())
    digests = dict.fromkeys(environment["data"], value)
    path.write_text(json.dumps({**environment, "torch": value, "device": value, "data": digests}))
    code, _, err = ended("report", "r", "-o", "r.html")
    assert code in (0, 2), err
    if code == 0:
        assert "\x1b" not in (run.parent / "r.html").read_text()


@pytest.mark.parametrize(
    ("old", "new"),
    [("label: label", "label: text"), ("lowercase: true", "lowercase: false"), ("text", "label")],
)
@pytest.mark.parametrize("command", ["eval", "errors", "check"])
def test_a_config_that_the_model_was_not_trained_with(
    run: Path, command: str, old: str, new: str
) -> None:
    """Rows that are held out again are encoded as it says: another one would score nonsense."""
    path = run / "config.yaml"
    path.write_text(path.read_text().replace(f"{old}\n", f"{new}\n"))
    arguments = () if command == "check" else ("--split", "validation")
    if command == "check":
        path.write_text(path.read_text().replace("test: test.tsv", "test: null"))
    code, _, err = ended(command, "r", *arguments)
    assert code == 2, err


@pytest.mark.parametrize(
    ("old", "new"), [("validation: 0.2", "validation: 0.4"), ("seed: 0", "seed: 1")]
)
def test_other_rows_are_not_held_out_in_silence(run: Path, old: str, new: str) -> None:
    """The model learned from some of them: their scores would promise too much."""
    lines = ["s\tlabel\n", *(f"{i:06b}\t{'xy'[i % 2]}\n" for i in range(40))]
    Path("s.tsv").write_text("".join(lines))  # whichever rows train has, both symbols are in them
    data = ("train=s.tsv", "test=null", "sequence=s", "tokenizer=char")
    fit(run.parent, "c", *SHORT, *(word for key in data for word in ("--set", f"data.{key}")))
    path = run.parent / "c" / "config.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    resume = ("--run-dir", "c", "--resume", "--set", "training.max_epochs=9")
    for command in (
        ("eval", "c", "--split", "validation"),
        ("errors", "c", "--split", "validation"),
        ("report", "c", "-o", "c.html"),
        ("fit", "c/config.yaml", *resume),
    ):
        code, out, err = ended(*command)
        assert (code, out) == (2, "")
        assert "c/config.yaml: holds out other rows than the run did" in err


LINEAGES = [
    None, 5, {}, ["x"], [[]], [{}], [{"run": "x", "weights_sha256": "0" * 63}],
    [{"run": 5, "weights_sha256": "0" * 64}], [{"run": "x", "weights_sha256": 10**63}],
    [{"run": "x" * 5000, "weights_sha256": "0" * 64}],
    [{"run": "x", "weights_sha256": "0" * 64, "more": 1}],
    [{"run": "x", "weights_sha256": "0" * 64}] * 1001,
]  # fmt: skip


@pytest.mark.parametrize("lineage", LINEAGES, ids=range(len(LINEAGES)))
def test_a_crafted_lineage_is_not_handed_on(run: Path, lineage: object) -> None:
    path = run / "environment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "lineage": lineage}))
    before = listing(run.parent)
    for command in (
        ("fit", "c.yaml", "--run-dir", "new", "--init-from", "r", "--quiet", *SHORT),
        ("fit", "c.yaml", "--run-dir", "r", "--resume", "--quiet", *SHORT),
        ("eval", "r", "--split", "validation"),
    ):
        code, out, err = ended(*command)
        assert (code, out) == (2, ""), err
        assert "environment.json: lineage: expected" in err
    assert listing(run.parent) == before


@pytest.mark.parametrize("seconds", [-(10**15), 2**40, 10**15])
def test_runs_of_any_time_are_listed(run: Path, seconds: int) -> None:
    os.utime(run / "config.yaml", (seconds, seconds))
    code, out, err = ended("runs", ".", "--json")
    assert code == 0, err
    assert [Path(each["path"]).name for each in json.loads(out)["runs"]] == ["r"]


TARGETS = {
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "link to a pipe": lambda path: (os.mkfifo(f"{path}-end"), os.symlink(f"{path}-end", path)),
    "link to a device": lambda path: os.symlink("/dev/null", path),
}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize(
    "arguments",
    [
        ("init", "train.tsv", "--label", "label", "-o", "there.yaml", "--force"),
        ("report", "r", "-o", "there.html", "--force"),
        ("compare", "c.yaml", "--chart", "there.svg", "--force"),
    ],
)
def test_a_pipe_or_device_is_not_replaced(run: Path, arguments: tuple[str, ...], kind: str) -> None:
    (path,) = (run.parent / word for word in arguments if word.startswith("there"))
    TARGETS[kind](path)
    before = path.lstat()
    code, _, err = ended(*arguments)
    assert code == 2, err
    assert "expected a file" in err
    assert os.path.samestat(before, path.lstat())
    if kind.startswith("link"):
        assert stat.S_ISLNK(path.lstat().st_mode)


def test_no_input_is_replaced(run: Path) -> None:
    project = run.parent
    for name in ("test.tsv", "train.tsv"):
        before = (project / name).read_bytes()
        for given in (["--test", "test.tsv"], ["test.tsv"]):
            arguments = ("init", "train.tsv", *given, "-o", name, "--force")
            code, _, err = ended(*arguments)
            assert (code, "is the input" in err) == (2, True), err
        assert (project / name).read_bytes() == before


@pytest.mark.parametrize("where", [".", "../port", "/", "link to nothing"])
def test_no_export_takes_the_place_of_a_folder_in_use(
    run: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program in it, such as the user's shell, would be left in a folder that is gone."""
    (run.parent / "empty").mkdir()
    (run.parent / "empty" / "link to nothing").symlink_to("nothing")
    monkeypatch.chdir(run.parent / ("port" if where == "../port" else "empty"))
    before = listing(run.parent)
    code, _, err = ended("export", str(run), where, "--force")
    assert (code, "expected a new folder" in err or "leads nowhere" in err) == (2, True), err
    assert os.path.samefile(os.curdir, os.getcwd())
    assert listing(run.parent) == before


def test_a_link_to_a_folder_stands_for_it(run: Path) -> None:
    (run.parent / "elsewhere" / "empty").mkdir(parents=True)
    (run.parent / "link").symlink_to("elsewhere/empty")
    code, _, err = ended("export", "r", "link")
    assert code == 0, err
    assert (run.parent / "link").is_symlink()
    assert (run.parent / "elsewhere" / "empty" / "model.onnx").is_file()


@pytest.mark.parametrize("name", ["model.onnx", "predict.py", "manifest.json", "ngrams.npz"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "file"])
def test_only_an_export_is_replaced(run: Path, name: str, kind: str) -> None:
    """What has the name of an exported file, but isn't one, may be the user's own."""
    port = run.parent / "port"
    (port / name).unlink(missing_ok=True)
    if kind == "file":
        shutil.rmtree(port)
        port.mkdir()
        (port / "predict.py").write_text("mine")
    elif kind == "folder":
        (port / name).mkdir()
        (port / name / "mine").write_text("mine")
    else:
        os.mkfifo(port / name)
    before = listing(port)
    code, _, err = ended("export", "r", "port", "--force")
    assert code == 2, err
    assert "no part of an export" in err
    assert listing(port) == before


def test_the_exported_script_ends_where_nobody_reads_on(run: Path) -> None:
    (run.parent / "many.txt").write_text("rise the lift\n" * 20_000)
    with subprocess.Popen(
        [sys.executable, "port/predict.py", "many.txt"],
        cwd=run.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as script:  # fmt: skip
        assert script.stdout
        assert script.stderr
        assert script.stdout.readline() == "label\tprobability\n"
        script.stdout.close()
        said = script.stderr.read()
    assert (script.returncode, said) == (141, "")


def answers_while_changing(
    folder: Path, path: str, versions: tuple[str, str], command: tuple[str, ...]
) -> list[tuple[int, str]]:
    """Let a file become another one as it is opened for the first time, the second, and so on.

    Returns:
        Exit code and stdout of each, the last of which left the file as it was.
    """
    os.chdir(folder)
    left = [0]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(arguments[0]) == path:
            left[0] -= 1
            if left[0] == 0:
                os.replace("other.tsv", path)

    sys.addaudithook(hook)
    found, opening = [], 0
    while not left[0] > 0:
        opening += 1
        left[0] = 0
        for name, version in zip((path, "other.tsv"), versions, strict=True):
            Path(name).write_text(version)
        left[0] = opening
        found.append(ended(*command)[:2])
    return found


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("test.tsv", ("errors", "r", "--json")),
        ("test.tsv", ("eval", "r", "--json")),
        ("train.tsv", ("errors", "r", "--split", "validation", "--json")),
        ("train.tsv", ("data", "c.yaml", "--json", "--no-cache")),
    ],
)
def test_all_that_is_shown_is_of_one_version_of_the_data(
    run: Path, path: str, command: tuple[str, ...], figure: Callable[[str], None]
) -> None:
    """Where rows are read a second time, to show them, they are those that were encoded."""
    text = Path(path).read_text()
    versions = text, text.replace("rise", "sink").replace("the", "of a")
    task = partial(answers_while_changing, path=path, versions=versions, command=command)
    found, _, _ = watch(run.parent, task)
    allowed = [found[-1]]
    Path(path).write_text(versions[1])
    allowed.append(ended(*command)[:2])
    assert allowed[0][0] == 0
    assert allowed[0] != allowed[1]
    assert not [each for each in found if each[0] != 2 and each not in allowed]
    assert (2 in [code for code, _ in found]) == (command[0] != "eval"), "eval reads them once"
    figure(f"data changed at each of its {len(found) - 1} openings by {' '.join(command)}: "
           f"{Counter(code for code, _ in found)}")  # fmt: skip
