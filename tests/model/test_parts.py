"""The parts that a config can ask for, each with every engine: alone, together, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from seqtrain.config.schema import ModelConfig
from seqtrain.data.ngram_vocabulary import fit_ngrams
from seqtrain.data.spelling import Spellings, spellings, word_grams
from seqtrain.data.vocabulary import UNK
from seqtrain.model import classifier
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.inputs import Fitted
from seqtrain.model.ngrams import joint
from seqtrain.model.randomness import Noise
from seqtrain.model.standardization import SeriesStandardization

WORDS = ["", "", *(f"word{i}" for i in range(18))]
UNKNOWN = ["unheard", "unseen", "x"]
LENGTHS = [17, 12, 12, 5, 2, 1]
SMALL = {"embedding_dim": 6, "hidden_size": 5, "dropout": 0.0, "embedding_dropout": 0.0}
ENGINES = ["native", "torch"]
TEXT = {
    "ngrams": {"ngrams": [1, 3]},
    "subwords": {"subwords": [3, 5]},
    "convolutions": {"convolutions": [[8, 3, 2], [6, 5, 1]]},
    "list": {"pooling": ["max", "last", "attention"]},
    "all": {
        "ngrams": [1, 2],
        "subwords": [2, 4],
        "convolutions": [[8, 5, 2]],
        "pooling": ["last", "mean"],
    },
}
SERIES = {
    "series": ({}, "series"),
    "both": ({}, "both"),
    "convolutions": ({"convolutions": [[8, 7, 2], [6, 3, 2]]}, "train"),
    "all": ({"convolutions": [[8, 7, 2]], "pooling": ["max", "last"]}, "both"),
}


def rows_of_ids(seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(1, len(WORDS), (n,), generator=generator) for n in LENGTHS]


def rows_of_features() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(n, 2, generator=generator) for n in LENGTHS]


def text_model(**keys: Any) -> SequenceClassifier:
    config = ModelConfig(**{**SMALL, "embedding_std": 1.0, **keys})
    ngrams = None
    if config.ngrams:
        rows = rows_of_ids()
        values = torch.cat(rows).numpy().astype(np.int32)
        offsets = np.cumsum([0, *LENGTHS])
        shortest, longest = config.ngrams
        ngrams = fit_ngrams(values, offsets, shortest=shortest, longest=longest, most=40)
    words = word_grams(WORDS, *config.subwords) if config.subwords else None
    fitted = Fitted(words=words, ngrams=ngrams)
    model = SequenceClassifier(
        config, input_size=len(WORDS), num_classes=3, features=False, fitted=fitted
    )
    return varied(model)


def series_model(standardize: str, **keys: Any) -> SequenceClassifier:
    config = ModelConfig(**{**SMALL, **keys})
    series = None
    if standardize != "train":
        series = SeriesStandardization(2, both=standardize == "both", indicators=False)
    fitted = Fitted(series=series)
    model = SequenceClassifier(config, input_size=2, num_classes=3, features=True, fitted=fitted)
    return varied(model)


def varied(model: SequenceClassifier) -> SequenceClassifier:
    """Draw all weights, those of n-grams and normalisations too."""
    model.initialize(0)
    torch.manual_seed(0)
    for name, tensor in model.state_dict().items():
        if "norm" in name and tensor.is_floating_point():
            tensor.uniform_(0.5, 1.5)
        elif name.startswith("ngrams"):
            tensor.normal_()
    return model.eval()


def spelled(rows: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Make every fifth step an unknown word: ids, and numbers of spellings."""
    ids, numbers = [], []
    for row in rows:
        unknown = torch.arange(len(row)) % 5 == 1
        ids.append(torch.where(unknown, UNK, row))
        numbers.append(torch.where(unknown, row % len(UNKNOWN), -1))
    return ids, numbers


def packed_spellings(numbers: list[Tensor]) -> Spellings:
    found = pack_sequence(numbers).data.numpy().astype(np.int32)
    return spellings(found, word_grams(UNKNOWN, 3, 5))


def alone(model: SequenceClassifier, rows: list[Tensor]) -> Tensor:
    return torch.cat([model(pack_sequence([row])) for row in rows])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", TEXT)
def test_text_alone_in_a_batch_and_padded(part: str, engine: str, bidirectional: bool) -> None:
    model = text_model(engine=engine, bidirectional=bidirectional, **TEXT[part])
    check(model, rows_of_ids(), padding=torch.tensor(7))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", SERIES)
def test_series_alone_in_a_batch_and_padded(part: str, engine: str, bidirectional: bool) -> None:
    keys, standardize = SERIES[part]
    model = series_model(standardize, engine=engine, bidirectional=bidirectional, **keys)
    check(model, rows_of_features(), padding=torch.tensor([1e4, -1e4]))


def check(model: SequenceClassifier, rows: list[Tensor], padding: Tensor) -> None:
    with torch.inference_mode():
        expected = alone(model, rows)
        close(model(pack_sequence(rows)), expected)
        order = [3, 0, 5, 1, 4, 2]
        padded = padding.expand(len(rows), LENGTHS[0], *padding.shape).clone()
        for place, row in enumerate(order):
            padded[place, : LENGTHS[row]] = rows[row]
        found = model(padded, torch.tensor([LENGTHS[row] for row in order]))
        close(found, expected[order])
    assert expected.std(0).min() > 1e-3


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("part", TEXT)
def test_long_sequences_in_segments(
    part: str, bidirectional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = text_model(bidirectional=bidirectional, **TEXT[part])
    packed = pack_sequence(rows_of_ids())
    with torch.inference_mode():
        whole = model(packed)
        monkeypatch.setattr(classifier, "PREDICTION_STEPS", 3)
        close(model(packed), whole)


@pytest.mark.parametrize("part", ["ngrams", "subwords", "list"])
def test_answers_after_each_step(part: str) -> None:
    model = text_model(**TEXT[part])
    rows = rows_of_ids()
    packed = pack_sequence(rows)
    assert not model.looks_ahead
    with torch.inference_mode():
        found, _ = model.step_logits(packed)
        starts = packed.batch_sizes.cumsum(0) - packed.batch_sizes
        for place, row in enumerate(rows):
            expected = alone(model, [row[: end + 1] for end in range(len(row))])
            close(found[starts[: len(row)] + place], expected)


@pytest.mark.parametrize(
    "model",
    [
        text_model(convolutions=[[4, 3, 1]]),
        series_model("series"),
        series_model("both"),
        text_model(bidirectional=True),
    ],
)
def test_a_model_that_looks_ahead_reads_each_prefix_anew(model: SequenceClassifier) -> None:
    assert model.looks_ahead
    with pytest.raises(ValueError, match="each prefix"):
        model.step_logits(pack_sequence(rows_of_ids()))


@pytest.mark.parametrize("engine", ENGINES)
def test_unknown_words_say_something_by_their_spelling(engine: str) -> None:
    model = text_model(engine=engine, subwords=[3, 5])
    ids, numbers = spelled(rows_of_ids())
    packed, words = pack_sequence(ids), packed_spellings(numbers)
    with torch.inference_mode():
        found = model(packed, spellings=words)
        expected = torch.cat(
            [
                model(pack_sequence([row]), spellings=packed_spellings([number]))
                for row, number in zip(ids, numbers, strict=True)
            ]
        )
        close(found, expected)
        padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
        layout = torch.nn.utils.rnn.pad_sequence(numbers, batch_first=True, padding_value=-1)
        own = spellings(layout.numpy().astype(np.int32), word_grams(UNKNOWN, 3, 5))
        close(model(padded, torch.tensor(LENGTHS), spellings=own), expected)
        steps, _ = model.step_logits(packed, spellings=words)
        close(
            steps[: len(ids)],
            model(
                PackedSequence(packed.data[:6], torch.tensor([6])),
                spellings=packed_spellings([number[:1] for number in numbers]),
            ),
        )
        assert (found - model(packed))[0].abs().max() > 1e-3


def test_a_known_word_counts_as_much_spelled_out() -> None:
    """E of <unk> and of the word are equal here, so that only the spelling is left."""
    model = text_model(subwords=[3, 5])
    with torch.no_grad():
        model.get_parameter("embedding.weight").zero_()
    ids, numbers = torch.tensor([UNK, 3]), np.array([0, -1], dtype=np.int32)
    own = spellings(numbers, word_grams([WORDS[2]], 3, 5))
    with torch.inference_mode():
        found = model(pack_sequence([ids]), spellings=own)
        close(found, model(pack_sequence([torch.tensor([2, 3])])))


def test_parts_answer_alone_and_together() -> None:
    model = text_model(ngrams=[1, 2])
    packed = pack_sequence(rows_of_ids())
    with torch.inference_mode():
        parts, _ = model.carry_parts(packed)
        assert len(parts) == 2
        assert torch.equal(model(packed), joint(parts))
        assert model.ngrams is not None
        assert torch.equal(parts[1], model.ngrams(model.ngrams.find(packed)))
        model.ngrams = None
        assert torch.equal(model(packed), parts[0])


@pytest.mark.parametrize("part", TEXT)
def test_every_part_learns(part: str) -> None:
    model = text_model(**TEXT[part], dropout=0.2, embedding_dropout=0.2).train()
    noise = Noise.of(0, 0, torch.arange(len(LENGTHS)))
    parts, _ = model.carry_parts(pack_sequence(rows_of_ids()), noise=noise)
    sum(part.square().sum() for part in parts).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("pooling", ["last", ["last", "max"], ["mean"]])
@pytest.mark.parametrize("features", [False, True])
def test_truncated_gradients_reach_what_stands_before_the_encoder(
    pooling: Any, features: bool
) -> None:
    keys = {"convolutions": [[8, 3, 2]], "pooling": pooling}
    model = series_model("both", **keys) if features else text_model(**keys)
    model.train()
    packed = pack_sequence(rows_of_features() if features else rows_of_ids())

    def gradients(bptt: int | None) -> dict[str, Tensor]:
        model.zero_grad()
        model(packed, bptt=bptt).square().sum().backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    whole, long, short = gradients(None), gradients(9), gradients(3)
    assert whole.keys() == long.keys() == short.keys()
    for name in whole:
        close(long[name], whole[name])
    assert short["convolutions.0.weight"].abs().sum() > 0
    close(short["head.weight"], whole["head.weight"])
    assert not torch.allclose(short["convolutions.0.weight"], whole["convolutions.0.weight"])


def test_features_before_convolutions_have_no_linear_map() -> None:
    names = series_model("train", convolutions=[[8, 7, 2]]).state_dict().keys()
    assert not any(name.startswith("embedding") for name in names)
    assert {"convolutions.0.weight", "convolutions.0.norm.running_mean"} <= names


def test_initial_weights_are_the_seeds() -> None:
    model = text_model(**TEXT["all"])
    model.initialize(3)
    first = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    torch.manual_seed(99)
    model.initialize(3)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, first[name]), name
    assert not first["ngrams.weight"].any()
    assert first["subwords.weight"].std() == pytest.approx(1.0, abs=0.05)
    assert torch.equal(first["convolutions.0.norm.running_var"], torch.ones(8))
