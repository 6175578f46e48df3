"""Exports of models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seqtrain.export.export_folder import export_model
from seqtrain.files.folder import write_folder
from seqtrain.runs.model_folder import Model, model_files


@pytest.fixture
def exported(tmp_path: Path) -> Callable[..., Path]:
    """Save a model in tmp_path/run, export it to tmp_path/port, and return the latter."""

    def export(model: Model) -> Path:
        write_folder(tmp_path / "run", model_files(model))
        return export_model(model, tmp_path / "port", force=True).folder

    return export
