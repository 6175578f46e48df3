from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.program import write_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a config and its data; a run of it takes a fraction of a second."""
    write_project(tmp_path)
    return tmp_path
