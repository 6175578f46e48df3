"""What several processes, or one that computes the parts of several, can't train."""

from __future__ import annotations

import pytest

from seqtrain.api.restart import check_config
from seqtrain.config import Config, config_from_mapping
from seqtrain.errors import ConfigError


def config(convolutions: list[list[int]] | None, shards: int | None) -> Config:
    data = {"train": "a.tsv", "sequence": "text", "label": "label"}
    model = {"convolutions": convolutions}
    return config_from_mapping({"data": data, "model": model, "training": {"shards": shards}})


@pytest.mark.parametrize(("processes", "shards"), [(2, None), (1, 2), (4, 4)])
def test_convolutions_are_refused(processes: int, shards: int | None) -> None:
    layers = [[8, 3, 1]]
    with pytest.raises(ConfigError, match=r"model\.convolutions: .* train with one process and"):
        check_config(config(layers, shards), processes)
    check_config(config(layers, None), 1)
    check_config(config(None, shards), processes)
