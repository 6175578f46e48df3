"""The program: loads the command that is called, and turns every ending into its exit code."""

import atexit
import gc
import io
import os
import re
import sys
import warnings
from contextlib import suppress
from functools import cache, wraps
from importlib import import_module
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from seqtrain import __version__
from seqtrain.errors import (
    MACHINE_FAULTS,
    REFUSALS,
    Interrupted,
    SeqtrainError,
    SeqtrainWarning,
    ran_out_of_memory,
)
from seqtrain.signals import (
    INTERRUPTED,
    code_of_signal,
    ended_by_second_interrupt,
    ended_by_signals,
)
from seqtrain.text import nearest, one_line, printable

BUG, BAD_USAGE, RUN_FAULT, CLOSED_PIPE = 1, 2, 3, 141
COMMANDS = {
    "init": "Write a commented config for a data file, ready for fit.",
    "data": "Look at the data of a config without training.",
    "fit": "Train a classifier; the last line of output is its run.",
    "tune": "Search for better settings; keep the best trial as a run.",
    "eval": "Score a run on its test split, another split, or another file.",
    "errors": "Show the mistakes of a run, the most confident first.",
    "predict": "Classify each row of a file or of standard input.",
    "report": "Write one offline HTML page about one or several runs.",
    "diff": "Compare two runs on the same examples.",
    "runs": "List the runs: settings that differ, best epoch, scores, time.",
    "reconstruct": "Show what a pretrained autoencoder makes of each row.",
    "export": "Write a model as ONNX, with a script that needs no torch.",
    "check": "Show that predictions don't depend on the batch.",
    "compare": "Measure every way to handle unequal lengths on your machine.",
    "config": "Print every key of a config, and mark the defaults.",
}
"""What each command does; its function stands in the file of its name in `cli/commands/`."""
UsageError: type[typer.BadParameter] = typer.BadParameter.__bases__[0]
"""Typer's own base of usage errors: click's, or its copy of click's, by version."""
HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


class Commands(TyperGroup):
    """Loads a command when it is called: `--help` needs none of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; None: there is none of this name."""
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and what they do."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@cache
def load_command(name: str) -> Any:
    """Make a command of its function."""
    function = _keeping_interrupts(getattr(import_module(f"seqtrain.cli.commands.{name}"), name))
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    text = f"{COMMANDS[name]}\n\n{function.__doc__}"
    alone.command(name, help=text, context_settings=HELP_OPTIONS)(function)
    return typer.main.get_command(alone)


class _Stopped(Exception):
    """Carries an Interrupted through Typer, which would turn it into exit code 130."""


def _keeping_interrupts(function: Any) -> Any:
    """Return a command that raises _Stopped in place of Interrupted."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except Interrupted as error:
            raise _Stopped from error

    return call


@cache
def program() -> Any:
    """Make the program: all commands, and the options that stand before them."""
    app = typer.Typer(
        name="seqtrain",
        cls=Commands,
        help="Train, measure and use classifiers of variable-length sequences.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=HELP_OPTIONS,
    )
    app.callback()(main)
    return typer.main.get_command(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"seqtrain {__version__}")
        raise typer.Exit()


VERSION = typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version.")
DEBUG = typer.Option("--debug", help="Show the traceback if the program fails by a bug.")


def main(version: Annotated[bool, VERSION] = False, debug: Annotated[bool, DEBUG] = False) -> None:
    """Train, measure and use classifiers of variable-length sequences."""


def run(arguments: list[str] | None = None) -> None:
    """Run the program and exit with its code (contract: 0, 1, 2, 3, 128 + signal)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Results are UTF-8 whatever the locale; a file's name leaves with the bytes it has.
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    gc.set_threshold(10_000)  # torch's import makes many objects, and none is garbage
    atexit.register(gc.freeze)  # the last search for garbage takes half a second
    with ended_by_signals(), warnings.catch_warnings():
        warnings.simplefilter("ignore", SeqtrainWarning)  # screens show them
        sys.exit(_exit_code(arguments or ["--help"]))


def _exit_code(arguments: list[str]) -> int:
    if sys.stdout is None:
        _complain("standard output is closed; nothing can be written")
        return RUN_FAULT
    try:
        with ended_by_second_interrupt():
            code = _called(arguments)
            sys.stdout.flush()
        if code == INTERRUPTED:  # Typer's code after SIGINT
            _complain("interrupted")
        return code if isinstance(code, int) else 0
    except SeqtrainError as error:
        bad_input = error.exit_code == BAD_USAGE
        _complain(*(one_line(problem) if bad_input else problem for problem in error.problems))
        return error.exit_code
    except _Stopped as stopped:
        interrupted = stopped.__cause__
        assert isinstance(interrupted, Interrupted)
        _complain(*interrupted.problems)
        return interrupted.exit_code
    except typer.Exit as end:
        return end.exit_code
    except (BrokenPipeError, SystemExit) as end:  # Typer turns a closed pipe into code 1
        if BrokenPipeError not in (type(end), type(end.__context__)):
            raise
        _abandon(sys.stdout)
        return CLOSED_PIPE
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted")
        return INTERRUPTED
    except Exception as error:
        ended = code_of_signal(error)
        if ended is not None:
            return ended
        code, problem = _explained(error, arguments)
        if code == BUG and "--debug" in arguments:
            raise
        _complain(problem)
        return code


def _called(arguments: list[str]) -> Any:
    """Run a command; one that comes first is run on its own, which starts faster."""
    name, *rest = arguments
    given: dict[str, Any] = {"standalone_mode": False, "obj": arguments}
    if name in COMMANDS:
        return load_command(name)(rest, prog_name=f"seqtrain {name}", **given)
    return program()(arguments, prog_name="seqtrain", **given)


def _explained(error: Exception, arguments: list[str]) -> tuple[int, str]:
    """Put an error that isn't ours into words: of usage, memory, the system, or else a bug."""
    if isinstance(error, UsageError):
        called = " ".join(["seqtrain", *(name for name in arguments[:1] if name in COMMANDS)])
        return BAD_USAGE, one_line(_usage_problem(error, called))
    if ran_out_of_memory(error):
        return RUN_FAULT, (
            f"memory ran out ({one_line(str(error) or 'an object could not be made')}); what was "
            "saved stays valid; try smaller data, a smaller model, or OMP_NUM_THREADS=1"
        )
    if isinstance(error, OSError) and error.errno in MACHINE_FAULTS:
        _abandon(sys.stdout)
        return RUN_FAULT, f"{error.filename or 'standard output'}: {error.strerror}"
    if isinstance(error, FileNotFoundError) and error.filename is None:  # of os.getcwd
        return BAD_USAGE, "the current directory was deleted; change to one that exists"
    if isinstance(error, OSError) and error.errno in REFUSALS and error.filename is not None:
        return BAD_USAGE, one_line(f"{os.fsdecode(error.filename)}: {error.strerror}")
    return BUG, (
        f"bug: {type(error).__name__}: {error}; please report it with the output of: "
        f"seqtrain --debug {' '.join(arguments)}"
    )


def _usage_problem(error: typer.BadParameter, called: str) -> str:
    """Say in one line what is wrong with a command line, what may be meant, and where help is."""
    context: Any = error.ctx
    wanted = str(getattr(error, "option_name", "")).lstrip("-")
    if wanted:
        error.possibilities = None  # type: ignore[attr-defined]  # Typer's may be far away
    text = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    if context is None:
        return f"{text}; see: {called} --help"
    command = re.match("No such command '(.*?)'", text)
    if command:
        near = nearest(command[1], COMMANDS)
        text += f"; did you mean {near}?" if near else f"; expected {', '.join(COMMANDS)}"
    elif wanted:
        names = [name for each in context.command.params for name in each.opts]
        near = nearest(wanted, [name[2:] for name in names if name.startswith("--")])
        if near is None and "--set" in names:
            from seqtrain.config.problems import nearest_key

            near = nearest_key((wanted.replace("-", "_"),))
            near = near and f"set {near}=…"
        text += f"; did you mean --{near}?" if near else ""
    return f"{text}; see: {context.command_path} --help"


def _abandon(stream: TextIO) -> None:
    """Let what can't be written go elsewhere: Python would complain again while closing."""
    with suppress(OSError):  # no descriptor may be left
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(*problems: str) -> None:
    """Print each problem as one line on stderr, control characters escaped, if anyone reads it."""
    rank = os.environ.get("RANK", "0") if os.environ.get("WORLD_SIZE", "1") != "1" else "0"
    who = "seqtrain" if rank == "0" else f"seqtrain: rank {printable(rank)}"
    try:
        for problem in problems:
            print(f"{who}: {printable(problem)}", file=sys.stderr)
    except OSError:
        _abandon(sys.stderr)
