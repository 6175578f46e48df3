"""What several processes can't train."""

from __future__ import annotations

import pytest

from seqtrain.api.restart import check_config
from seqtrain.config import Config, config_from_mapping
from seqtrain.errors import ConfigError


def config(convolutions: list[list[int]] | None) -> Config:
    data = {"train": "a.tsv", "sequence": "text", "label": "label"}
    return config_from_mapping({"data": data, "model": {"convolutions": convolutions}})


def test_convolutions_are_refused() -> None:
    layers = [[8, 3, 1]]
    with pytest.raises(ConfigError, match=r"model\.convolutions: .* train with one process"):
        check_config(config(layers), 2)
    check_config(config(layers), 1)
    check_config(config(None), 2)
