"""Options that several commands have, and checks of options."""

import re
from pathlib import Path
from typing import Any, Literal, TypeAlias

import typer

from seqtrain.errors import ConfigError
from seqtrain.text import quote


def option(
    help: str, metavar: str | None = None, *names: str, default: Any = None, **limits: Any
) -> Any:
    """Return a Typer option that takes a value.

    Args:
        help: Help text.
        metavar: Placeholder of the value in the help.
        names: Names of the option; by default the name of its parameter.
        default: Value if the option is left out.
        limits: Further arguments of typer.Option, such as min and max.
    """
    return typer.Option(default, *names, metavar=metavar, help=help, **limits)


def argument(help: str, metavar: str, default: Any = ...) -> Any:
    """Return a positional argument of Typer, which is required if it has no default.

    `metavar` is its placeholder in the help.
    """
    return typer.Argument(default, metavar=metavar, help=help)


def flag(help: str, *names: str) -> Any:
    """Return a Typer option without a value, which is False unless it is given."""
    return typer.Option(False, *names, help=help)


def _check_device(name: str | None) -> str | None:
    """Return `name` after checking that it is spelled like a device, without torch.

    The device may be missing on this machine.

    Raises:
        ConfigError: If the name isn't spelled like a device.
    """
    if name is not None and not re.fullmatch("auto|cpu|mps|cuda(:[0-9]{1,3})?", name):
        raise ConfigError(f"--device: found {quote(name)}; expected auto, cpu, cuda, mps or cuda:N")
    return name


def complete_override(incomplete: str) -> list[str]:
    """Return completions for the value of `--set`.

    Before an "=", each is ``KEY=``. After it, each is ``KEY=VALUE``. There are none if the key is
    unknown or takes any value.
    """
    from seqtrain.config.messages import allowed_words
    from seqtrain.config.schema import KEYS, SECTIONS, Config

    keys = [key for key in KEYS if key not in SECTIONS]
    key, equals, value = incomplete.partition("=")
    if not equals:
        return [f"{name}=" for name in keys if name.startswith(key)]
    if key in keys:
        words = allowed_words(tuple(key.split(".")), Config)
    else:
        words = []
    return [f"{key}={word}" for word in words if word.startswith(value)]


SplitName: TypeAlias = Literal["test", "validation", "train"] | None
Delimiter: TypeAlias = Literal["comma", "semicolon", "tab", "pipe"] | None

CONFIG_FILE = argument("YAML file of the run.", "CONFIG")
OVERRIDES = option(
    "Set a key of the config, such as training.lr=3e-4. Can be repeated.",
    "SECTION.KEY=VALUE",
    "--set",
    autocompletion=complete_override,
)
DEVICE = option(
    "Device to compute on: cpu, cuda, cuda:N, mps, or auto (cuda, else mps, else cpu).",
    "DEVICE",
    callback=_check_device,
    default="auto",
)
TRAIN_DEVICE = option(
    "Device to train on: cpu, cuda, cuda:N, mps, or auto. Default: training.device of CONFIG.",
    "DEVICE",
    callback=_check_device,
)
RUN = argument(
    "Run directory, as fit writes it, or a folder best/ of one. Default: the newest run in runs/.",
    "RUN",
    None,
)
RUN_OPTION = option("The same as the argument RUN.", "RUN", "--run")
SPLIT = option("Split of the data to use. Default: test, or validation if there is no test.")
DATA = option("Labelled file to use instead of a split.", "FILE")
STEPS_FLAG = flag("Also score predictions after 10 %, 20 % … of each sequence.", "--steps")
DELIMITER = option("Separator of columns in a csv file. Default: detected.")
DEFAULT_TOP = 20
TOP_OPTION = option(
    f"Number of rows to show. Default: {DEFAULT_TOP} in a table, all in JSON.", "N", min=0
)
AS_JSON = flag("Print the whole result as one JSON object.", "--json")
QUIET = flag("Show warnings only.", "--quiet", "-q")
FORCE = flag("Replace an existing file.", "--force")


def chosen_run(run: str | None, named: str | None = None) -> str:
    """Return the path of the run that a command uses.

    By default it is the newest run that has a model. If the newest run has no model yet, a note on
    stderr names it.

    Args:
        run: Argument RUN, or None.
        named: Option --run, or None.

    Raises:
        ConfigError: If both are given.
        CheckpointError: If there is no such run.
    """
    if run is not None and named is not None:
        raise ConfigError(f"--run: the argument RUN names a run already ({run}); give one of them")
    from seqtrain.runs.run_directory import find, newest_trained

    name = run if run is not None else named
    if name is not None:
        return str(find(Path(name)).path)
    from seqtrain.cli.screens.console import note

    path, newer = newest_trained()
    if newer:
        others = f" and {len(newer) - 1} more" if len(newer) > 1 else ""
        note(f"newer, but without a model yet: {newer[0]}{others}")
    return str(path)
