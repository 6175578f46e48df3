from collections.abc import Callable
from typing import Any

import pytest

from seqtrain.errors import DataError
from seqtrain.sequences.examples import Example
from tests.helpers.reading import file_source, only_label, read_examples

Read = Callable[..., list[Any]]
Refuse = Callable[..., tuple[str, ...]]


def seen(rows: list[Example]) -> list[tuple[Any, str | None, int]]:
    return [(row.sequence, only_label(row), row.line) for row in rows]


@pytest.fixture
def read(tmp_path) -> Read:
    """Write bytes to a file and read it with the options given."""

    def run(content: bytes | str, name: str, *, labelled: bool = True, **options: Any) -> Any:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return list(read_examples(file_source(str(path), **options), labelled=labelled))

    return run


@pytest.fixture
def refuse(read, tmp_path) -> Refuse:
    """Read as `read` does, and return the complaints without the folder's name."""

    def run(*args: Any, **options: Any) -> tuple[str, ...]:
        with pytest.raises(DataError) as caught:
            read(*args, **options)
        return tuple(each.replace(f"{tmp_path}/", "") for each in caught.value.problems)

    return run
