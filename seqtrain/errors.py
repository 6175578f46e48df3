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
import shlex
import sys
import warnings
from collections.abc import Callable
from functools import partial
from types import FrameType

PACKAGE = __name__.partition(".")[0]
"""Name of this package."""
MACHINE_FAULTS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM),
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
    """Return True if an error means that memory or the number of threads is exhausted."""
    message = str(error) if isinstance(error, RuntimeError | ImportError | OSError) else ""
    return isinstance(error, MemoryError) or any(words in message for words in OUT_OF_MEMORY)


FLAGS = {"force": "True", "resume": "True"}
"""Maps each command-line option without a value to its counterpart in Python.

The counterpart is the value of the argument of the same name.
"""
OPTION = re.compile(
    r"seqtrain init … --(?P<option>[a-z]+) (?P<quoted>(?:'[^']*'|\"[^\"]*\"|[^ '\"])+)"
    r"|(?P<command>\b(?:seqtrain|fit) [^;]*)"
    r"|(?<!^)--set (?P<setting>[a-z_.]+=\w+)"
    r"|--(?P<valued>split|input-format) (?P<value>\w+)"
    r"|(?!--set )--(?P<name>[a-z]+(?:-[a-z]+)*)(?P<place>:)?(?: (?=[A-Z]{2}))?"
)
"""Pattern of the commands and command-line options that a message mentions.

The groups are named after what they match. "option" follows "seqtrain init …", and "quoted" is
its value, as for a shell. "command" is a whole command, such as "seqtrain fit …".
"setting" is the value of --set. "valued" is an option whose value follows as "value". "name" is any
other option. Then "place" is a colon if the option begins the message, as the place of the problem.
"""


def python_names(problem: str) -> str:
    """Return a message with command-line options replaced by arguments of Python functions.

    `--run-dir: …` becomes `run_dir: …`, `--label COLUMN` becomes `label=COLUMN`, `--force` becomes
    `force=True`, and `--set a.b=c` becomes `settings=['a.b=c']`. Whole commands such as
    `seqtrain fit … --resume` don't change.
    """

    def argument(match: re.Match[str]) -> str:
        if match["command"]:
            return match[0]
        if match["option"]:
            value = shlex.split(match["quoted"])[0]
            is_setting = match["option"] == "set"
            return f"settings=[{value!r}]" if is_setting else f"{match['option']}={value!r}"
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
    """Base of all errors meant for the user. The command line prints them without a traceback.

    Messages in `problems` name options of the command line, such as `--run-dir`. `str(error)` names
    arguments of Python functions in their place, such as `run_dir=`.

    Args:
        problems: Messages of one line each: where, what was found, what is allowed, what to do.

    Attributes:
        problems: The same messages.
        exit_code: Exit code of the command line after this error.
    """

    exit_code = 1

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(map(python_names, problems)))
        self.problems = problems

    def __reduce__(self) -> tuple[type[SeqtrainError], tuple[str, ...]]:
        return type(self), self.problems


class ConfigError(SeqtrainError):
    """Error: the configuration, a command-line option, an argument or the device is wrong."""

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
    install = f"install it with: pip install 'seqtrain[{extra}]'"
    return ConfigError(f"{what} needs the package {package}; {install}")


class CheckpointError(SeqtrainError):
    """Error: a run directory or a model folder is missing, damaged, or doesn't fit the config."""

    exit_code = 2


class RunError(SeqtrainError):
    """Error: the run or the machine failed, for example by a full disk. Saved files stay valid."""

    exit_code = 3


class SeqtrainWarning(UserWarning):
    """Warning about data or results, for the user."""


def warn(*lines: str) -> None:
    """Issue a SeqtrainWarning for each message in `lines`.

    The warning names the line of the user's code that called this package. Command-line options in
    a message are replaced by arguments of Python functions, as `python_names` does.
    """
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    for line in lines:
        warnings.warn(python_names(line), SeqtrainWarning, stacklevel=level)


class Interrupted(KeyboardInterrupt):
    """Exception: a signal stopped a run or a search.

    When `fit` raises it, a checkpoint is saved. When `tune` raises it, the ended trials are saved.
    The class is a KeyboardInterrupt, so that ``except Exception`` doesn't catch it.

    Args:
        signal_number: Number of the signal.
        problems: Message with the command that resumes the run. There is none until the run is
            saved, and on ranks other than 0.
        in_python: Message for users of Python functions, which `str` returns, or None for
            `problems`.

    Attributes:
        signal_number: Number of the signal.
        problems: The message, as a tuple.
        exit_code: 128 plus the number of the signal.
    """

    def __init__(self, signal_number: int, *problems: str, in_python: str | None = None) -> None:
        super().__init__("\n".join(problems) if in_python is None else in_python)
        self.signal_number = signal_number
        self.exit_code = 128 + signal_number
        self.problems = problems

    def __reduce__(self) -> tuple[Callable[..., Interrupted], tuple[int | str, ...]]:
        make = partial(type(self), in_python=str(self))
        return make, (self.signal_number, *self.problems)
