"""File systems without locks, and other defaults of torch: a run is as any other."""

from pathlib import Path

import torch

from tests.faults.conftest import SHORT
from tests.helpers.program import ended, fit, fit_arguments, run_program
from tests.helpers.tiny import fingerprint
from tests.helpers.tracing import trace

EVERYTHING = """\
data: {train: train.tsv, validation: 0.2, test: test.tsv, sequence: text, label: label}
batching: {batch_size: 4}
model:
  {embedding_dim: 4, hidden_size: 4, rnn: lstm, num_layers: 2, bidirectional: true, dropout: 0.2,
   embedding_dropout: 0.1, initial_state: random, pooling: attention}
pretraining: {objective: autoencoder, max_epochs: 1}
training: {max_epochs: 1, patience: null, optimizer: sgd, class_weights: balanced}
"""


def begin(folder: Path) -> None:
    run_program(str(folder), fit_arguments(folder, "new", *SHORT), None)


def test_a_file_system_without_locks(begun, strace):
    """On a file system without locks, such as NFS, a run works; two runs are not noticed."""
    options = ("-e", "trace=flock", "-e", "inject=flock:error=ENOLCK")
    code, lines = trace(strace, begun, begin, *options)
    assert code == 0
    assert "(INJECTED)" in "".join(lines)
    assert fingerprint(begun / "new") == fingerprint(begun / "r")
    assert not (begun / "new" / ".lock").exists()


def change_torchs_defaults() -> None:
    torch.set_default_dtype(torch.bfloat16)
    torch.set_default_device("meta")


def test_torchs_defaults_change_nothing(project):
    """Other code in the process may have set its type or device."""
    (project / "c.yaml").write_text(EVERYTHING)
    fit(project, "usual")
    fit(project, "r", prepare=change_torchs_defaults)
    assert fingerprint(project / "r") == fingerprint(project / "usual")
    said = []
    for prepare in (None, change_torchs_defaults):
        for command in (["eval", "r", "--json"], ["predict", "test.tsv", "--run", "r"]):
            running = ended(project, *command, prepare=prepare)
            said.append(running.out)
    assert said[:2] == said[2:]
