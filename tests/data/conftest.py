from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import Config, config_from_mapping


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write a text, or rows of text and label, to a file of this test's folder; return its path."""

    def run(name: str, content: str | list[tuple[str, str]]) -> str:
        if not isinstance(content, str):
            content = "".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *content])
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return str(path)

    return run


@pytest.fixture
def make_config() -> Callable[..., Config]:
    """Build a config whose data section has these keys; columns are named text and label."""

    def run(seed: int = 0, **data: Any) -> Config:
        columns = {"sequence": "text", "label": "label"}
        model = {"initial_state": "carried"} if "group" in data else {}
        return config_from_mapping({"seed": seed, "data": {**columns, **data}, "model": model})

    return run
