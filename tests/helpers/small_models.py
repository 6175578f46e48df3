"""Small models with random weights, of every kind and shape."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch

from seqtrain.config.schema import ModelConfig
from seqtrain.model.network import new_network
from seqtrain.runs.model_folder import Model
from seqtrain.sequences.columns.scaling import Scale
from seqtrain.sequences.columns.tables import ColumnTable, NumberColumn
from seqtrain.sequences.columns.tokens import TokenSequence
from seqtrain.sequences.labels import LabelSet
from seqtrain.sequences.lengths import LengthPolicy
from seqtrain.sequences.ngram_vocabulary import ONLY, GramColumn, fit_ngrams, with_spelling
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.schema import Schema
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.vocabulary import Vocabulary, word_grams
from tests.helpers.stores import store_of

WORDS = ("<pad>", "<unk>", "move", "money", "don't", "éa", "?", "20")
KERNELS = (3, 20, 20, 20, 20, 40)
"""Time steps of the series that a bank of kernels is fitted on."""
LABELS = ("no", 'yes\tand "no"', "__import__('os')")


def make_model(kind: str = "text", rules: dict[str, Any] | None = None, **settings: Any) -> Model:
    """Return a model of three labels with random weights; features have two channels.

    Rules are of the preprocessing, in place of its defaults; settings of the model section.
    """
    given: dict[str, Any] = {
        "schema": Schema("jsonl", kind, sequence="s", label="l"),
        "lengths": LengthPolicy(None, "head", "error"),
        "label_set": LabelSet(LABELS),
        **(rules or {}),
    }
    lengths = given.pop("kernels", None)
    names = {field.name for field in fields(Preprocessing)} - {"sequence"}
    settings_of_column = {name: given.pop(name) for name in [*given] if name not in names}
    preprocessing = Preprocessing(sequence=_column(kind, settings_of_column), **given)
    config = ModelConfig(embedding_dim=3, hidden_size=4, **settings)
    network = new_network(config, preprocessing, lengths).eval()
    network.initialize(seed=0)
    with torch.no_grad():
        generator = torch.Generator().manual_seed(1)
        for weight in network.parameters():
            weight.normal_(generator=generator)
        for name, statistic in network.named_buffers():
            if "running" in name:  # a variance is positive
                statistic.uniform_(0.5, 2.0, generator=generator)
    for name, array in network.named_buffers():
        if name.startswith("ngrams."):
            array.normal_(generator=generator)
    if {"kernels", "trees"} & {*network.solved_branches}:
        store = series_store(network.input_size)
        network.solve(store, None, seed=1, num_train=len(store))
    return Model(network, preprocessing)


def _column(kind: str, settings: dict[str, Any]) -> TokenSequence | ColumnTable:
    if kind == "features":
        pairs = zip(settings.pop("mean", (0.5, -1.0)), settings.pop("std", (1.0, 2.0)), strict=True)
        numbers = tuple(
            NumberColumn(f"channel {i}", Scale((mean,), (std,)))
            for i, (mean, std) in enumerate(pairs, start=1)
        )
        return ColumnTable("features", numbers=numbers, **settings)
    if kind == "steps":
        return ColumnTable("steps", **settings)
    settings.pop("missing", None)
    settings = {"vocabulary": Vocabulary(WORDS), **settings}
    tokenizer = settings.pop("tokenizer_name", "word" if kind == "text" else None)
    return TokenSequence(tokenizer, **settings)


def series_store(width: int, lengths: Sequence[int] = KERNELS) -> SequenceStore:
    """Return series of normal numbers, of three labels in turn."""
    generator = np.random.default_rng(1)
    rows = [generator.normal(size=(length, width)) for length in lengths]
    return store_of(rows, [number % 3 for number in range(len(rows))])


IDS = np.array([2, 3, 4, 2, 3, 5, 1, 2, 3, 6, 7], np.int32)
STARTS = np.array([0, 4, 8, 11])
NGRAMS = fit_ngrams(IDS, STARTS, GramColumn(ONLY, 1, 3), most=12)
SPELLED = with_spelling(
    NGRAMS, IDS.astype(np.int64), STARTS, word_grams(["", "", *WORDS[2:]], 5, 9)
)
PARTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "poolings": (
        "tokens",
        {},
        {
            "pooling": ["max", "last", "attention"],
            "bidirectional": True,
            "attention_size": 3,
        },
    ),
    "one pooling in a list": ("tokens", {}, {"pooling": ["attention"]}),
    "n-grams": ("tokens", {"ngrams": NGRAMS}, {"ngrams": [1, 3]}),
    "subwords": ("text", {"subwords": (2, 4), "subword_rows": 64}, {"subwords": [2, 4]}),
    "n-grams and long subwords": (
        "text",
        {"subwords": (5, 9), "ngrams": SPELLED},
        {"subwords": [5, 9], "ngrams": [1, 3], "ngrams_spelling": True},
    ),
    "convolutions": (
        "tokens",
        {},
        {"convolutions": [[5, 3, 1], [4, 5, 2], [3, 1, 3]], "bidirectional": True},
    ),
    "convolutions of series": ("features", {}, {"convolutions": [[5, 3, 2]], "pooling": "mean"}),
    "series": ("features", {"standardize": "series"}, {}),
    "series beside train": (
        "features",
        {"standardize": "both", "missing": "mask"},
        {"convolutions": [[5, 3, 2]], "pooling": ["last", "max"]},
    ),
    "kernels": ("features", {"kernels": (3, 20, 40)}, {"kernels": True}),
    "kernels of one length": (
        "features",
        {"kernels": (9, 9, 9), "missing": "mask", "standardize": "both"},
        {"kernels": True, "convolutions": [[5, 3, 2]]},
    ),
}
"""Kind, preprocessing and settings of models that have one part more, by what it is."""
