"""Conversions of folders, and of files to folders. Each function writes what is new itself."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from seqtrain.files.reading import ending_of, uncompressed
from seqtrain.files.writing import write_new
from seqtrain.tables.arrays import arrays_of_splits
from seqtrain.tables.blocks import Array, Dialect, UnreadableError
from seqtrain.tables.conversions.arrays import arrays_in, saved_arrays
from seqtrain.tables.conversions.lines import as_csv
from seqtrain.tables.conversions.objects import as_json, named_rows
from seqtrain.tables.conversions.programs import (
    plain_file,
    read_objects,
    read_pickle,
    rows_of_program,
)
from seqtrain.tables.json_lines import json_values
from seqtrain.tables.opening import TextLines, open_input
from seqtrain.tables.other_programs import DATABASES, FASTQ
from seqtrain.tables.sources import files_below, folder_entries
from seqtrain.tables.xlsx import sheet_names, sheet_rows

SOUND_FILE = ".wav"
"""Ending of sound."""
STEPS_PER_SECOND = 50
"""Number of time steps of sound per second."""
READ_LINES = 4
"""Number of lines of a read in FASTQ: its name, its sequence, and two others."""
BANDS, WIDTH = 20, 4
"""Number of bands of frequency, and number of frequencies, 50 Hz each, of a band."""
SILENCE = 1e-9
"""Power that is added, so that silence has a logarithm."""


def bands(path: str, target: Path) -> None:
    """Write the loudness of bands of frequency up to 4 kHz, in steps of 20 ms, for all sound.

    Args:
        path: A folder of files .wav, at any depth.
        target: The new folder of files .npy.

    Raises:
        UnreadableError: If a file isn't sound, or has fewer than 8,000 values per second.
    """
    for file in files_below(path):
        stem, ending = os.path.splitext(os.path.relpath(file, path))
        if ending.lower() == SOUND_FILE:
            new = target / f"{stem}.npy"
            new.parent.mkdir(parents=True, exist_ok=True)
            try:
                found = _bands_of(file)
            except ValueError as error:
                raise UnreadableError(None, f"{file}: {error}") from None
            write_new(new, saved_arrays({"X": found}, ".npy"))


def _bands_of(path: str) -> Array:
    """Return the logarithm of the power of bands, (T, BANDS)."""
    rate, sound = import_module("scipy.io.wavfile").read(path)
    channels = sound.T.reshape(-1, len(sound))
    _, _, power = import_module("scipy.signal").spectrogram(
        channels.mean(axis=0), rate, nperseg=rate // STEPS_PER_SECOND, noverlap=0
    )
    loudness = power[1 : 1 + BANDS * WIDTH].reshape(BANDS, WIDTH, -1).mean(axis=1)
    return np.asarray(np.log(SILENCE + loudness).T)


def reads(path: str, target: Path) -> None:
    """Write the sequences of FASTQ as lines, a file for each class.

    Args:
        path: A folder with a file of FASTQ, or a folder of such files, for each class.
        target: The new folder.
    """
    target.mkdir()
    for name, is_folder in folder_entries(path):
        below = os.path.join(path, name)
        found = files_below(below) if is_folder else [below]
        files = [file for file in found if ending_of(file) in FASTQ]
        if not files:
            continue
        label = name
        if not is_folder:
            label = os.path.splitext(uncompressed(name))[0]
        write_new(target / f"{label}.txt", _sequences(files))


def _sequences(files: Sequence[str]) -> Iterator[bytes]:
    """Yield the line of each sequence in files of FASTQ."""
    for file in files:
        with open_input(file) as stream:
            yield from (line.rstrip() + b"\n" for line in islice(stream, 1, None, READ_LINES))


def copied(path: str, target: Path, *, without: Sequence[str] = ()) -> None:
    """Write a copy of a file, or of a folder without some of its files.

    Args:
        path: The file or folder.
        target: The new one.
        without: Names of files that are left out at all depths.
    """
    if os.path.isfile(path):
        shutil.copyfile(path, target)
    else:
        shutil.copytree(path, target, ignore=shutil.ignore_patterns(*map(glob.escape, without)))


def stacked_channels(path: str, target: Path) -> None:
    """Write an array of series, (B, T, C), as X of a file npz from a file of text for each channel.

    Args:
        path: A folder of such files, which have equally many rows of numbers between blanks or
            commas.
        target: The new file.

    Raises:
        UnreadableError: If the files don't hold equally many numbers.
    """
    series = []
    try:
        for file in files_below(path):
            with open_input(file) as stream:
                lines = [text for _, text in TextLines(stream).numbered()]
            mark = None
            if "," in lines[0]:
                mark = ","
            series.append(np.loadtxt(lines, delimiter=mark, ndmin=2))
        array = np.stack(series, axis=2)
    except ValueError as error:
        raise UnreadableError(None, f"{file}: {error}") from None
    write_new(target, saved_arrays({"X": array}, ".npz"))


def tables(path: str, target: Path) -> None:
    """Write each table inside a file as a file of a folder.

    Args:
        path: An object of JSON with lists of rows, arrays of several splits, a database of SQLite,
            or a workbook.
        target: The new folder.
    """
    ending = ending_of(path)
    target.mkdir()
    if ending in DATABASES:
        _write_database(path, target)
    elif ending == ".xlsx":
        _write_sheets(path, target)
    elif ending == ".npz":
        with open_input(path) as stream:
            arrays = arrays_in(stream, path)
        for split, names in arrays_of_splits(list(arrays)).items():
            own = {meaning: arrays[name] for meaning, name in names.items()}
            write_new(target / f"{split}.npz", saved_arrays(own, ".npz"))
    else:
        with open_input(path) as stream:
            for value in json_values(stream, Dialect("jsonl"), ".npz", ".xlsx", *DATABASES):
                _write_lists(value, target)


def _write_lists(value: object, target: Path) -> None:
    """Write each list of an object as a file of JSON.

    Raises:
        UnreadableError: If it isn't an object.
    """
    if not isinstance(value, dict):
        raise UnreadableError(None, "expected one JSON object with a list for each table")
    for name, rows in value.items():
        if isinstance(rows, list):
            write_new(target / f"{_file_name(name)}.jsonl", as_json(named_rows(rows)))


def _write_database(path: str, target: Path) -> None:
    """Write each table of a database as csv."""
    with plain_file(path) as plain, closing(sqlite3.connect(plain)) as database:
        try:
            names = database.execute("select name from sqlite_master where type = 'table'")
            for (name,) in names.fetchall():
                quoted = name.replace('"', '""')
                rows = database.execute(f'select * from "{quoted}"')
                columns = [column[0] for column in rows.description]
                _write_csv(target, name, chain([columns], rows))
        except sqlite3.DatabaseError as error:
            raise UnreadableError(None, f"isn't a sound database ({error})") from None


def _write_csv(target: Path, name: str, rows: Iterable[Sequence[Any]]) -> None:
    """Write the rows of a table as a file of csv."""
    lines = (f"{line}\n".encode() for line in as_csv(rows))
    write_new(target / f"{_file_name(name)}.csv", lines)


def _write_sheets(path: str, target: Path) -> None:
    """Write each sheet of a workbook as csv.

    Raises:
        UnreadableError: If it isn't a sound workbook.
    """
    names = sheet_names(path)
    if not names:
        raise UnreadableError(None, "isn't a sound xlsx file")
    for name in names:
        with open_input(path) as stream:
            rows = list(sheet_rows(stream, Dialect("xlsx", header=False, sheet=name)))
        if rows:
            _write_csv(target, name, rows)


def _file_name(name: str) -> str:
    """Return a name of a file for a table, without marks that no such name may have."""
    return re.sub(r'[\\/:*?"<>|\x00-\x1f]', "_", name)


def unpickled(path: str, target: Path) -> None:
    """Write an object for each row of a table in a pickle, whose reading can run code."""
    write_new(target, as_json(rows_of_program(path, "pandas", read_pickle)))


def lists(path: str, target: Path) -> None:
    """Write an object for each row of arrays of Python objects, whose reading can run code.

    Args:
        path: A file npz.
        target: The new folder, with a file for each split.
    """
    target.mkdir()
    rows = rows_of_program(path, "numpy", read_objects)
    for split, own in groupby(rows, key=lambda row: next(iter(row))):
        write_new(target / f"{split}.jsonl", as_json(row[split] for row in own))
