"""What a run does when it saves; each file holds a number, so that a mix would be seen."""

from __future__ import annotations

from pathlib import Path

from seqtrain.files.folder import write_folder
from seqtrain.runs.run_directory import RunDirectory


def save(folder: Path, number: int) -> None:
    """Append to the metrics; write the last checkpoint, the best model and a file."""
    run = RunDirectory(folder)
    run.remove_strays()
    length = run.append_metrics({"number": number})
    files = {"weights": str(number).encode() * 999, "state": f"{number} {length}".encode()}
    write_folder(run.last, files, previous=run.previous)
    write_folder(run.best, files)
    run.write("config.yaml", str(number).encode())
