from collections.abc import Callable
from typing import Any

import pytest

from seqtrain.config import Config, config_from_mapping
from tests.helpers.tiny import write_jsonl, write_table


@pytest.fixture
def write(tmp_path) -> Callable[..., str]:
    """Write a text, rows of text and label, or objects to a file; return its path."""

    def run(name: str, content: str | list[Any]) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif name.endswith(".jsonl"):
            write_jsonl(path, content)
        else:
            write_table(path, content)
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
