"""Files of a test, read as rows: line, cells and problem."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from seqtrain.errors import DataError
from seqtrain.tables.blocks import Dialect, Name, Selection, Source, as_list
from seqtrain.tables.sources import open_source


class Row(NamedTuple):
    """A row of a table. Its cells are by the name of the column."""

    line: int
    cells: dict[Name, Any]
    problem: str | None = None
    file: str | None = None


def rows_of(
    source: Source, selection: Selection | None = None, rows: int | None = None
) -> Iterator[Row]:
    for block in source.blocks(selection or Selection(), rows):
        columns = {name: as_list(cells) for name, cells in block.columns.items()}
        for number, line in enumerate(block.lines.tolist()):
            cells = {name: column[number] for name, column in columns.items()}
            yield Row(line, cells, block.problems.get(number), block.file)


def select(*required: Name, optional: tuple[Name, ...] = (), rest: bool = False) -> Selection:
    return Selection(required, optional, rest)


Read = Callable[..., list[Row]]
Refuse = Callable[..., tuple[str, ...]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write bytes to a file and read it."""

    def run(
        content: bytes | str, name: str, *columns: Name, rows: int | None = None, **form: Any
    ) -> list[Row]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        optional = form.pop("optional", ())
        rest = form.pop("rest", False)
        form.setdefault("format", name.removesuffix(".gz").removesuffix(".zst").rpartition(".")[2])
        selection = Selection(columns or None, optional, rest)
        return list(rows_of(open_source(str(path), Dialect(**form)), selection, rows))

    return run


@pytest.fixture
def refuse(read: Read, tmp_path: Path) -> Refuse:
    """Read as `read` does, and return the lines of the error without the name of the folder."""

    def run(*args: Any, **form: Any) -> tuple[str, ...]:
        with pytest.raises(DataError) as caught:
            read(*args, **form)
        return tuple(each.replace(f"{tmp_path}/", "") for each in caught.value.problems)

    return run
