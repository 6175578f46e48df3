"""The program: gathers the commands, and turns every ending into its exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Annotated, TextIO

import typer

from seqtrain import __version__
from seqtrain.cli.commands import (
    check,
    compare,
    config,
    data,
    diff,
    errors,
    evaluate,
    export,
    fit,
    init,
    predict,
    reconstruct,
    report,
    runs,
    tune,
)
from seqtrain.cli.usage import UsageError, usage_problem
from seqtrain.errors import MACHINE_FAULTS, REFUSALS, SeqtrainError, ran_out_of_memory
from seqtrain.signals import (
    INTERRUPTED,
    code_of_signal,
    ended_by_second_interrupt,
    ended_by_signals,
)
from seqtrain.text import one_line, printable

app = typer.Typer(
    name="seqtrain",
    help="Train, measure and use classifiers of variable-length sequences.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("init")(init.init)
app.command("data")(data.data)
app.command("fit")(fit.fit)
app.command("tune")(tune.tune)
app.command("eval")(evaluate.evaluate)
app.command("errors")(errors.errors)
app.command("predict")(predict.predict)
app.command("report")(report.report)
app.command("diff")(diff.diff)
app.command("runs")(runs.runs)
app.command("reconstruct")(reconstruct.reconstruct)
app.command("export")(export.export)
app.command("check")(check.check)
app.command("compare")(compare.compare)
app.command("config")(config.config)

BUG, BAD_USAGE, RUN_FAULT, CLOSED_PIPE = 1, 2, 3, 141


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"seqtrain {__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback where the program fails by a bug.")
    ] = False,
) -> None:
    """Train, measure and use classifiers of variable-length sequences."""


def run(arguments: list[str] | None = None) -> None:
    """Run the program and exit with its code (contract: 0, 1, 2, 3, 128 + signal)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    # Read when torch is loaded. Waiting threads that spin long make a small batch many times slower
    # where other programs need the processor too; not to spin at all, a third where none do.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Results are UTF-8 whatever the locale; a file's name leaves with the bytes it has.
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    with ended_by_signals(), ended_by_second_interrupt():
        sys.exit(_exit_code(arguments or ["--help"]))


@cache
def program() -> Callable[..., object]:
    """Make what runs the commands, once: Typer itself would make it anew for every run."""
    return typer.main.get_command(app)


def _exit_code(arguments: list[str]) -> int:
    """Run a verb; whatever ends it becomes lines on stderr and a code."""
    if sys.stdout is None:
        _complain("standard output is closed; nothing can be answered")
        return RUN_FAULT
    try:
        code = program()(arguments, prog_name="seqtrain", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # Typer's answer to SIGINT
            _complain("interrupted")
        return code if isinstance(code, int) else 0
    except SeqtrainError as error:
        bad_input = error.exit_code == BAD_USAGE
        problems = () if error.told else error.problems
        _complain(*(one_line(problem) if bad_input else problem for problem in problems))
        return error.exit_code
    except UsageError as error:
        _complain(one_line(usage_problem(error)))
        return BAD_USAGE
    except typer.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        _abandon(sys.stdout)
        return CLOSED_PIPE
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        _abandon(sys.stdout)  # Typer answers a closed pipe with exit code 1
        return CLOSED_PIPE
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted")
        return INTERRUPTED
    except Exception as error:
        if ran_out_of_memory(error):
            _complain(
                f"memory ran out ({one_line(str(error) or 'an object could not be made')}); what "
                "was saved stays valid; try smaller data, a smaller model, or OMP_NUM_THREADS=1"
            )
            return RUN_FAULT
        ended = code_of_signal(error)
        if ended is not None:
            return ended
        if isinstance(error, OSError) and error.errno in MACHINE_FAULTS:
            _abandon(sys.stdout)
            _complain(f"{error.filename or 'standard output'}: {error.strerror}")
            return RUN_FAULT
        refusal = _refusal(error)
        if refusal:
            _complain(one_line(refusal))
            return BAD_USAGE
        if "--debug" in arguments:
            raise
        _complain(
            f"bug: {type(error).__name__}: {error}; please report it with the output of: "
            f"seqtrain --debug {' '.join(arguments)}"
        )
        return BUG


def _refusal(error: Exception) -> str | None:
    """Word the system's refusal of a path that was given; None where it is another error."""
    if isinstance(error, FileNotFoundError):
        try:
            os.getcwd()
        except FileNotFoundError:
            return "the current directory was deleted; change to one that exists"
    if isinstance(error, OSError) and error.errno in REFUSALS and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return None


def _abandon(stream: TextIO) -> None:
    """Let what can't be written go elsewhere: Python would complain again while closing."""
    with suppress(OSError):  # no descriptor may be left
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(*problems: str) -> None:
    """Print each problem as one line on stderr, control characters escaped, if anyone reads it."""
    alone = os.environ.get("WORLD_SIZE", "1") == "1"
    rank = "0" if alone else os.environ.get("RANK", "0")
    who = "seqtrain" if rank == "0" else f"seqtrain: rank {printable(rank)}"
    try:
        for problem in problems:
            print(f"{who}: {printable(problem)}", file=sys.stderr)
    except OSError:
        _abandon(sys.stderr)
