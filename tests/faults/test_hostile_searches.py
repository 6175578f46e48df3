"""What anybody may have put into the directory of a search: links, folders, crafted trials."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.helpers.program import started, write_project
from tests.helpers.tiny import listing

SPACE = """\
tune:
  space: {model.hidden_size: [4, 8], model.embedding_dim: [4], batching.batch_size: [8]}
"""
SEARCH = ("tune", "c.yaml", "--run-dir", "t", "--trials", "2")
RESUME, FORCE = (*SEARCH, "--resume"), (*SEARCH, "--force")


def ended(folder: Path, *arguments: str) -> tuple[int, str]:
    with started(folder, *arguments) as running:
        return running.end(), running.err


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a search of two trials that is over, made where others' folders stood."""
    folder = tmp_path_factory.mktemp("searched")
    write_project(folder)
    (folder / "c.yaml").write_text((folder / "c.yaml").read_text() + SPACE)
    (folder / "t" / "trials" / "thesis").mkdir(parents=True)
    (folder / "t" / "trials" / "7").mkdir()
    code, err = ended(folder, *FORCE)
    assert code == 0, err
    return folder


@pytest.fixture
def project(searched: Path, tmp_path: Path) -> Path:
    shutil.copytree(searched, tmp_path / "p")
    shutil.rmtree(tmp_path / "p" / "t" / "trials")
    outside = tmp_path / "p" / "outside"
    for name in ("0", "1", "2", "mine"):
        (outside / name / "best").mkdir(parents=True)
        (outside / name / "config.yaml").write_text("mine")
    return tmp_path / "p"


@pytest.mark.parametrize("arguments", [RESUME, FORCE])
def test_a_link_in_the_place_of_the_trials_is_refused(
    project: Path, arguments: tuple[str, ...]
) -> None:
    (project / "t" / "trials").symlink_to(project / "outside")
    before = listing(project / "outside"), listing(project / "t")
    code, err = ended(project, *arguments)
    assert code == 2, err
    assert "trials" in err
    assert (listing(project / "outside"), listing(project / "t")) == before


@pytest.mark.parametrize("number", ["0", "1"])
def test_a_link_in_the_place_of_a_trial_is_not_followed(project: Path, number: str) -> None:
    (project / "t" / "trials").mkdir()
    (project / "t" / "trials" / number).symlink_to(project / "outside" / number)
    before = listing(project / "outside")
    code, err = ended(project, *RESUME)
    assert code in (0, 2), err
    assert listing(project / "outside") == before


@pytest.mark.parametrize("name", ["trials.jsonl", "best.yaml", "base.yaml", "trials"])
@pytest.mark.parametrize("arguments", [RESUME, FORCE])
def test_another_kind_of_file_is_refused_and_nothing_removed(
    project: Path, name: str, arguments: tuple[str, ...]
) -> None:
    path = project / "t" / name
    path.unlink(missing_ok=True)
    if name == "trials":
        os.mkfifo(path)
    else:
        path.mkdir()
        (path / "mine").write_text("mine")
    before = listing(project / "t")
    code, err = ended(project, *arguments)
    if (name, arguments) == ("best.yaml", RESUME):
        assert code == 0, err  # it isn't read, and no better trial comes
    else:
        assert code == 2, err
        assert listing(project / "t") == before


def test_what_no_search_left_stays(searched: Path) -> None:
    assert [path.name for path in (searched / "t" / "trials").iterdir()] == ["thesis"]


CRAFTED = {
    "number": [-1, 1.5, "x", 10**400, None],
    "state": ["over", None],
    "settings": [{"nosuch": 1}, {"seed.x": 1}, {"model.hidden_size": "__import__"}, [], None],
    "value": ["x", 1e300, 10**400, None],
    "loss": ["x", [1], 10**400],
    "curve": [[], [[1]], [["x", 1]], [[1, 10**400]], [[1, 1e300]], None, 5],
    "best_epoch": [-5, "x"],
    "epochs": [10**400, {}],
    "seconds": ["x", 10**400],
    "problem": [5],
    "another": [1],
}


@pytest.mark.parametrize("key", CRAFTED)
def test_a_crafted_trial_is_refused(project: Path, key: str) -> None:
    path = project / "t" / "trials.jsonl"
    first, *rest = path.read_text().splitlines()
    for value in CRAFTED[key]:
        line = json.dumps({**json.loads(first), key: value})
        path.write_text("\n".join([line, *rest]) + "\n")
        code, err = ended(project, *RESUME)
        assert code == 2, (value, err)
        assert "trial" in err
