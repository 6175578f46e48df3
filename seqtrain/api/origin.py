"""Going on from an old model: its tokens and labels keep their ids, new ones follow.

Before any training the new model gives the same logits to the old labels.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from seqtrain.config.document import flow
from seqtrain.config.schema import Config, ModelConfig
from seqtrain.data.vocabulary import UNK
from seqtrain.data.word_vectors import WordVectors
from seqtrain.errors import ConfigError
from seqtrain.files.folder import read_folder
from seqtrain.runs.destination import ENVIRONMENT
from seqtrain.runs.finding import find, model_folder
from seqtrain.runs.model_folder import WEIGHTS, Model, read_model
from seqtrain.runs.run_directory import RunDirectory
from seqtrain.text import counted, listed

LINEAGE = "lineage"
"""Entry of environment.json: the model that a run began from."""
FREE = {
    *("embedding_std", "max_ngrams", "initial_scale", "unroll", "engine", "dropout"),
    *("embedding_dropout", "vectors", "vectors_keep", "freeze"),
}
"""Keys of the model section that may differ from the old model's."""


@dataclass(frozen=True)
class Origin:
    """An old model to go on from, on the CPU; its run and weights' SHA-256 for environment.json."""

    model: Model
    folder: Path
    recorded: dict[str, str]


def read_origin(run: str | Path, config: Config) -> Origin:
    """Read the model of a run or a model folder; refuse one that a config can't go on from."""
    folder = model_folder(find(Path(run)).path)
    model, digest = read_folder(folder, lambda saved: (read_model(saved), saved.digests[WEIGHTS]))
    _check_alike(config, model, str(run))
    return Origin(model, folder, {"run": str(run), "weights_sha256": digest})


def has_grown(run: RunDirectory) -> bool:
    """Whether a run began from an old model, whose preprocessing it keeps."""
    return run.holds(ENVIRONMENT) and LINEAGE in run.environment()


def _check_alike(config: Config, old: Model, run: str) -> None:
    """Refuse other keys that change what a weight means, or that draw new weights."""
    rules, network = old.preprocessing, old.network.config
    of_kind = {"text": ("tokenizer", "lowercase"), "features": ("missing", "standardize")}
    of_kind |= {"steps": ("missing", "steps")}
    keys = [("data", name) for name in ("kind", "static", *of_kind.get(rules.kind, ()))]
    keys += [("model", name) for name in ModelConfig.model_fields if name not in FREE]
    for section, name in keys:
        found = getattr(getattr(config, section), name)
        own = rules.reading if name in ("steps", "static") else rules
        expected = getattr(own if section == "data" else network, name)
        if found != expected:
            raise ConfigError(
                f"{section}.{name}: found {flow(found)}, but {run} has {flow(expected)}, which its "
                "weights rest on; expected the same, or train without --init-from"
            )
    objective, refit = config.pretraining.objective, config.training.refit
    for key, value in (("pretraining.objective", objective), ("training.refit", refit)):
        if value:
            raise ConfigError(
                f"{key}: found {flow(value)}, which begins with new weights, and --init-from with "
                "old ones; give one of them"
            )


@torch.no_grad()
def take_weights(old: Model, new: Model, vectors: WordVectors | None = None) -> str:
    """Copy an old model's weights into a new one; return what was kept and what is new, in a line.

    A new token begins with its vector of a file, if there is one, else with that of <unk>, as which
    the old model read it; a new label begins with its initial weights.
    """
    before, after = old.network.state_dict(), new.network.state_dict()
    for name, weight in after.items():
        if name.startswith("kernels."):
            continue  # fitted on the new train
        kept = before[name].to(weight.device)
        weight[tuple(map(slice, kept.shape))] = kept
    vocabulary, rules = old.preprocessing.vocabulary, new.preprocessing
    labels = len(old.preprocessing.labels)
    kept_parts, added = [counted(labels, "label")], [counted(len(rules.labels) - labels, "label")]
    kept_tokens = added_tokens = 0
    if vocabulary is not None:
        rows = after["embedding.weight"]
        is_new = torch.arange(len(rows), device="cpu") >= len(vocabulary)
        if vectors is not None:
            is_new[torch.from_numpy(np.array(vectors.rows))] = False
        rows[is_new] = rows[UNK].clone()
        kept_tokens, added_tokens = len(vocabulary), len(rows) - len(vocabulary)
    for name, coding in old.preprocessing.codings.items():
        sizes = [len(known) for known in coding.vocabularies]
        for number, size in enumerate(sizes):
            rows = after[f"{'embedding' if name == 'steps' else name}.tables.{number}.weight"]
            rows[size:] = rows[UNK]
            added_tokens += len(rows) - size
        kept_tokens += sum(sizes)
    if kept_tokens:
        kept_parts.append(counted(kept_tokens, "token"))
        added.append(counted(added_tokens, "token"))
    if rules.ngrams is not None:
        kept_parts.append(counted(len(rules.ngrams), "n-gram"))
    return f"kept {listed(kept_parts)}; added {listed(added)}"
