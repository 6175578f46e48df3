"""What metrics.jsonl of a run says; a run under way may be writing its last line."""

from __future__ import annotations

from typing import Any

from seqtrain.errors import CheckpointError
from seqtrain.files.directory import Directory
from seqtrain.files.reading import LARGEST_JSON, read_regular, unreadable
from seqtrain.files.strict_json import NotJSONError, parse_json
from seqtrain.runs.destination import METRICS
from seqtrain.runs.run_directory import RunDirectory


def read_metrics(run: RunDirectory, event: str | None = None) -> list[dict[str, Any]]:
    """Return the lines of a run's metrics; none where it has written none yet.

    Args:
        run: its directory.
        event: of which kind: step, epoch, pretrain or end; None: all.

    Raises:
        CheckpointError: the file is damaged, or no regular file.
        RunError: the machine failed to read it.
    """
    path = run.path / METRICS
    try:
        with Directory(run.path) as here:
            if here.status_of(METRICS) is None:
                return []
            content = read_regular(here, METRICS, LARGEST_JSON)
    except OSError as error:
        raise unreadable(path, error) from None
    found = []
    *whole, _ = content.split(b"\n")  # what follows the last line break isn't whole yet
    for number, line in enumerate(whole, start=1):
        try:
            value = parse_json(line.decode())
        except (UnicodeDecodeError, NotJSONError) as error:
            raise CheckpointError(f"{path}:{number}: damaged: {error}") from None
        if not isinstance(value, dict) or not isinstance(value.get("event"), str):
            raise CheckpointError(f"{path}:{number}: damaged: expected an object with an event")
        if event in (None, value["event"]):
            found.append(value)
    return found
