"""Every config that ships is valid, and names data that ships or says where it comes from."""

from pathlib import Path

import pytest

from seqtrain.config import load_config

ROOT = Path(__file__).parents[1]
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_config_loads_and_data_that_ships_is_there(path):
    data = load_config(path).data
    for name in (data.train, data.validation, data.test):
        if isinstance(name, str) and name.startswith("data/"):
            assert (ROOT / name).exists()
