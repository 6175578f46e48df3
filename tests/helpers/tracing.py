"""Saves of a run under strace: what they asked the system for, and faults put in there."""

import ctypes
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from seqtrain.errors import CheckpointError, RunError
from seqtrain.files.writing import (
    VerifiedFolder,
    read_folder,
    remove_strays,
    write_file,
    write_folder,
)
from seqtrain.runs.run_directory import FOLDERS, RunDirectory
from tests.helpers.program import FORKS

CALLS = ("openat", "mkdir", "write", "ftruncate", "fsync", "rename", "unlink", "unlinkat", "rmdir")
OLD, NEW = 2, 3
PR_SET_PTRACER = 0x59616D61


@dataclass(frozen=True)
class Call:
    """A system call that changes something in the folder, numbered as strace numbers it.

    That is among the calls of this name in its thread, from 1.
    """

    name: str
    ordinal: int
    line: str


def save(folder: Path, number: int) -> None:
    """Save as a run does; each file holds a number, so that a mix of two saves is noticed."""
    run = RunDirectory(folder)
    remove_strays(run.path, FOLDERS)
    length = run.append_metrics({"number": number})
    files = {"weights": str(number).encode() * 999, "state": f"{number} {length}".encode()}
    write_folder(run.last, files, previous=run.previous)
    write_folder(run.best, files)
    write_file(run.path / "config.yaml", str(number).encode())


def save_new(folder: Path) -> None:
    """Save once more, and exit with code 3 if the run fails."""
    try:
        save(folder, NEW)
    except RunError:
        sys.exit(3)


def saved_twice(folder: Path) -> Path:
    """Save twice, so that the next save moves both checkpoints on."""
    folder.mkdir()
    for number in (OLD - 1, OLD):
        save(folder, number)
    return folder


def trace(
    strace: str, folder: Path, task: Callable[[Path], None], *options: str
) -> tuple[int, list[str]]:
    """Run a task in another process under strace; return its exit code and its calls."""
    ours, theirs = FORKS.Pipe()
    process = FORKS.Process(target=_when_told, args=(theirs, task, folder))
    process.start()
    ours.recv()
    log = folder.with_name("trace")
    command = [strace, "-f", "-y", "-xx", "-s", "100000", "-o", str(log), "-p", str(process.pid)]
    command += ["-e", f"trace={','.join(CALLS)}", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr
        assert "attached" in (words := tracer.stderr.readline()), words
        ours.send(None)
        process.join()
        tracer.communicate()
    assert process.exitcode is not None
    return process.exitcode, log.read_text().splitlines()


def _when_told(told: Connection, task: Callable[[Path], None], folder: Path) -> None:
    """Wait until this process is traced."""
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
    told.send(None)
    told.recv()
    task(folder)


def calls(lines: list[str], folder: Path) -> list[Call]:
    """Return the calls of a trace that change something in the folder, in order."""
    counts: Counter[tuple[str, str]] = Counter()
    found = []
    for line in lines:
        match = re.match(r"(\d+) +(\w+)\(", line)
        if match is None:
            continue
        thread, name = match.groups()
        counts[thread, name] += 1
        if str(folder) in plain(line) and (name != "openat" or "O_CREAT" in line):
            found.append(Call(name, counts[thread, name], line))
    return found


def plain(line: str) -> str:
    r"""Show what strace wrote as \x2f\x74, and names in an open folder as whole paths."""
    shown = re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), line)
    if " write(" in shown:
        return shown
    return re.sub(r'[0-9]+<(/[^>"]*)>, "([^/"][^"]*)"', r'"\1/\2"', shown)


def copied(template: Path, name: str = "run") -> Path:
    """Return a fresh copy of a folder in the same parent folder."""
    target = template.with_name(name)
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(template, target)


def number_in(saved: VerifiedFolder) -> tuple[int, int]:
    """Return the number in a saved folder and the length of the metrics then."""
    weights, state = saved.read("weights").decode(), saved.read("state").decode().split()
    assert weights == state[0] * 999, "two writings are mixed"
    return int(state[0]), int(state[1])


def good(*folders: Path) -> list[tuple[int, int]]:
    """Return what the whole ones among the folders hold."""
    found = []
    for folder in folders:
        try:
            found.append(read_folder(folder, number_in))
        except CheckpointError:
            continue
    return found


def recovered(folder: Path) -> int:
    """Recover as a resumed run does; return the number of the save that it resumes from."""
    run = RunDirectory(folder)
    assert {found for found, _ in good(run.best)} <= {OLD, NEW}
    remove_strays(run.path, FOLDERS)
    (best,) = good(run.best)
    number, length = good(run.last, run.previous)[0]
    assert {best[0], number} <= {OLD, NEW}
    run.cut_metrics(length)
    assert (folder / "config.yaml").read_text() in (str(OLD), str(NEW))
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    return number
