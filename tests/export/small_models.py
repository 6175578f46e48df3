"""Small models with random weights, of every kind and shape."""

from __future__ import annotations

from typing import Any

import torch

from seqtrain.config.schema import ModelConfig
from seqtrain.data.encoding import LengthPolicy
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import ReadOptions
from seqtrain.data.vocabulary import Vocabulary
from seqtrain.runs.model_folder import Model, new_network

WORDS = ("<pad>", "<unk>", "move", "money", "don't", "éa", "?", "20")
LABELS = ("no", 'yes\tand "no"', "__import__('os')")


def make_model(kind: str = "text", rules: dict[str, Any] | None = None, **settings: Any) -> Model:
    """Return a model of three labels with random weights.

    Args:
        kind: text, tokens or features (two channels).
        rules: of the preprocessing, in place of its defaults.
        settings: of the model section.
    """
    features = kind == "features"
    given: dict[str, Any] = {
        "reading": ReadOptions(format="jsonl", kind=kind, sequence="s", label="l"),
        "tokenizer": "word",
        "lowercase": True,
        "bpe_model": None,
        "lengths": LengthPolicy(None, "head", "error"),
        "missing": "error",
        "labels": LABELS,
        "vocabulary": None if features else Vocabulary(WORDS),
        "mean": (0.5, -1.0) if features else (),
        "std": (1.0, 2.0) if features else (),
    }
    preprocessing = Preprocessing(**{**given, **(rules or {})})
    config = ModelConfig(embedding_dim=3, hidden_size=4, **settings)
    network = new_network(config, preprocessing).eval()
    with torch.no_grad():
        generator = torch.Generator().manual_seed(1)
        for weight in network.parameters():
            weight.normal_(generator=generator)
    return Model(network, preprocessing)
