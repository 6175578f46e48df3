"""Files of other programs that aren't read: commands that convert them."""

import glob
import os
import shlex
from contextlib import suppress
from typing import NamedTuple

from seqtrain.errors import DataError
from seqtrain.files.reading import ending_of, uncompressed
from seqtrain.tables.conversions.forms import conversion_lines
from seqtrain.text import display_name

FASTQ = (".fastq", ".fq")
"""Endings of files of reads of sequencers, which have no labels."""
DATABASES = (".db", ".sqlite", ".sqlite3")
"""Endings of databases of SQLite."""
FIRST_BYTES = 4096
"""Number of first bytes of a file of which one is 0 unless the file is text."""


class KnownProgram(NamedTuple):
    """How files of another program become files that are read.

    Attributes:
        found: The format, in words.
        result: What `seqtrain convert` writes, in words.
        form: Name of the form.
    """

    found: str
    result: str
    form: str = "objects"

    def lines(self, path: str) -> list[str]:
        """Return the lines of a message about a file or folder."""
        found = f"{self.found} isn't read; to write {self.result}:"
        return [found, *conversion_lines(self.form, path)]


OBJECTS_OF_ROWS = "an object for each of its rows"
READS = (
    "FASTQ has no labels; if each file, or folder, has the sequences of one class, to write lines:"
)
SOUND = KnownProgram("sound", "20 bands of frequency every 20 ms, a file for each", "bands")
"""The conversion of a folder of sound."""
KNOWN_PROGRAMS = {
    ".mat": KnownProgram(
        "a file of MATLAB",
        "an object for each row of its arrays (of version 7.3, save it with -v7 first)",
    ),
    **dict.fromkeys(
        (".h5", ".hdf5"),
        KnownProgram(
            "HDF5",
            "an object for each row of its arrays (if pandas wrote it, write csv there)",
        ),
    ),
    **dict.fromkeys(
        (".pkl", ".pickle"),
        KnownProgram(
            "a pickle, which may run code,", "a table that you made yourself as JSON", "unpickled"
        ),
    ),
    **dict.fromkeys(DATABASES, KnownProgram("a database", "each of its tables as csv", "tables")),
    **dict.fromkeys((".edf", ".bdf"), KnownProgram("a recording of signals", OBJECTS_OF_ROWS)),
    ".sav": KnownProgram("a file of SPSS", OBJECTS_OF_ROWS),
    ".dta": KnownProgram("a file of Stata", OBJECTS_OF_ROWS),
    ".sas7bdat": KnownProgram("a file of SAS", OBJECTS_OF_ROWS),
    ".ods": KnownProgram("a sheet of OpenDocument", OBJECTS_OF_ROWS),
    ".xls": KnownProgram("a sheet of an old Excel", OBJECTS_OF_ROWS),
    ".xml": KnownProgram("XML", OBJECTS_OF_ROWS),
    ".wav": SOUND,
}
"""Maps endings of files to their conversion."""
ADVICE = {
    ".bz2": "decompress it first: bunzip2 -k {path}",
    ".xz": "decompress it first: unxz -k {path}",
    ".zip": "unpack it first: unzip {path}",
    **dict.fromkeys((".tar", ".tgz"), "unpack it first: tar -xf {path}"),  # also of .tar.gz
    **dict.fromkeys(
        (".conll", ".conllu", ".iob"), "a tag per token, by its name; give --format tsv"
    ),
    ".rds": "a file of R isn't read; to write it as csv:\n"
    "  Rscript -e 'a <- commandArgs(TRUE); write.csv(readRDS(a[1]), a[2], row.names = FALSE)' "
    "{path} {name}-table.csv\n"
    "  seqtrain init {name}-table.csv",
    **dict.fromkeys(
        (".mp3", ".flac", ".ogg", ".m4a"),
        "sound is read from .wav only; to write it so:\n  ffmpeg -i {path} {name}.wav",
    ),
}
"""Maps endings of other files that can't be read to advice."""


def conversion_of(path: str) -> KnownProgram | None:
    """Return the conversion of a file by its ending, or None."""
    return KNOWN_PROGRAMS.get(ending_of(path))


def refuse_unreadable(path: str, folder: str | None = None) -> None:
    """Raise a DataError if there is advice on converting a file, or the files of a folder.

    Args:
        path: The file. Only the ending counts, in upper or lower case, before .gz and the like.
        folder: Folder of a class whose files are converted in place of the one file, or None.
    """
    lines = advice(path, folder)
    if lines:
        raise DataError(f"{display_name(folder or path)}: {lines[0]}", *lines[1:])


def refuse_binary(path: str) -> None:
    """Raise a DataError if a file has a conversion, and isn't text as others of its ending are."""
    if conversion_of(path) is None:
        return
    with suppress(OSError), open(path, "rb") as stream:
        if b"\0" in stream.read(FIRST_BYTES):
            refuse_unreadable(path)


def advice(path: str, folder: str | None = None) -> list[str]:
    """Return lines of advice on converting a file, or files of a folder, or []."""
    conversion = conversion_of(path)
    if conversion is SOUND:
        return conversion.lines(_root_of_classes(os.path.dirname(path)))
    if conversion is not None:
        return conversion.lines(path)
    if ending_of(path) in FASTQ:
        root = os.path.dirname(folder or path) or os.curdir
        return [READS, *conversion_lines("reads", root)]
    known = ADVICE.get(ending_of(path), "")
    name = shlex.quote(os.path.basename(os.path.splitext(uncompressed(path))[0]))
    return known.format(path=shlex.quote(path), name=name).splitlines()


def _root_of_classes(folder: str) -> str:
    """Return the folder above a folder of sound if others beside it have sound, or the folder."""
    above = os.path.normpath(os.path.join(folder, os.pardir))
    beside = glob.glob(os.path.join(glob.escape(above), "*", "*.[wW][aA][vV]"))
    if len({*map(os.path.dirname, beside)}) > 1:
        return above
    return folder or os.curdir
