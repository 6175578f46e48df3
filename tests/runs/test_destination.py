"""May I write here? Nothing of the user's is lost, and of what is replaced nothing stays."""

import os
import shutil
from pathlib import Path

import pytest

import seqtrain
from seqtrain.errors import ConfigError
from tests.helpers.tiny import listing

SHORT = ("--quiet", "--set", "training.max_epochs=1")
FORCE = ("fit", "c.yaml", "--run-dir", "r", "--force", *SHORT)
EXPORT = {
    *("model.onnx", "preprocessing.json", "vocabulary.json", "predict.py", "golden.jsonl"),
    *("manifest.json", "reading.zip"),
}
JSON = {
    "environment.json",
    "metrics.jsonl",
    "test.json",
    "validation.json",
}
RUN = {"best", "last", "config.yaml", *JSON}


def names(folder: str) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


def test_what_is_replaced_is_gone(begun, cli):
    """A run by several, these by others, these by a run; what isn't a run's stays."""
    refused = cli("fit", "c.yaml", "--run-dir", "r", code=2).err
    assert all(part in refused for part in ("--run-dir: r", "--resume", "--force"))
    Path("r/notes.txt").write_text("mine")
    Path("r/.best-12345").mkdir()
    for seeds in ((0, 1), (2, 3)):
        chosen = ",".join(map(str, seeds))
        cli(*FORCE, "--seeds", chosen)
        members = {f"seed-{seed}" for seed in seeds}
        assert names("r") == {"ensemble.json", "notes.txt", *members}
        cli("eval", "r", "--json")
    cli(*FORCE)
    assert names("r") == {*RUN, "notes.txt"}


def test_data_that_cannot_be_read_leave_what_they_would_replace(begun, cli):
    cli("fit", "c.yaml", "--run-dir", "several", "--seeds", "0,1", *SHORT)
    Path("train.tsv").write_text("text\tlabel\nx\n")
    before = listing(begun)
    for more in ((), ("--seeds", "0,1"), ("--run-dir", "several", "--seeds", "2,3")):
        cli(*FORCE, *more, code=2)
    assert listing(begun) == before


def keep_another_config() -> None:
    """A folder of the user's own that looks like a run's."""
    shutil.rmtree("r")
    Path("r/best").mkdir(parents=True)
    Path("r/best/mine.txt").write_text("mine")
    Path("r/config.yaml").write_text("mine")


def keep_an_environment() -> None:
    shutil.rmtree("r")
    Path("r").mkdir()
    Path("r/environment.json").write_text("{}")


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (keep_another_config, "r/config.yaml"),
        (keep_an_environment, "r/environment.json"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--seeds", "0,1")])
def test_what_no_run_wrote_is_never_replaced(begun, cli, keep, kept, more):
    keep()
    before = listing(begun)
    ended = cli(*FORCE, *more, code=2)
    assert ended.problems == [
        f"seqtrain: --run-dir: no run wrote {kept}; move it away, or choose another directory"
    ]
    assert listing(begun) == before


def test_the_config_that_is_read_is_not_replaced(begun, cli):
    for more in ((), ("--seeds", "0,1")):
        ended = cli("fit", "r/config.yaml", "--run-dir", "r", "--force", *more, code=2)
        assert "r/config.yaml is the input" in ended.err
    with pytest.raises(ConfigError, match="is the input"):
        seqtrain.fit("r/config.yaml", run_dir="r", force=True)


def test_a_link_is_removed_itself(begun, cli):
    shutil.copytree("r/best", "elsewhere")
    shutil.rmtree("r/best")
    Path("r/best").symlink_to("../elsewhere")
    before = listing(begun / "elsewhere")
    cli(*FORCE)
    assert not Path("r/best").is_symlink()
    assert listing(begun / "elsewhere") == before


WRITING = (
    ("init", "train.tsv", "--label", "label", "-o", "there.yaml"),
    ("report", "r", "-o", "there.html"),
    ("predict", "test.tsv", "--run", "r", "--output", "there.tsv"),
)


@pytest.mark.parametrize("arguments", WRITING, ids=lambda arguments: arguments[0])
def test_a_file_is_replaced_where_that_was_asked_for(begun, cli, arguments):
    path = Path(arguments[-1])
    path.write_text("mine")
    assert "--force" in cli(*arguments, code=2).err
    assert path.read_text() == "mine"
    path.unlink()
    path.mkdir()
    assert "is a folder" in cli(*arguments, "--force", code=2).err
    if arguments[0] != "predict":  # rows may be written into a pipe
        path.rmdir()
        os.mkfifo(path)
        assert "is a pipe" in cli(*arguments, "--force", code=2).err
    assert "no folder" in cli(*arguments[:-1], f"missing/{path}", code=2).err


def test_only_an_export_is_replaced(begun, cli, monkeypatch):
    ended = cli("export", "r", "port")
    assert (names("port"), ended.out) == (EXPORT, "")
    assert "golden rows: " in ended.err
    assert "--force" in cli("export", "r", "port", code=2).err
    cli("export", "r", "port", "--force")
    for change, words in (
        (lambda port: (port / "mine").touch(), "holds 'mine', which is no part of an export"),
        (lambda port: (port / "ngrams.npz").mkdir(), "holds 'ngrams.npz', which is no part of"),
        (lambda port: (port / "manifest.json").unlink(), "which is no part of an export"),
        (monkeypatch.chdir, "is the current directory or a mount point"),
    ):
        port = shutil.copytree(begun / "port", begun / f"port {words[:10]}")
        change(port)
        before = listing(begun)
        assert words in cli("export", str(begun / "r"), str(port), "--force", code=2).err
        assert listing(begun) == before
    cli("export", str(begun / "r"), str(begun / "r/best"), "--force", code=2)
