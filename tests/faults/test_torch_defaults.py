"""Other defaults of torch's type and device, as other code in the process sets them, do nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.helpers.program import fingerprint, fit, fit_arguments, started

DEFAULTS: dict[str, Callable[[], None]] = {
    "bfloat16": partial(torch.set_default_dtype, torch.bfloat16),
    "float64": partial(torch.set_default_dtype, torch.float64),
    "meta": partial(torch.set_default_device, "meta"),
}
CONFIGS = {
    "plain": "",
    "all": """\
data: {train: train.tsv, validation: 0.2, test: test.tsv, sequence: text, label: label}
batching: {batch_size: 4}
model:
  {embedding_dim: 4, hidden_size: 4, rnn: lstm, num_layers: 2, bidirectional: true, dropout: 0.2,
   embedding_dropout: 0.1, initial_state: random, pooling: attention}
pretraining: {objective: autoencoder, max_epochs: 1}
training: {max_epochs: 1, patience: null, optimizer: sgd, class_weights: balanced}
""",
}


def answers(folder: Path, run: str, prepare: Callable[[], None] | None = None) -> list[str]:
    """Return what eval and predict say of a run, without its name."""
    said = []
    for command in (["eval", run, "--json"], ["predict", "test.tsv", "--run", run]):
        with started(folder, *command, prepare=prepare) as running:
            assert running.end() == 0, running.err
        said.append(running.out.replace(run, "RUN"))
    return said


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ("all", ("bfloat16", "meta")),
        *(pytest.param(name, tuple(DEFAULTS), marks=pytest.mark.slow) for name in CONFIGS),
    ],
)
def test_torch_defaults_change_neither_runs_nor_answers(
    config: str, names: tuple[str, ...], project: Path
) -> None:
    if CONFIGS[config]:
        (project / "c.yaml").write_text(CONFIGS[config])
    fit(project, "usual")
    expected = answers(project, "usual")
    for name in names:
        prepare = DEFAULTS[name]
        with started(project, *fit_arguments(project, name), prepare=prepare) as running:
            assert running.end() == 0, running.err
        assert answers(project, name, prepare) == expected, name
        assert fingerprint(project / name) == fingerprint(project / "usual"), name
        with started(project, "check", name, prepare=prepare) as running:
            assert running.end() == 0, running.err
