"""`model.pretrained`: a frozen encoder of texts as a branch, and `model.vectors` of a folder."""

import json
import os
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqtrain
from seqtrain.config import load_config
from seqtrain.errors import ConfigError, DataError, Interrupted
from seqtrain.model.branches.pretrained import PretrainedBranch
from seqtrain.model.branches.solved import SolverInput
from seqtrain.sequences import pretrained
from tests.helpers.encoder_folders import write_encoder
from tests.helpers.stores import store_of
from tests.helpers.tiny import assert_same_run, stopping_after

pytest.importorskip("transformers")

WORDS = ["red", "green", "blue", "one", "two", "three", "move", "stay", "left", "right"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder, texts whose class only the encoder can tell, and `run`. Read only.

    Its cache is there, too.
    """
    folder = tmp_path_factory.mktemp("pretrained")
    write_encoder(folder / "encoder", WORDS)
    draw = random.Random(0)
    lines = ["text\tlabel"]
    for _ in range(240):
        colour = draw.choice(WORDS[:3])
        words = [colour, *draw.choices(WORDS[3:], k=draw.randint(1, 5))]
        draw.shuffle(words)
        lines.append(f"{' '.join(words)}\t{colour}")
    (folder / "train.tsv").write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SEQTRAIN_CACHE", str(folder / "cache"))
        seqtrain.fit(config(), run_dir="run", progress=False)
    return folder


@pytest.fixture
def project(fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it as current directory, to do anything with."""
    monkeypatch.chdir(shutil.copytree(fitted, tmp_path / "project"))
    monkeypatch.setenv("SEQTRAIN_CACHE", str(tmp_path / "project/cache"))
    return Path()


def config(**model: object) -> dict[str, object]:
    return {
        "data": {"train": "train.tsv", "validation": 0.2, "sequence": "text", "label": "label"},
        "model": {"pretrained": "encoder", "hidden_size": 4, "embedding_dim": 4, **model},
        "training": {"max_epochs": 2},
    }


def test_model_folder_predicts_elsewhere_without_the_encoder_s_folder(project: Path) -> None:
    expected = seqtrain.load("run").predict(["red one two", "move blue"])
    shutil.copytree("run/best", "copy")
    shutil.rmtree("encoder")
    shutil.rmtree("run")
    found = seqtrain.load("copy").predict(["red one two", "move blue"])
    for one, other in zip(expected, found, strict=True):
        assert (one.label, other.label) == (other.label, one.label)
        assert one.probability == pytest.approx(other.probability, abs=1e-6)


def test_a_stopped_run_resumes_and_ends_with_the_same_bits(project: Path) -> None:
    """The encoder of the checkpoint is the one of the config, in another folder."""
    with pytest.raises(Interrupted):
        seqtrain.fit(config(), run_dir="stopped", progress=False, listener=stopping_after(5))
    seqtrain.fit(config(), run_dir="stopped", progress=False, resume=True)
    assert_same_run("run", "stopped")


def test_encoder_is_stored_once_in_a_run(fitted: Path) -> None:
    files = [fitted / "run" / name / "encoder/model.safetensors" for name in ("best", "last")]
    assert os.path.samefile(*files)
    assert not os.path.samefile(files[0], fitted / "encoder/model.safetensors")


def test_predictions_do_not_depend_on_the_other_rows(project: Path) -> None:
    classifier = seqtrain.load("run")
    texts = ["red", "one two three move stay left right blue", "left green"]
    together = classifier.predict(texts)
    alone = [classifier.predict([text])[0] for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert one.probability == pytest.approx(other.probability, abs=1e-5)


def test_vectors_are_normalized_means_of_the_valid_pieces_of_some_layers(project: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    from seqtrain.sequences.pretrained import PretrainedEncoder

    texts = ["red one", "move stay left right blue two"]
    found = PretrainedEncoder("encoder").encode(texts)
    tokenizer = AutoTokenizer.from_pretrained("encoder")
    model = AutoModel.from_pretrained("encoder").eval()
    for text, vector in zip(texts, found, strict=True):
        pieces = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            states = model(
                input_ids=pieces["input_ids"],
                attention_mask=pieces["attention_mask"],
                output_hidden_states=True,
            ).hidden_states
        means = [states[layer][0].mean(0) for layer in (2, 1)]  # two layers, the last one first
        expected = torch.cat([means[0] / means[0].norm(), 0.7 * means[1] / means[1].norm()])
        np.testing.assert_allclose(vector, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("rows", [200, 2500])
@pytest.mark.parametrize("telling", [0, 1])
def test_layers_that_tell_nothing_of_the_class_get_no_weight(telling: int, rows: int) -> None:
    vectors = np.random.default_rng(0).normal(size=(rows, 2, 16)).astype(np.float32)
    labels = (vectors[:, telling, 0] > 0).astype(int).tolist()
    store = replace(store_of([[1]] * rows, labels), vectors=vectors.reshape(rows, 32))
    branch = PretrainedBranch(2, 16, num_classes=2)
    branch.solve(SolverInput(store, np.ones(rows), seed=0, num_train=rows))
    of_layers = branch.weight.reshape(2, 16, 2).abs().sum((1, 2))
    assert (of_layers > 0).tolist() == [telling == 0, telling == 1]


def test_kept_vectors_of_damaged_files_are_computed_again(project: Path) -> None:
    kept = list(Path("cache", "vectors").glob("*.npy"))
    assert kept
    for file in kept:
        file.write_bytes(file.read_bytes()[:100])
    second = seqtrain.fit(config(), run_dir="b", progress=False)
    text = ["blue left"]
    assert seqtrain.load("run").predict(text)[0].probability == pytest.approx(
        seqtrain.load(second).predict(text)[0].probability, abs=1e-6
    )


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_folder_without_a_file_is_refused(project: Path, name: str) -> None:
    Path("encoder", name).unlink()
    with pytest.raises(DataError, match=name):
        seqtrain.fit(config(), run_dir="new", progress=False)
    assert not Path("new").exists()


def test_pickles_and_code_of_a_folder_are_refused(project: Path) -> None:
    shutil.move("encoder/model.safetensors", "weights")
    Path("encoder/pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(DataError, match=r"pytorch_model\.bin"):
        seqtrain.fit(config(), run_dir="new", progress=False)
    shutil.move("weights", "encoder/model.safetensors")
    settings = json.loads(Path("encoder/config.json").read_text())
    for hostile in (
        {**settings, "auto_map": {"AutoModel": "evil.Model"}},
        {**settings, "model_type": "no such type"},
        {**settings, "intermediate_size": 10**12},
        {**settings, "num_hidden_layers": 3},
        {key: value for key, value in settings.items() if key != "num_hidden_layers"}
        | {"n_layers": 2},
    ):
        Path("encoder/config.json").write_text(json.dumps(hostile))
        with pytest.raises(DataError):
            seqtrain.fit(config(), run_dir="new", progress=False)


@pytest.mark.parametrize(
    "hostile", [{"num_hidden_layers": 2000}, {"text_config": {"encoder_layers": 2**31}}]
)
def test_a_config_of_thousands_of_layers_is_refused_by_its_key(
    project: Path, hostile: dict[str, Any]
) -> None:
    settings = json.loads(Path("encoder/config.json").read_text())
    Path("encoder/config.json").write_text(json.dumps(settings | hostile))
    with pytest.raises(DataError, match="_layers: found 2"):
        seqtrain.fit(config(), run_dir="new", progress=False)


def test_the_tensors_of_a_described_model_are_counted_before_it_is_built(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pretrained, "MOST_TENSORS", 20)
        with pytest.raises(DataError, match=r"config\.json"):
            seqtrain.fit(config(), run_dir="new", progress=False)
    assert seqtrain.fit(config(), run_dir="new", progress=False).path.exists()


def test_damaged_encoder_of_a_model_folder_is_refused(project: Path) -> None:
    weights = Path("run/best/encoder/model.safetensors")
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    weights.write_bytes(content)
    with pytest.raises(seqtrain.errors.SeqtrainError):
        seqtrain.load("run/best")


def test_export_is_refused(project: Path) -> None:
    with pytest.raises(ConfigError, match="pretrained"):
        seqtrain.export("run", "exported")
    assert not Path("exported").exists()


def test_input_embeddings_of_a_folder_are_word_vectors(project: Path) -> None:
    values = config(pretrained=None, vectors="encoder", embedding_dim=None, vectors_keep=3)
    run = seqtrain.fit(values, run_dir="new", progress=False)
    tokens = json.loads(Path("new/best/vocabulary.json").read_text())["tokens"]
    assert set(WORDS) <= set(tokens)
    assert seqtrain.load(run).predict(["red"])[0].label in WORDS[:3]


def test_init_proposes_an_encoder_with_its_time(project: Path, cli: Any) -> None:
    said = cli("init", "train.tsv", "--pretrained", "encoder", "-o", "c.yaml").err
    assert re.search(r"pretrained encoder: about .* for 240 rows", said)
    text = Path("c.yaml").read_text()
    assert re.search(r"pretrained: encoder +# a frozen encoder; about .*240 rows", text)
    assert "--pretrained encoder" in text.splitlines()[0]
    short = load_config("c.yaml", ["training.max_epochs=1", "training.refit=false"])
    assert seqtrain.fit(short, run_dir="new", progress=False).path.exists()


@pytest.mark.parametrize(("rows", "expected"), [(499, True), (500, False)])
def test_init_proposes_a_refit_for_more_rows_with_an_encoder(
    project: Path, cli: Any, rows: int, expected: bool
) -> None:
    lines = [f"{word} {i}\t{word}" for i in range(rows) for word in ("red", "blue")]
    Path("two.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n")
    cli("init", "two.tsv", "--pretrained", "encoder", "-o", "with.yaml")
    cli("init", "two.tsv", "-o", "without.yaml")
    assert load_config("with.yaml", []).training.refit is expected
    assert not load_config("without.yaml", []).training.refit


def test_init_refuses_an_encoder_of_no_texts(project: Path, cli: Any) -> None:
    rows = "".join(f"{i % 2},[{i}.5, {i % 7}, 3.5]\n" for i in range(60))
    Path("a.csv").write_text("label;s\n" + rows.replace(",[", ";["))
    assert "--pretrained" in cli("init", "a.csv", "--pretrained", "encoder", code=2).err
