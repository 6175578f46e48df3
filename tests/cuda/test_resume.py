"""A run that is stopped and resumed on the device ends with the bits of one that wasn't."""

import pytest

from seqtrain.api.fit import fit
from seqtrain.config import load_config
from seqtrain.errors import Interrupted
from tests.cuda.test_commands import CARRIED, write_chats
from tests.helpers.tiny import assert_same_run, stopping_after

PARTS = [
    (),
    ("model.ngrams=[1, 2]", "model.subwords=[3, 5]", "model.embedding_dropout=0.3"),
    ("training.optimizer=sgd", "model.num_layers=2", "training.refit=true"),
    ("model.ngrams=[1, 2]", "model.initial_state=random"),
    CARRIED,
]


@pytest.mark.parametrize("updates", [2, 4])
@pytest.mark.parametrize("parts", PARTS)
def test_equal_bits_after_a_stop(parts, updates, project, device, cli):
    write_chats(project)
    settings = ("training.deterministic=true", "training.max_epochs=3", *parts)
    config = load_config("c.yaml", [*settings, f"training.device={device.type}"])
    fit(config, run_dir="whole")
    with pytest.raises(Interrupted):
        fit(config, run_dir="parts", listener=stopping_after(updates))
    fit(config, run_dir="parts", resume=True)
    assert_same_run("whole", "parts")
