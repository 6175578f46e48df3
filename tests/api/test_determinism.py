"""Deterministic algorithms: chosen while a run asks for them."""

from __future__ import annotations

import os

import pytest
import torch

from seqtrain.api.environment import deterministic_algorithms


def test_deterministic_algorithms_are_chosen_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    for wanted in (True, False):
        with deterministic_algorithms(wanted):
            assert torch.are_deterministic_algorithms_enabled() == wanted
        assert not torch.are_deterministic_algorithms_enabled()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"
