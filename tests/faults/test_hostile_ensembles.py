"""What anybody may have put into a directory of several runs: links, folders, other tasks."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.helpers.program import started, write_project
from tests.helpers.tiny import listing

SHORT = ("--set", "training.max_epochs=1", "--set", "training.checkpoint_every=null", "--quiet")
FIT = ("fit", "c.yaml", "--run-dir", "many", *SHORT)
SEEDS = (*FIT, "--seeds", "0,1")
USES = (
    ("predict", "test.tsv", "--run", "many"),
    ("eval", "many"),
    ("eval", "many", "--data", "test.tsv"),
)


def ended(folder: Path, *arguments: str) -> tuple[int, str, str]:
    with started(folder, *arguments) as running:
        return running.end(), running.out, running.err


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two runs in one directory, and a run of other labels."""
    folder = tmp_path_factory.mktemp("several")
    write_project(folder)
    other = (folder / "train.tsv").read_text().replace("\tup", "\tleft")
    (folder / "other.tsv").write_text(other)
    labels = ("--set", "data.train=other.tsv", "--set", "data.test=null")
    for arguments in (SEEDS, ("fit", "c.yaml", "--run-dir", "other", *labels, *SHORT)):
        code, _, err = ended(folder, *arguments)
        assert code == 0, err
    return folder


@pytest.fixture
def project(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path / "p")
    return tmp_path / "p"


@pytest.mark.parametrize("how", ["--force", "--resume"])
@pytest.mark.parametrize("member", ["seed-0", "seed-1"])
def test_a_link_in_the_place_of_a_run_is_refused(project: Path, member: str, how: str) -> None:
    """Else what `--force` replaces, or `--resume` goes on with, is somebody else's run."""
    shutil.rmtree(project / "many" / member)
    (project / "many" / member).symlink_to("../other")
    before = listing(project)
    for arguments in (*USES, (*SEEDS, how)):
        code, out, err = ended(project, *arguments)
        assert (code, out) == (2, ""), err
        assert f"many/{member}: is a link" in err
    assert listing(project) == before


@pytest.mark.parametrize("how", ["--force", "--resume"])
def test_all_is_checked_before_anything_is_replaced(project: Path, how: str) -> None:
    shutil.rmtree(project / "many" / "seed-1")
    (project / "many" / "seed-1").write_text("mine")
    before = listing(project)
    code, out, err = ended(project, *SEEDS, how)
    assert (code, out) == (2, ""), err
    assert listing(project) == before


@pytest.mark.parametrize("how", ["--force", "--resume"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_the_list_of_runs_is_no_file(project: Path, kind: str, how: str) -> None:
    """A folder may be the user's own; what else stands there is replaced, not followed."""
    path = project / "many" / "ensemble.json"
    path.unlink()
    if kind == "folder":
        path.mkdir()
        (path / "mine").write_text("mine")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("../c.yaml")
    before = (project / "c.yaml").read_text()
    for use in USES:
        code, out, err = ended(project, *use)
        assert (code, out) == (2, ""), err
    code, _, err = ended(project, *SEEDS, how)
    assert code == (2 if kind == "folder" else 0), err
    assert (project / "c.yaml").read_text() == before
    assert kind != "folder" or (path / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    "names", [["seed-0", "seed-0"], [f"seed-{i}" for i in range(1001)], ["seed-0", "seed-7"]]
)
def test_a_crafted_list_of_runs_is_refused(project: Path, names: list[str]) -> None:
    path = project / "many" / "ensemble.json"
    path.write_text(json.dumps({"format_version": 1, "members": names}))
    for use in USES:
        code, out, err = ended(project, *use)
        assert (code, out) == (2, ""), err


@pytest.mark.parametrize("place", ["seed-0", "seed-1"])
def test_a_run_of_other_labels_answers_nothing(project: Path, place: str) -> None:
    shutil.rmtree(project / "many" / place)
    shutil.copytree(project / "other", project / "many" / place)
    for use in (*USES, ("eval", "many", "--data", "other.tsv")):
        code, out, err = ended(project, *use)
        assert (code, out) == (2, ""), err


@pytest.mark.parametrize(
    "given",
    [
        ("--seeds", "0,00"),
        ("--seeds", "0,\u0663"),
        ("--seeds", "0," + "9" * 5000),
        ("--seeds", f"0,{2**63}"),
        ("--seeds", ",".join(map(str, range(1001)))),
        ("--folds", "1001"),
        ("--folds", str(10**9)),
    ],
)
def test_odd_numbers_of_runs_are_refused(project: Path, given: tuple[str, str]) -> None:
    before = listing(project)
    code, out, err = ended(project, *FIT, *given)
    assert (code, out) == (2, ""), err
    assert f"{given[0]}: found" in err
    assert max(map(len, err.splitlines())) < 200
    assert listing(project) == before
