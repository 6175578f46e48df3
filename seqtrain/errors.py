"""Errors for users, with their exit codes. This module imports no other module of the package.

SeqtrainError
├── ConfigError      2  the configuration, an option or a device
├── DataError        2  an input file or a row of it
├── CheckpointError  2  a run directory or a model folder
└── RunError         3  the run itself: non-finite loss, memory, disk

Interrupted      128+n  a signal asked to stop; a checkpoint is saved (a KeyboardInterrupt)
SeqtrainWarning         something that the user should know about data or results
"""

from __future__ import annotations

import errno
import re
import sys
import warnings
from types import FrameType

PACKAGE_NAME = __name__.partition(".")[0]
"""Name of this package."""
MACHINE_FAULTS = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.EROFS,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
}
"""Numbers (errno) of system errors that the machine causes, such as a full disk."""
REFUSALS = {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR}
"""Numbers (errno) of system errors that a path causes, such as a missing permission."""
OUT_OF_MEMORY = (
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "MPS backend out of memory",
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "std::bad_alloc",
    "failed to map segment from shared object",
    "can't start new thread",
)
"""Parts of messages of errors whose cause is that memory or the number of threads is exhausted."""


def ran_out_of_memory(error: BaseException) -> bool:
    """Return True if an error means that memory or the number of threads is exhausted.

    Cleaning up without memory may raise another error: closing a zip file raises ValueError, and
    scipy turns a library that can't be loaded into an ImportError about its installation. So the
    errors before it count, too.
    """
    if isinstance(error, RuntimeError | ImportError | OSError):
        message = str(error)
    else:
        message = ""
    if isinstance(error, MemoryError) or any(words in message for words in OUT_OF_MEMORY):
        return True
    before = error.__context__
    return before is not None and ran_out_of_memory(before)


MARKED = re.compile("\ufdd0([^\ufdd0-\ufdd2]*)\ufdd1([^\ufdd0-\ufdd2]*)\ufdd2(?P<place>:?)")
"""Pattern of a part of a message that has two spellings, as `either` marks it.

The marks are noncharacters of Unicode, which are reserved for such internal use.
"""


OPTION = re.compile("--([a-z]+(?:-[a-z]+)*)(?: ([A-Z]{2,}))?")
"""Pattern of an option with or without a placeholder for its value, such as "--label COLUMN"."""


def either(command_line: str, in_python: str) -> str:
    """Return a part of a message that reads differently on the command line and in Python.

    `SeqtrainError`, `Interrupted` and `warn` spell it for their reader. All other text of a message
    is shown as it is, also if it resembles an option.
    """
    return f"\ufdd0{command_line}\ufdd1{in_python}\ufdd2"


def parameter(name: str, value: str | bool | None = None) -> str:
    """Return the name of a parameter for a message.

    The command line shows `--run-dir`, `--data FILE` or `--force`. Python shows `run_dir=`,
    `data=FILE` or `force=True`; a name that a colon follows is shown as `run_dir:`.

    Args:
        name: Name of the parameter in Python.
        value: Value to give, True for a flag, or None for the name alone. A text in capital letters
            stands for a value, as FILE does.
    """
    option = "--" + name.replace("_", "-")
    if value is None or value is True:
        return either(option, f"{name}={value or ''}")
    is_placeholder = isinstance(value, str) and value.isupper()
    return either(f"{option} {value}", f"{name}={value if is_placeholder else repr(value)}")


def marked(text: str) -> str:
    """Return a text of this program in which the options of the command line are marked.

    "give --label COLUMN" is shown as "give label=COLUMN" in Python. The text must hold nothing of
    the user's, which might resemble an option.
    """
    return OPTION.sub(lambda found: parameter(found[1].replace("-", "_"), found[2]), text)


def on_command_line(message: str) -> str:
    """Return a message as the command line shows it."""
    return MARKED.sub(r"\1\g<place>", message)


def in_python(message: str) -> str:
    """Return a message as Python shows it."""

    def spelled(match: re.Match[str]) -> str:
        if match["place"]:
            return f"{match[2].removesuffix('=')}:"
        return match[2]

    return MARKED.sub(spelled, message)


class SeqtrainError(Exception):
    """Base of all errors meant for the user. The command line prints them without a traceback.

    Args:
        lines: Messages of one line each: where, what was found, what is allowed, what to do.

    Attributes:
        lines: The messages, with marks where the two readers see different words (`parameter`).
        exit_code: Exit code of the command line after this error.
    """

    exit_code = 1

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(map(in_python, lines)))
        self.lines = lines

    @property
    def problems(self) -> tuple[str, ...]:
        """The messages as the command line prints them. `str(error)` names Python's arguments."""
        return tuple(map(on_command_line, self.lines))

    def __reduce__(self) -> tuple[type[SeqtrainError], tuple[str, ...]]:
        return type(self), self.lines


class ConfigError(SeqtrainError):
    """Error: the configuration, a command-line option, a parameter or the device is wrong."""

    exit_code = 2


class DataError(SeqtrainError):
    """Error: an input file is missing or unreadable, or has rows that can't be used."""

    exit_code = 2


def missing_package(what: str, package: str | None, extra: str) -> ConfigError:
    """Return the error for a feature that needs a package that isn't installed.

    Args:
        what: Name of the feature, such as "format xlsx".
        package: Name of the missing package, such as `ImportError.name`.
        extra: Optional dependencies of seqtrain that include the package, such as "tune" in
            `seqtrain[tune]`.
    """
    return ConfigError(
        f"{what} needs the package {package}; install it with: pip install 'seqtrain[{extra}]'"
    )


class CheckpointError(SeqtrainError):
    """Error: a run directory or a model folder is missing, damaged, or doesn't fit the config."""

    exit_code = 2


class RunError(SeqtrainError):
    """Error: the run or the machine failed, for example by a full disk. Saved files stay valid."""

    exit_code = 3


class SeqtrainWarning(UserWarning):
    """Warning about data or results, for the user."""


CALLERS = (PACKAGE_NAME, "sklearn", "joblib")
"""Packages whose code may call this package for the user, such as a search that fits often."""
_repeated: set[tuple[str, str, int]] = set()


def warn(*lines: str) -> None:
    """Issue a SeqtrainWarning for each message in `lines`.

    A line that begins with a blank is a command, which belongs to the message above. The warning
    names the line of the user's code that called this package, or that called scikit-learn. A call
    of scikit-learn, such as a search, gives an equal warning only once.
    """
    frame: FrameType | None = sys._getframe()
    level = 0
    packages = set()
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in CALLERS:
            break
        packages.add(package)
        frame = frame.f_back
        level = level + 1
    messages = list[str]()
    for line in map(in_python, lines):
        if line.startswith(" ") and messages:
            messages[-1] += f"\n{line}"
        else:
            messages.append(line)
    for text in messages:
        if frame is not None and len(packages) > 1:
            place = (text, frame.f_code.co_filename, frame.f_lineno)
            if place in _repeated:
                continue
            _repeated.add(place)
        warnings.warn(text, SeqtrainWarning, stacklevel=level + 1)


class Interrupted(KeyboardInterrupt):
    """Exception: a signal stopped a run or a search.

    When `fit` raises it, a checkpoint is saved. When `tune` raises it, the ended trials are saved.
    The class is a KeyboardInterrupt, so that ``except Exception`` doesn't catch it.

    Args:
        signal_number: Number of the signal.
        lines: Message with the way to resume the run. There is none until the run is saved, and on
            ranks other than 0. It may have marks, as in `SeqtrainError`.

    Attributes:
        signal_number, lines: The arguments.
        exit_code: 128 plus the number of the signal.
    """

    def __init__(self, signal_number: int, *lines: str) -> None:
        super().__init__("\n".join(map(in_python, lines)))
        self.signal_number = signal_number
        self.exit_code = 128 + signal_number
        self.lines = lines

    @property
    def problems(self) -> tuple[str, ...]:
        """The message as the command line prints it."""
        return tuple(map(on_command_line, self.lines))

    def __reduce__(self) -> tuple[type[Interrupted], tuple[int | str, ...]]:
        return type(self), (self.signal_number, *self.lines)
