"""Going on from an old model: its tokens and labels stay first, new ones follow.

An old model's preprocessing is taken as it is, with its scales, merges and n-grams, and grows by
the tokens and labels of the new train. So the old model's ids stay what they are, and before any
training the new one gives the same logits to the old labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqtrain.config.schema import Config, ModelConfig
from seqtrain.data.vocabulary import UNK
from seqtrain.data.word_vectors import WordVectors
from seqtrain.errors import CheckpointError, ConfigError
from seqtrain.files.folder import read_folder
from seqtrain.runs.finding import find, model_folder
from seqtrain.runs.model_folder import WEIGHTS, Model, read_model
from seqtrain.runs.run_directory import ENVIRONMENT, RunDirectory
from seqtrain.text import counted, listed

LINEAGE = "lineage"
"""Entry of environment.json: the models that a run goes back to, the nearest first."""
MOST_MODELS = 1000
"""Models that a run may go back to."""
LONGEST_PATH = 4096
FREE = {
    *("embedding_std", "max_ngrams", "initial_scale", "unroll", "engine", "dropout"),
    *("embedding_dropout", "vectors", "vectors_keep", "freeze"),
}
"""Keys of the model section that may differ from the old model's."""


@dataclass(frozen=True)
class Origin:
    """An old model to go on from.

    Attributes:
        model: on the CPU.
        folder: where it was read.
        lineage: where it was read, its weights' SHA-256, and the same of those before it.
    """

    model: Model
    folder: Path
    lineage: list[dict[str, str]]


def read_origin(run: str | Path, config: Config) -> Origin:
    """Read an old model, and refuse one that a config can't go on from.

    Args:
        run: a run directory or a model folder.
        config: of the new run.

    Raises:
        CheckpointError: there is no whole model there.
        ConfigError: the config asks for another network, or reads sequences otherwise.
    """
    found = find(Path(run))
    folder = model_folder(found.path)
    model, digest = read_folder(folder, lambda saved: (read_model(saved), saved.digests[WEIGHTS]))
    _check_alike(config, model, str(run))
    return Origin(model, folder, [{"run": str(run), "weights_sha256": digest}, *lineage(found)])


def lineage(run: RunDirectory) -> list[dict[str, str]]:
    """Return where each model that a run goes back to was read, and its weights' SHA-256.

    Raises:
        CheckpointError: environment.json is damaged.
    """
    found = run.environment().get(LINEAGE, []) if run.holds(ENVIRONMENT) else []
    if not isinstance(found, list) or len(found) > MOST_MODELS or not all(map(_is_model, found)):
        raise CheckpointError(
            f"{run.path / ENVIRONMENT}: {LINEAGE}: expected at most {MOST_MODELS:,} models, each "
            "with run and weights_sha256; restore it from a copy"
        )
    return found


def _is_model(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.keys() == {"run", "weights_sha256"}
        and isinstance(entry["run"], str)
        and len(entry["run"]) <= LONGEST_PATH
        and isinstance(entry["weights_sha256"], str)
        and re.fullmatch("[0-9a-f]{64}", entry["weights_sha256"]) is not None
    )


def _check_alike(config: Config, old: Model, run: str) -> None:
    """Refuse other keys on which what a weight means depends."""
    for key, found, expected in _unlike(config, old):
        raise ConfigError(
            f"{key}: found {_shown(found)}, but {run} has {_shown(expected)}, which its weights "
            "rest on; expected the same, or train without --init-from"
        )
    for key, value in (
        ("pretraining.objective", config.pretraining.objective),
        ("training.refit", config.training.refit or None),
    ):
        if value is not None:
            raise ConfigError(
                f"{key}: found {_shown(value)}, which begins with new weights, and --init-from "
                "with old ones; give one of them"
            )


def _unlike(config: Config, old: Model) -> list[tuple[str, Any, Any]]:
    """Return key, value here and value there of what differs and may not."""
    rules, data = old.preprocessing, config.data
    pairs: list[tuple[str, Any, Any]] = [("data.kind", data.kind, rules.kind)]
    if rules.kind == "text":
        pairs += [
            ("data.tokenizer", data.tokenizer, rules.tokenizer),
            ("data.lowercase", data.lowercase, rules.lowercase),
        ]
    if rules.kind == "features":
        pairs += [
            ("data.missing", data.missing, rules.missing),
            ("data.standardize", data.standardize, rules.standardize),
        ]
    pairs += [
        (f"model.{name}", getattr(config.model, name), getattr(old.network.config, name))
        for name in ModelConfig.model_fields
        if name not in FREE
    ]
    return [pair for pair in pairs if pair[1] != pair[2]]


@torch.no_grad()
def take_weights(old: Model, new: Model, vectors: WordVectors | None = None) -> str:
    """Copy an old model's weights into a new one, whose preprocessing grew from the old one's.

    A new token begins with its vector of a file, if there is one, else with that of <unk>, as which
    the old model read it; a new label begins with its initial weights.

    Returns:
        What was kept and what is new, in one line.
    """
    before, after = old.network.state_dict(), new.network.state_dict()
    for name, weight in after.items():
        kept = before[name].to(weight.device)
        weight[tuple(map(slice, kept.shape))] = kept
    vocabulary, rules = old.preprocessing.vocabulary, new.preprocessing
    labels = len(old.preprocessing.labels)
    told, added = [counted(labels, "label")], [counted(len(rules.labels) - labels, "label")]
    if vocabulary is not None:
        rows = after["embedding.weight"]
        is_new = torch.arange(len(rows)) >= len(vocabulary)
        if vectors is not None:
            is_new[torch.from_numpy(np.array(vectors.rows))] = False
        rows[is_new] = rows[UNK].clone()
        told.append(counted(len(vocabulary), "token"))
        added.append(counted(rules.input_size - len(vocabulary), "token"))
    if rules.ngrams is not None:
        told.append(counted(len(rules.ngrams), "n-gram"))
    return f"kept {listed(told)}; added {listed(added)}"


def _shown(value: Any) -> str:
    text = str(value)
    return "null" if value is None else text.lower() if isinstance(value, bool) else text
