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

PACKAGE = __name__.partition(".")[0]
MACHINE_FAULTS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM),
}
"""Error numbers of an OSError whose cause is the machine, not the path."""
REFUSALS = {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR}
"""Error numbers of an OSError whose cause is the path."""
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
"""Parts of error messages that mean that memory, or the number of threads, is exhausted."""


def ran_out_of_memory(error: BaseException) -> bool:
    """Return True if the cause of an error is that memory, or the number of threads, ran out."""
    message = str(error) if isinstance(error, RuntimeError | ImportError | OSError) else ""
    return isinstance(error, MemoryError) or any(words in message for words in OUT_OF_MEMORY)


FLAGS = {"force": "True", "resume": "True", "no-cache": "cache=False"}
"""Maps each option without a value to the value or argument that Python users write instead."""
OPTION = re.compile(
    r"(?P<command>\b(?:seqtrain|fit) [^;]*)"
    r"|(?<!^)--set (?P<setting>[a-z_.]+=\w+)"
    r"|--(?P<valued>split|input-format) (?P<value>\w+)"
    r"|(?!--set )--(?P<name>[a-z]+(?:-[a-z]+)*)(?P<place>:)?(?: (?=[A-Z]{2}))?"
)
"""Commands and options in a message."""


def python_names(problem: str) -> str:
    """Replace the command-line options in a message by the arguments of Python functions.

    `--run-dir: …` becomes `run_dir: …`, `--label COLUMN` becomes `label=COLUMN`, `--force` becomes
    `force=True`, and `--set a.b=c` becomes `settings=['a.b=c']`. Commands such as
    `seqtrain fit … --resume` stay.
    """

    def argument(match: re.Match[str]) -> str:
        if match["command"]:
            return match[0]
        if match["setting"]:
            return f"settings=[{match['setting']!r}]"
        if match["valued"]:
            return f"{match['valued'].replace('-', '_')}={match['value']!r}"
        name = match["name"].replace("-", "_")
        if match["place"]:
            return f"{name}:"
        flag = FLAGS.get(match["name"])
        return f"{name}=" if flag is None else flag if "=" in flag else f"{name}={flag}"

    return OPTION.sub(argument, problem)


class SeqtrainError(Exception):
    """Base of all errors meant for the user: one line per problem, no traceback.

    `str(error)` names the arguments of Python functions, such as `run_dir=`. The command line
    prints `problems`, which name its options, such as `--run-dir`.

    Args:
        problems: One line each: where, what was found, what is allowed, what to do.
    """

    exit_code = 1

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(map(python_names, problems)))
        self.problems = problems

    def __reduce__(self) -> tuple[type[SeqtrainError], tuple[str, ...]]:
        return type(self), self.problems


class ConfigError(SeqtrainError):
    """The configuration, a command-line option or the device is wrong."""

    exit_code = 2


class DataError(SeqtrainError):
    """An input file is missing, unreadable, or has rows that can't be used."""

    exit_code = 2


def missing_package(what: str, package: str | None, extra: str) -> ConfigError:
    """Return the error for a feature that needs a package that isn't installed.

    Args:
        what: Name of the feature, such as "format xlsx".
        package: Name of the package.
        extra: Extra of seqtrain that installs the package.
    """
    install = f"install it with: pip install 'seqtrain[{extra}]'"
    return ConfigError(f"{what} needs the package {package}; {install}")


class CheckpointError(SeqtrainError):
    """A run directory or model folder is missing, damaged, or doesn't fit."""

    exit_code = 2


class RunError(SeqtrainError):
    """Training or prediction failed while running; what was saved stays valid."""

    exit_code = 3


class SeqtrainWarning(UserWarning):
    """Something that the user should know about data or results."""


def warn(*lines: str) -> None:
    """Issue a SeqtrainWarning for each text in `lines`.

    The warning points to the line of the user's code that called the package. Command-line options
    in the text are replaced by arguments of Python functions.
    """
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    for line in lines:
        warnings.warn(python_names(line), SeqtrainWarning, stacklevel=level)


class Interrupted(KeyboardInterrupt):
    """A signal stopped the run; a checkpoint is saved.

    It is a KeyboardInterrupt, so that a loop with ``except Exception`` ends at Ctrl-C, too.

    Args:
        signal_number: Number of the signal.
        problems: Message with the command to resume, or nothing if another process prints it.
    """

    def __init__(self, signal_number: int, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.signal_number = signal_number
        self.exit_code = 128 + signal_number
        self.problems = problems

    def __reduce__(self) -> tuple[type[Interrupted], tuple[int | str, ...]]:
        return type(self), (self.signal_number, *self.problems)
