"""What several processes, or one that computes the parts of several, can't train."""

from __future__ import annotations

from typing import Any

import pytest

from seqtrain.config import Config, config_from_mapping
from seqtrain.errors import ConfigError
from seqtrain.workflows.restart import check_config


def config(model: dict[str, Any], shards: int | None, group: str | None = None) -> Config:
    data = {"train": "a.tsv", "sequence": "text", "label": "label", "group": group}
    return config_from_mapping({"data": data, "model": model, "training": {"shards": shards}})


@pytest.mark.parametrize(("processes", "shards"), [(2, None), (1, 2), (4, 4)])
def test_carried_states_and_convolutions_are_refused(processes: int, shards: int | None) -> None:
    for key, model, group in (
        ("model.initial_state: found carried", {"initial_state": "carried"}, "chat"),
        ("model.convolutions: ", {"convolutions": [[8, 3, 1]]}, None),
    ):
        with pytest.raises(ConfigError, match=key + ".* train with one process and"):
            check_config(config(model, shards, group), processes)
        check_config(config(model, None, group), 1)
    check_config(config({}, shards), processes)
