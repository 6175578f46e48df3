"""Files of other programs that aren't read: commands that convert them."""

import glob
import os
import shlex
from contextlib import suppress
from typing import NamedTuple

from seqtrain.errors import DataError
from seqtrain.files.reading import uncompressed
from seqtrain.text import display_name

FASTQ = (".fastq", ".fq")
"""Endings of files of reads of sequencers, which have no labels."""
FIRST_BYTES = 4096
"""Number of first bytes of a file of which one is 0 unless the file is text."""
ROWS_OF_ARRAYS = (
    "import json, statistics, sys, {library}; "
    'a = {{k: v for k, v in {reading}.items() if getattr(v, "ndim", 0)}}; '
    "n = statistics.mode(map(len, a.values())); "
    "rows = ({{k: v[i] for k, v in a.items() if len(v) == n}} for i in range(n)); "
    "text = lambda x: x.decode() if isinstance(x, bytes) else x.tolist(); "
    'new = open(sys.argv[2], "w"); '
    '[print(json.dumps(x, default=text).replace("NaN", "null"), file=new) for x in rows]'
)
"""Program that writes an object of JSON for each row of the arrays that have equally many rows."""
TABLES_OF_DATABASE = (
    "import csv, os, sqlite3, sys; d = sqlite3.connect(sys.argv[1]); os.makedirs(sys.argv[2]); "
    'names = d.execute("select name from sqlite_master where type = ?", ["table"]).fetchall(); '
    'tables = ((x, d.execute(f"select * from [{x}]")) for x, in names); '
    '[csv.writer(open(f"{sys.argv[2]}/{x}.csv", "w", newline="")).writerows('
    "[[y[0] for y in rows.description], *rows]) for x, rows in tables]"
)
"""Program that writes each table of a database of SQLite as csv."""
BANDS_OF_SOUND = (
    "import glob, os, sys, numpy, scipy.io.wavfile, scipy.signal; old, new = sys.argv[1:]; "
    "power = lambda n, x: scipy.signal.spectrogram("
    "x.T.reshape(-1, len(x)).mean(0), n, nperseg=n // 50, noverlap=0)[2]; "
    "bands = lambda n, x: numpy.log(1e-9 + power(n, x)[1:81].reshape(20, 4, -1).mean(1)).T; "
    'names = glob.glob(glob.escape(old) + "/**/*.[wW][aA][vV]", recursive=True); '
    'pairs = [(x, os.path.join(new, os.path.relpath(x, old))[:-4] + ".npy") for x in names]; '
    "[os.makedirs(os.path.dirname(y), exist_ok=True) for _, y in pairs]; "
    "[numpy.save(y, bands(*scipy.io.wavfile.read(x))) for x, y in pairs]"
)
"""Program that writes the loudness of 20 bands of frequency up to 4 kHz, in steps of 20 ms."""


class Conversion(NamedTuple):
    """A command that writes the content of a file in a form that is read.

    Attributes:
        found: The format, in words.
        result: What the command writes, in words, perhaps with packages that it needs.
        code: Program of Python. Its arguments are the file, or for sound the folder, and `new`.
        new: Name of what the program writes, behind that of the file.
    """

    found: str
    result: str
    code: str
    new: str

    def lines(self, path: str, name: str) -> list[str]:
        """Return the lines of a message.

        Args:
            path: The file or folder.
            name: Name of the new file or folder without `new`.
        """
        new = shlex.quote(f"./{name}-{self.new}")
        found = f"{self.found} isn't read; to write {self.result}:"
        return [
            found,
            f"  python3 -c {shlex.quote(self.code)} {shlex.quote(path)} {new}",
            f"  seqtrain init {new}",
        ]


def _by_pandas(found: str, reading: str, packages: str = "pandas") -> Conversion:
    """Return the conversion of a table by a function of pandas."""
    return Conversion(
        found,
        f"it as csv (pip install {packages})",
        f"import sys, pandas; pandas.{reading}.to_csv(sys.argv[2], index=False)",
        "table.csv",
    )


_MATLAB = ROWS_OF_ARRAYS.format(
    library="scipy.io", reading="scipy.io.loadmat(sys.argv[1], squeeze_me=True)"
)
_HDF5 = ROWS_OF_ARRAYS.format(
    library="h5py",
    reading='{k: v[()] for k, v in h5py.File(sys.argv[1]).items() if hasattr(v, "dtype")}',
)
_PICKLE = (
    "import sys, pandas; pandas.DataFrame(pandas.read_pickle(sys.argv[1])).to_json("
    'sys.argv[2], orient="records", lines=True, date_format="iso")'
)
_SIGNALS = (
    "import sys, mne; mne.io.read_raw(sys.argv[1]).to_data_frame().to_csv(sys.argv[2], index=False)"
)
SOUND = Conversion(
    "sound", "20 bands of frequency every 20 ms, a file for each", BANDS_OF_SOUND, "bands"
)
"""The conversion of a folder of sound."""
CONVERSIONS = {
    (".mat",): Conversion(
        "a file of MATLAB",
        "an object for each row of its arrays (of version 7.3, save it with -v7 first)",
        _MATLAB,
        "rows.jsonl",
    ),
    (".h5", ".hdf5"): Conversion(
        "HDF5",
        "an object for each row of its arrays (pip install h5py; if pandas wrote it, write csv "
        "there)",
        _HDF5,
        "rows.jsonl",
    ),
    (".pkl", ".pickle"): Conversion(
        "a pickle, which may run code,",
        "a table that you made yourself as JSON (pip install pandas)",
        _PICKLE,
        "rows.jsonl",
    ),
    (".db", ".sqlite", ".sqlite3"): Conversion(
        "a database", "each of its tables as csv", TABLES_OF_DATABASE, "tables"
    ),
    (".edf", ".bdf"): Conversion(
        "a recording of signals", "it as csv (pip install mne pandas)", _SIGNALS, "table.csv"
    ),
    (".sav",): _by_pandas("a file of SPSS", "read_spss(sys.argv[1])", "pandas pyreadstat"),
    (".dta",): _by_pandas("a file of Stata", "read_stata(sys.argv[1])"),
    (".sas7bdat",): _by_pandas("a file of SAS", 'read_sas(sys.argv[1], encoding="utf-8")'),
    (".ods",): _by_pandas("a sheet of OpenDocument", "read_excel(sys.argv[1])", "pandas odfpy"),
    (".xls",): _by_pandas("a sheet of an old Excel", "read_excel(sys.argv[1])", "pandas xlrd"),
    (".xml",): _by_pandas("XML", 'read_xml(sys.argv[1], parser="etree")'),
    (".wav",): SOUND,
}
"""Maps endings of files to their conversion."""
ADVICE = {
    **dict.fromkeys(
        FASTQ,
        "FASTQ has no labels; if all sequences of a file are of one class, write them as lines of "
        "a file, in a folder for all classes:\n"
        "  mkdir -p classes && gzip -cdf {path} | awk 'NR % 4 == 2' > classes/{name}.txt\n"
        "and when each class has its file:\n"
        "  seqtrain init classes",
    ),
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


def conversion_of(path: str) -> Conversion | None:
    """Return the conversion of a file by its ending, or None."""
    ending = os.path.splitext(uncompressed(path))[1].lower()
    return next((each for endings, each in CONVERSIONS.items() if ending in endings), None)


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
    stem, ending = os.path.splitext(uncompressed(path))
    name = os.path.basename(stem)
    conversion = conversion_of(path)
    if conversion is SOUND:
        root = _root_of_classes(os.path.dirname(path))
        return conversion.lines(root, os.path.basename(os.path.abspath(root)))
    if conversion is not None:
        return conversion.lines(path, name)
    files = shlex.quote(path)
    if folder is not None:
        files = f"{shlex.quote(folder)}/*"
        name = os.path.basename(folder)
    known = ADVICE.get(ending.lower(), "")
    return known.format(path=files, name=shlex.quote(name)).splitlines()


def _root_of_classes(folder: str) -> str:
    """Return the folder above a folder of sound if others beside it have sound, or the folder."""
    above = os.path.normpath(os.path.join(folder, os.pardir))
    beside = glob.glob(os.path.join(glob.escape(above), "*", "*.[wW][aA][vV]"))
    if len({*map(os.path.dirname, beside)}) > 1:
        return above
    return folder or os.curdir
