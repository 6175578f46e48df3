"""The program: gathers the verbs, and turns every ending into its exit code."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from seqtrain import __version__
from seqtrain.cli import config, evaluate, fit, predict
from seqtrain.errors import SeqtrainError

app = typer.Typer(
    name="seqtrain",
    help="Train, measure and use classifiers of variable-length sequences.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("fit")(fit.fit)
app.command("eval")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("config")(config.config)

UsageError: type[typer.BadParameter] = typer.BadParameter.__bases__[0]
"""Typer's own base of usage errors: click's, or its copy of click's, by version."""
CLOSED_PIPE, INTERRUPTED, BUG, RUN_FAULT = 141, 130, 1, 3


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
    sys.exit(_exit_code(arguments))


def _exit_code(arguments: list[str]) -> int:
    """Run a verb; whatever ends it becomes lines on stderr and a code."""
    try:
        code = app(arguments, standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SeqtrainError as error:
        _complain(*error.problems)
        return error.exit_code
    except UsageError as error:
        _complain(f"{error.format_message()} Try: seqtrain --help")
        return 2
    except typer.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        # Python would complain again while closing stdout: give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted")
        return INTERRUPTED
    except OSError as error:
        _complain(f"{error.filename or 'standard output'}: {error.strerror}")
        return RUN_FAULT
    except Exception as error:
        if "--debug" in arguments:
            raise
        _complain(
            f"bug: {type(error).__name__}: {error}; please report it with the output of "
            f"seqtrain --debug {' '.join(arguments)}"
        )
        return BUG


def _complain(*problems: str) -> None:
    """Print each problem as one line on stderr, control characters escaped."""
    for problem in problems:
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in problem)
        print(f"seqtrain: {text}", file=sys.stderr)
