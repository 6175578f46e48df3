"""Behaviour that only a separate process shows: imports, pipes, full disks and signals."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from seqtrain.cli.main import run as run_program
from tests.helpers.program import connect, conversing, started
from tests.helpers.terminal import terminal

PROGRAM = [sys.executable, "-m", "seqtrain"]


def test_help_and_config_errors_do_not_import_torch(tmp_path):
    (tmp_path / "bad.yaml").write_text("data: {train: a.tsv}\n")
    script = """
import sys
from seqtrain.cli.main import run
import seqtrain
for arguments in (["--help"], ["fit", "-h"], ["eval", "-h"], ["predict", "-h"], ["fit", "bad.yaml"],
                  ["predict", "x", "--output", "."], ["fit", "bad.yaml", "--device", "foo"],
                  ["eval", "--device", "gpu"], ["config", "--schema"]):
    try:
        run(arguments)
    except SystemExit as ended:
        print("code", ended.code)
    if arguments[-1] in ("-h", "--help"):
        assert not {"pydantic", "rich", "yaml"} & sys.modules.keys()
sys.exit(1 if {"torch", "numpy", "pandas"} & sys.modules.keys() else 0)
"""
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script], cwd=tmp_path, capture_output=True
    )
    codes = [line for line in ended.stdout.splitlines() if line.startswith(b"code")]
    assert codes == [b"code 0"] * 4 + [b"code 2"] * 4 + [b"code 0"]
    assert ended.returncode == 0


def test_commands_that_compute_no_model_do_not_import_torch(trained, tmp_path):
    """Wrong names of runs are found before torch is imported."""
    script = """
import sys
from seqtrain.cli.main import run
sys.modules["optuna"] = None
for arguments in (["--version"], ["runs", "."], ["runs", ".", "--json"], ["config", "c.yaml"],
                  ["data", "c.yaml"], ["data", "c.yaml", "--json"],
                  ["init", "train.tsv", "-o", "-"],
                  ["eval", "nope"], ["errors", "nope"], ["report", "nope"],
                  ["predict", "x", "nope"], ["check", "nope"], ["tune", "c.yaml"]):
    try:
        run(arguments)
    except SystemExit as ended:
        print("code", ended.code, file=sys.stderr)
    assert "torch" not in sys.modules, arguments
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    ended = subprocess.run(command, cwd=trained, capture_output=True, text=True)
    codes = [line for line in ended.stderr.splitlines() if line.startswith("code")]
    assert codes == ["code 0"] * 7 + ["code 2"] * 6, ended.stderr


def test_predict_imports_of_torch_only_what_torch_imports_itself(trained):
    """The compiler and the exporter of torch take seconds to import."""
    script = """
import sys
from seqtrain.cli.main import run
try:
    run(["predict", "train.tsv", "run", "--output", "-", "--device", "cpu"])
except SystemExit as ended:
    assert ended.code == 0
assert "torch" in sys.modules
sys.exit(str(sys.modules.keys() & {"torch._dynamo", "torch._inductor", "torch.onnx", "sympy"}))
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=trained, capture_output=True)
    assert ended.stderr.decode().splitlines()[-1] == "set()"


def test_full_disk_behind_stdout_is_one_line():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [*PROGRAM, "config", "--schema"], stdout=full, stderr=subprocess.PIPE
        )
    assert ended.returncode == 3
    assert ended.stderr.count(b"\n") == 1
    assert b"No space" in ended.stderr


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_exit_code_stands_where_nobody_reads_stderr(redirection):
    for arguments, code in ((["fit", "missing.yaml"], 2), (["config", "--schema"], 0)):
        command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *PROGRAM, *arguments]
        ended = subprocess.run(command, capture_output=True)
        assert (ended.returncode, ended.stderr) == (code, b"")
        assert ended.stdout.startswith(b"{") == (code == 0)
        assert bool(ended.stdout) == (code == 0)


def test_answers_come_before_stdin_ends_and_a_closed_pipe_is_silent(trained, tmp_path):
    with conversing(tmp_path, "predict", "-", "--run", trained / "run") as (program, ask, answers):
        ask.write(b"rise\n")
        assert answers.readline() == b"label\tprobability\n"
        assert answers.readline().count(b"\t") == 1
        answers.close()
        ask.write(b"fall\n")
        assert program.end() == 141
        assert program.err == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_while_waiting_for_input(trained, tmp_path, number, code):
    with conversing(tmp_path, "predict", "-", "--run", trained / "run") as (program, ask, answers):
        ask.write(b"rise\n")
        assert answers.readline() == b"label\tprobability\n"
        program.send(number)
        assert program.end() == code
        assert "Traceback" not in program.err
        assert "Fatal" not in program.err


def connect_deaf(*connections: Any) -> None:
    """Let another thread get the signals: system calls of the main thread go on after them."""
    connect(*connections)
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def test_a_signal_right_before_the_wait_for_input(trained, tmp_path):
    words = ("predict", "-", "--run", trained / "run")
    with conversing(tmp_path, *words, connect=connect_deaf) as (program, ask, answers):
        ask.write(b"rise\n")
        assert answers.readline() == b"label\tprobability\n"
        time.sleep(0.2)  # it waits
        program.send(signal.SIGTERM)
        program.process.join(20)
        assert program.process.exitcode == 143


def test_names_that_are_no_utf8_work(project, cli):
    name = os.fsdecode(b"r-\xff.txt")
    try:
        Path(name).write_text("rise\nfall\n")
    except OSError:
        pytest.skip("this file system refuses such names")
    run = os.fsdecode(b"run-\xff")
    with started(project, "fit", "c.yaml", "--run-dir", run, "--quiet") as program:
        assert program.end() == 0
        assert os.fsencode(program.out) == b"run-\xff\n"
    assert cli("predict", name, "--run", run).out.count("\n") == 3
    refused = cli("predict", name, "--run", run, "--output", name, "--force", code=2)
    assert "r-\\udcff.txt is the input" in refused.err


@pytest.mark.parametrize(
    ("setting", "coloured"), [("COLORTERM=truecolor", True), ("NO_COLOR=1", False)]
)
def test_bars_on_a_terminal_and_colours_unless_unwanted(project, monkeypatch, setting, coloured):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv(*setting.split("=", 1))
    with terminal(120) as shown, pytest.raises(SystemExit) as end:
        run_program(["fit", "c.yaml"])
    assert end.value.code == 0
    assert "tokens/s" in shown.written
    assert "epoch 1: " in shown.written
    assert ("\x1b[" in shown.written) == coloured
