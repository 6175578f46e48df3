"""The program `seqtrain`: it loads the command to run, and turns errors into exit codes."""

import atexit
import gc
import io
import os
import re
import shlex
import sys
import warnings
from contextlib import suppress
from functools import cache
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
    exit_on_second_interrupt,
    exit_on_signals,
)
from seqtrain.text import nearest, one_line, printable

BUG, BAD_USAGE, RUN_FAULT, CLOSED_PIPE = 1, 2, 3, 141
COMMANDS = {
    "init": "Write a commented config for a data file, ready for fit.",
    "convert": "Write data files in another form, as init advises.",
    "data": "Look at the data of a config without training.",
    "fit": "Train a classifier; the last line of output is its run.",
    "tune": "Search for better settings; keep the best trial as a run.",
    "eval": "Score a run on its test split, another split, or another file.",
    "errors": "Show the wrong predictions of a run, the most confident first.",
    "predict": "Classify each row of a file or of standard input.",
    "report": "Write one offline HTML page about one or several runs.",
    "diff": "Compare two runs on the same examples.",
    "runs": "List the runs: scores, time, best epoch, settings that differ.",
    "reconstruct": "Show how a pretrained autoencoder reconstructs each row.",
    "export": "Write a model as ONNX, with a script that needs no torch.",
    "check": "Show that predictions don't depend on the batch.",
    "compare": "Measure every way to handle unequal lengths on your machine.",
    "config": "Print every key of a config, and mark the defaults.",
}
"""Maps each command to its help. `cli/commands/` has a module and function of this name."""
NO_CHOICE = re.compile("'(?P<value>[^']*)' is not one of (?P<choices>.*)")
"""Message of Typer about a value that isn't one of several."""
UNKNOWN_WORD = re.compile("No such (?:command '|option: (?=--))(?P<name>[^ ']+)'?")
"""Message of Typer about an unknown command or option."""
UsageError: type[typer.BadParameter] = typer.BadParameter.__bases__[0]
"""Base class of usage errors in Typer: the class of click, or its copy in newer versions."""
COMPLETION = "_SEQTRAIN_COMPLETE"
"""Environment variable that is set when a shell asks for completions."""
HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


class Commands(TyperGroup):
    """Group of commands that are imported when they are called, so that `--help` is fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return a command, or return None if no command has this name."""
        if cmd_name in COMMANDS:
            return load_command(cmd_name)
        return None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names of the commands and their help."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@cache
def load_command(name: str) -> Any:
    """Import the function of a command, and return it as a command of Typer."""
    module = import_module(f"seqtrain.cli.commands.{name}")
    function = getattr(module, name)
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    text = f"{COMMANDS[name]}\n\n{function.__doc__}"
    epilog = getattr(module, "EPILOG", None)
    app.command(name, help=text, epilog=epilog, context_settings=HELP_OPTIONS)(function)
    return typer.main.get_command(app)


@cache
def program() -> Any:
    """Return the Typer group of all commands, with the options that precede a command."""
    app = typer.Typer(
        name="seqtrain",
        cls=Commands,
        help="Train, measure and use classifiers of variable-length sequences.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=HELP_OPTIONS,
    )
    app.callback()(main)
    group: Any = typer.main.get_command(app)
    group.commands = dict.fromkeys(COMMANDS)  # Typer suggests one of these for a misspelt one
    return group


def _show_version(value: bool) -> None:
    if value:
        print(f"seqtrain {__version__}")
        raise typer.Exit()


def main(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback if the program fails by a bug.")
    ] = False,
) -> None:
    """Train, measure and use classifiers of variable-length sequences."""


def run(arguments: list[str] | None = None) -> None:
    """Run the program and exit with its code.

    Args:
        arguments: Words of the command line after the program's name, or None for sys.argv.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Results are UTF-8 in any locale. File names are written with their original bytes.
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if COMPLETION in os.environ:
        program()(prog_name="seqtrain")  # prints the completions for the shell, and exits
    gc.set_threshold(10_000)  # importing torch creates many objects, and none of them is garbage
    atexit.register(gc.freeze)  # a last collection would take half a second
    with exit_on_signals(), warnings.catch_warnings():
        warnings.simplefilter("ignore", SeqtrainWarning)  # screens show them
        sys.exit(_exit_code(arguments or ["--help"]))


def _exit_code(arguments: list[str]) -> int:
    """Run a command, print its error if it fails, and return the exit code.

    With --debug, an error by a bug is raised instead.
    """
    if sys.stdout is None:
        _print_problems("standard output is closed; nothing can be written")
        return RUN_FAULT
    try:
        # Without Typer's own handling of errors, which turns each of them into exit code 1 or 130.
        with (
            exit_on_second_interrupt(),
            _command_context(arguments) as context,
        ):
            context.command.invoke(context)
            sys.stdout.flush()
        return 0
    except (SeqtrainError, Interrupted) as error:
        is_bad_input = error.exit_code == BAD_USAGE
        shorten = one_line if is_bad_input else str
        _print_problems(*map(shorten, error.problems))
        return error.exit_code
    except typer.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        _discard(sys.stdout)
        return CLOSED_PIPE
    except KeyboardInterrupt:
        _print_problems("interrupted")
        return INTERRUPTED
    except Exception as error:
        signal_code = code_of_signal(error)
        if signal_code is not None:
            return signal_code
        code, problem = _unexpected_error(error, arguments)
        if code == BUG and "--debug" in arguments:
            raise
        _print_problems(problem)
        return code


def _command_context(arguments: list[str]) -> Any:
    """Parse the arguments of a command with Typer, and return the context to run it in.

    If the first word is a command, the program's own options aren't built, because they load
    pydantic.
    """
    name, *rest = arguments
    if name in COMMANDS:
        return load_command(name).make_context(f"seqtrain {name}", rest, obj=arguments)
    return program().make_context("seqtrain", list(arguments), obj=arguments)


def _unexpected_error(error: Exception, arguments: list[str]) -> tuple[int, str]:
    """Return exit code and message for an exception that isn't an error of seqtrain.

    Usage errors of Typer, lack of memory, and some system errors have separate codes. All other
    exceptions are bugs.
    """
    if isinstance(error, UsageError):
        text = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
        command = " ".join(["seqtrain", *(name for name in arguments[:1] if name in COMMANDS)])
        word, *rest = arguments
        advice = _advice_on_choice(text)
        unknown = UNKNOWN_WORD.match(text)
        if unknown is not None and word in COMMANDS:
            advice = _advice_on_option(unknown["name"], word, rest)
        elif unknown is not None:
            words = 1 if "Did you mean" in text else None
            advice = _advice_on_command(unknown["name"].lower(), rest, words)
        if advice and unknown is not None:
            text = unknown[0]
        if advice:
            return BAD_USAGE, one_line(f"{text}; {advice}")
        return BAD_USAGE, one_line(f"{text}; see: {command} --help")
    if ran_out_of_memory(error):
        first = error.__cause__ or error
        cause = one_line(str(first) or "an object could not be created")
        return RUN_FAULT, (
            f"out of memory ({cause}); what was saved stays valid; try smaller data, a smaller "
            "model, or OMP_NUM_THREADS=1"
        )
    if isinstance(error, OSError):
        if error.errno in MACHINE_FAULTS:
            _discard(sys.stdout)
            return RUN_FAULT, f"{error.filename or 'standard output'}: {error.strerror}"
        if isinstance(error, FileNotFoundError) and error.filename is None:  # from os.getcwd
            return BAD_USAGE, "the current directory was deleted; change to one that exists"
        if error.errno in REFUSALS and error.filename is not None:
            return BAD_USAGE, one_line(f"{os.fsdecode(error.filename)}: {error.strerror}")
    return BUG, (
        f"bug: {type(error).__name__}: {error}; please report it with the output of: "
        f"seqtrain --debug {' '.join(arguments)}"
    )


def _advice_on_choice(text: str) -> str:
    """Return advice on a value of an option that isn't one of its choices, or "".

    A format may be given by the ending of a file.
    """
    found = NO_CHOICE.search(text)
    if found is None:
        return ""
    from seqtrain.tables.formats import ENDINGS

    choices = re.findall("'([^']*)'", found["choices"])
    near = ENDINGS.get(f".{found['value'].lower()}")
    if near not in choices:
        near = nearest(found["value"], choices)
    return f"did you mean {near}?" if near else ""


def _advice_on_command(name: str, rest: list[str], most: int | None) -> str:
    """Return advice on an unknown command, or "" if no help of a command has its name as a word.

    Args:
        name: The command.
        rest: The words after it.
        most: Number of first words of a help that count, or None for all.
    """
    helps = {command: re.findall("[a-z]+", text.lower()) for command, text in COMMANDS.items()}
    near = [command for command, words in helps.items() if words[0] == name]
    near += [command for command, words in helps.items() if name in words[:most]]
    if not near:
        return ""
    return f"did you mean: {shlex.join(['seqtrain', near[0], *rest])}"


def _advice_on_option(name: str, command: str, rest: list[str]) -> str:
    """Return advice on an unknown option of a command, or "" if it resembles none.

    It may be a key of the config, which an option or --set gives.
    """
    from seqtrain.config.messages import nearest_key
    from seqtrain.config.schema import Config

    known = {option for each in load_command(command).params for option in each.opts}
    key = nearest_key((name.removeprefix("--").replace("-", "_"),), Config)
    option = f"--{key.rpartition('.')[2]}" if key else ""
    if option not in known and key and "--set" in known:
        at = next(at for at, word in enumerate(rest) if word.startswith(name))
        value = rest[at].partition("=")[2] or "".join(rest[at + 1 : at + 2])
        return f"did you mean --set {key}={value or 'VALUE'}?"
    if option not in known:
        option = nearest(name, known) or ""
    return f"did you mean {option}?" if option else ""


def _discard(stream: TextIO) -> None:
    """Redirect an unwritable stream to nowhere, since Python would report its error on exit."""
    with suppress(OSError):  # no descriptor may be available
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _print_problems(*problems: str) -> None:
    """Print each problem as one line on stderr, with control characters escaped."""
    rank = os.environ.get("RANK", "0")
    if rank == "0":
        name = "seqtrain"
    else:
        name = f"seqtrain: rank {printable(rank)}"
    try:
        for problem in problems:
            print(f"{name}: {printable(problem)}", file=sys.stderr)
    except OSError:
        _discard(sys.stderr)
