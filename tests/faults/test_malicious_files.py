"""Files made to do harm, under our names: refused, and nothing runs, is reached, or grows."""

import gzip
import io
import json
import os
import pickle
import shutil
import struct
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from seqtrain.files.writing import write_folder
from tests.helpers.program import CONFIG, fit
from tests.helpers.tiny import sets
from tests.helpers.watched import watch

CANARY = "canary"
MEMORY = 640 * 2**20
"""Less than the 768 MiB of a bomb; a line is read up to 256 MiB, and may be held twice."""
NAMES = ("model.safetensors", "model.json", "vocabulary.json", "training_state.safetensors",
         "training_state.json", "manifest.json")  # fmt: skip
TAGS = ("!!python/object/apply:os.system [touch canary]", "!include /etc/passwd", "!ENV ${PATH}")
WORDS = ("os.system", "../../../../etc/passwd", "http://127.0.0.1:9/x", "$(touch canary)")


class Payload:
    """Creates a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {CANARY}",)


def pickles() -> Iterator[bytes]:
    """Yield files that run code when they are unpickled, by torch.load or by numpy too."""
    yield from (pickle.dumps(Payload(), protocol) for protocol in (0, 2, 5))
    zipped = io.BytesIO()
    torch.save({"head.weight": torch.zeros(1), "x": Payload()}, zipped)
    yield zipped.getvalue()
    array = io.BytesIO()
    np.save(array, np.array([Payload()], dtype=object), allow_pickle=True)
    yield array.getvalue()


def headers() -> Iterator[bytes]:
    """Yield safetensors files with a false header."""
    huge = {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]}
    empty = {"dtype": "F32", "shape": [0, 2**62], "data_offsets": [0, 0]}
    part = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    for header in ({"head.bias": huge}, {"head.bias": empty}, {"a": part, "b": part},
                   {"__metadata__": {"module": "os"}, "head.bias": part}):  # fmt: skip
        text = json.dumps(header).encode()
        yield struct.pack("<Q", len(text)) + text + bytes(4)
    yield struct.pack("<Q", 2**63) + b"{}"
    yield struct.pack("<Q", 2**33) + b"{" * 99


def model_folders(files: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
    """Yield the files of model folders, one of them malicious; digests come with writing."""
    for name in NAMES[:-1]:
        yield from ({**files, name: content} for content in pickles())
    for name in ("model.safetensors", "training_state.safetensors"):
        yield from ({**files, name: content} for content in headers())
    description = json.loads(files["model.json"])
    for word in WORDS:
        forged = json.loads(files["model.json"])
        forged["architecture"]["_target_"] = word
        yield {**files, "model.json": json.dumps(forged).encode()}
        forged = {**description, "format_version": word}
        yield {**files, "model.json": json.dumps(forged).encode()}
        vocabulary = {"tokens": ["<pad>", "<unk>"], "source": word}
        yield {**files, "vocabulary.json": json.dumps(vocabulary).encode()}
    deep = b"[" * 10**6
    yield from ({**files, name: deep} for name in NAMES[1:3])


def tokenizers(model: str) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Yield tokenizer files, and whether they keep the merges, beside what costs memory or time."""
    trained = json.loads(model)
    inner, merges, words = trained["model"], trained["model"]["merges"], trained["model"]["vocab"]
    grow = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}
    split = {"type": "Split", "pattern": {"Regex": "(a*)*b"}, "behavior": "Isolated"}
    for added in (
        {"normalizer": {"type": "Sequence", "normalizers": [grow] * 4}},
        {"pre_tokenizer": split},
        {"padding": {"strategy": {"Fixed": 2**33}}},
        {"added_tokens": [{"id": 0, "content": "e", "special": True}]},
        {"model": inner | {"dropout": 0.5, "byte_fallback": True, "type": "Unigram"}},
    ):
        yield True, trained | added
    for key, value in (
        ("merges", [["e", "no token"], *merges]),
        ("merges", [*merges, merges[0]]),
        ("merges", list(reversed(merges))),
        ("merges", [[*merges[0], "e"]]),
        ("merges", [[["e"], "e"]]),
        ("merges", 5),
        ("vocab", {**words, "more": 9999}),
        ("vocab", dict(list(words.items())[1:])),
        ("vocab", None),
    ):
        yield False, trained | {"model": inner | {key: value}}


def data_files(folder: Path) -> Iterator[str]:
    """Write malicious data files; yield their names."""
    zeros = gzip.compress(bytes(2**24))
    (folder / "bomb.tsv.gz").write_bytes(gzip.compress(b"text\tlabel\n") + 48 * zeros)
    window = b"\x28\xb5\x2f\xfd\x00\xa8\x19\0\0aa\n"  # 2 GiB for one block of three bytes
    (folder / "window.tsv.zst").write_bytes(window)
    np.savez(folder / "object.npz", values=np.array([Payload()], dtype=object),
             offsets=np.array([0, 1]), labels=np.array(["a"]))  # fmt: skip
    with zipfile.ZipFile(folder / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("values.npy", bytes(2**28))
        archive.writestr("../outside.npy", b"x")
    (folder / "pickled.jsonl").write_bytes(pickle.dumps(Payload(), 0))
    yield from ("bomb.tsv.gz", "window.tsv.zst", "object.npz", "bomb.npz", "pickled.jsonl")
    yield from ("/dev/zero", "/proc/self/mem")


def attack(folder: Path, step: int) -> list[tuple[str, int]]:
    """Use each malicious file as a user would, of `step` folders one; return the exit codes."""
    codes = []

    def program(kind: str, *arguments: str) -> None:
        codes.append((kind, run_quietly(*arguments)))

    files = {path.name: path.read_bytes() for path in (folder / "r" / "last").iterdir()}
    signed = files.pop(NAMES[-1])
    for number, forged in enumerate(islice(model_folders(files), None, None, step)):
        write_folder(folder / "forged", forged)
        program(f"model folder {number}", "predict", "test.tsv", "--run", "forged")
        shutil.rmtree(folder / "r" / "previous", ignore_errors=True)
        write_folder(folder / "r" / "last", forged)
        program(f"checkpoint {number}", "fit", "c.yaml", "--run-dir", "r", "--resume", "--quiet")
    for content in pickles():
        (folder / "forged" / NAMES[-1]).write_bytes(content)
        program("manifest", "predict", "test.tsv", "--run", "forged")
    escaping = json.loads(signed)
    escaping["sha256"]["../../etc/passwd"] = "0" * 64
    (folder / "forged" / NAMES[-1]).write_text(json.dumps(escaping))
    program("manifest", "predict", "test.tsv", "--run", "forged")
    for tag in TAGS:
        (folder / "tagged.yaml").write_text(CONFIG + f"seed: {tag}\n")
        program("config", "fit", "tagged.yaml")
        program("option", "fit", "c.yaml", "--set", f"model.rnn={tag}")
    for name in data_files(folder):
        option = ("--set", f"data.train={name}", "--set", "data.sequence=0")
        program("train", "fit", "c.yaml", *option, "--set", "data.label=1", "--quiet")
        program("input", "predict", name, "--run", "good")
    return codes


def run_quietly(*arguments: str) -> int:
    """Run the program in this process; return its exit code."""
    from seqtrain.cli.main import run

    sys.stdout = sys.stderr = io.StringIO()
    try:
        run(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def attack_tokenizer(folder: Path) -> set[tuple[bool, int, bool]]:
    """Predict with crafted tokenizers; return if merges are kept, exit codes, if rows are equal."""
    files = {path.name: path.read_bytes() for path in (folder / "r" / "best").iterdir()}
    del files[NAMES[-1]]
    description, outcomes = json.loads(files["model.json"]), set()
    assert run_quietly("predict", "test.tsv", "--run", "r", "--output", "expected.tsv") == 0
    for keeps, forged in tokenizers(description["preprocessing"]["sequence"]["bpe_model"]):
        description["preprocessing"]["sequence"]["bpe_model"] = json.dumps(forged)
        write_folder(folder / "forged", files | {"model.json": json.dumps(description).encode()})
        rows = folder / "found.tsv"
        code = run_quietly(
            "predict", "test.tsv", "--run", "forged", "--output", str(rows), "--force"
        )
        same = code == 0 and rows.read_bytes() == (folder / "expected.tsv").read_bytes()
        outcomes.add((keeps, code, same))
    return outcomes


def test_a_tokenizer_is_rebuilt_from_its_merges_alone(project):
    settings = ("training.max_epochs=1", "data.tokenizer=bpe", "data.max_vocab_size=280")
    fit(project, "r", *sets(*settings))
    outcomes, offences, memory = watch(project, attack_tokenizer)
    assert offences == []
    assert outcomes == {(True, 0, True), (False, 2, False)}
    assert memory < 256 * 2**20


@pytest.mark.parametrize("step", [30, pytest.param(1, marks=pytest.mark.slow)])
def test_nothing_runs(begun, step):
    shutil.copytree(begun / "r", begun / "good")
    codes, offences, memory = watch(begun, partial(attack, step=step))
    assert offences == []
    assert not list(begun.rglob(CANARY))
    assert not list(begun.parent.glob("outside*"))
    wrong = [case for case in codes if case[1] not in (0, 2)]
    assert wrong == [("input", 3)]  # /proc/self/mem, which the system fails to read
    harmless = {kind.split()[0] for kind, code in codes if code == 0}
    assert harmless <= {"model"}  # folders whose forged file prediction never reads
    assert memory < MEMORY


USES = (
    ("predict", "test.tsv", "--run", "forged"),
    ("predict", "test.tsv", "--run", "forged", "--format", "jsonl"),
    ("predict", "test.tsv", "--run", "forged", "--steps", "--output", "steps.jsonl"),
    ("eval", "forged", "--data", "test.tsv", "--json"),
    ("errors", "forged", "--data", "test.tsv", "--json"),
    ("check", "forged", "--data", "test.tsv"),
    ("export", "forged", "port"),
)


def test_predictions_that_are_no_numbers_end_with_3(begun, cli, monkeypatch):
    """Each weight is finite, and the temperature one that a model may have; logits aren't."""
    monkeypatch.chdir(begun)
    files = {path.name: path.read_bytes() for path in (begun / "r" / "best").iterdir()}
    del files[NAMES[-1]]
    weights = safetensors.torch.load(files["model.safetensors"])
    weights["head.bias"] = torch.full_like(weights["head.bias"], 1e37)
    description = json.loads(files["model.json"])
    description["calibration"] = {"temperature": 0.01, "coverage": []}
    files["model.json"] = json.dumps(description).encode()
    files["model.safetensors"] = safetensors.torch.save(weights)
    write_folder(begun / "forged", files)
    for arguments in USES:
        ended = cli(*arguments, code=3)
        assert "nan" not in ended.out


def test_the_payload_and_the_watch_work(disk):
    """The canary isn't dead: where the file is unpickled, it is seen twice over."""
    (disk / "payload").write_bytes(pickle.dumps(Payload()))
    _, offences, _ = watch(disk, unpickle)
    assert any("find_class" in offence for offence in offences)
    assert (disk / CANARY).exists()


def unpickle(folder: Path) -> None:
    pickle.loads((folder / "payload").read_bytes())
