"""Text of the config that `seqtrain init` writes: settings with comments, and a head."""

import os
from collections.abc import Iterable, Iterator, Mapping
from shlex import join
from typing import Any

import numpy as np

from seqtrain.config import Config, parse_config, values_by_key
from seqtrain.config.document import flow
from seqtrain.config.schema import DataConfig
from seqtrain.files.formats import names_of
from seqtrain.proposal.choices import Choice, choices
from seqtrain.proposal.data_profile import DataProfile
from seqtrain.proposal.options import COLUMN_OPTIONS, InitOptions
from seqtrain.proposal.split_files import Splits
from seqtrain.sequences.readers.file_source import holds_whole_files
from seqtrain.sequences.splits import hold_out
from seqtrain.text import listed, printable, quote, shorten

COMMENT_COLUMN = 44
SHOWN_LABELS = 6
RARE = 5
"""Number of rows of a class below which a comment at the end counts the class."""
TABLE_KEYS = ("data.steps", "data.static")
"""Keys whose mapping is written on several lines."""


def write_config(
    splits: Splits, rows: Mapping[str, int], profile: DataProfile, options: InitOptions
) -> tuple[str, Config]:
    """Return the proposed config, first as YAML text with comments, then parsed.

    Settings that the user gave with `--set` replace the proposed settings.

    Args:
        splits: Maps each split to its value in the config. It has train and validation, and test if
            there are test files.
        rows: Maps each split that has files to its number of rows.
        profile: Profile of train.
        options: Options of the user.

    Raises:
        ConfigError: If a setting of the user isn't valid.
    """
    ours = [
        *_file_choices(splits, rows, profile),
        *_column_choices(profile),
        *choices(profile, splits["validation"], options),
    ]
    config = parse_config("\n".join(_lines(ours)), "the proposed config", options.settings)
    # A key that only refines another one is reset if the user's settings remove that one.
    found = {choice.key: choice for choice in ours if config.value(choice.key) == choice.value}
    for setting in options.settings:
        named = setting.partition("=")[0].strip() + "."
        for key, value in values_by_key(config).items():
            if named.startswith(f"{key}.") or f"{key}.".startswith(named):
                found[key] = Choice(key, value, f"--set {shorten(setting, 60)}")
    median, most, longest = profile.lengths
    largest, smallest = max(profile.classes.values()), min(profile.classes.values())
    head = [
        f"# Written by: {command_line(splits, options)}",
        f"# lengths in time steps: median {median:,}, 95 % {most:,}, longest {longest:,}",
        f"# rows per class: {smallest:,}" + (f" to {largest:,}" if smallest < largest else ""),
    ]
    rare = [shorten(name, 80) for name, count in profile.classes.items() if count < RARE]
    notes = [f"# Classes with fewer than {RARE} rows: {len(rare)}, such as {x}." for x in rare[:1]]
    return "\n".join([*head, *_lines(found.values()), *notes, ""]), config


def command_line(splits: Splits, options: InitOptions) -> str:
    """Return the `seqtrain init` command that proposes this config again, quoted for a shell.

    Control characters are escaped by `printable`, so that the command is one line.
    """
    words = ["seqtrain", "init", *names_of(splits["train"])]
    words += names_of(splits.get("validation"))
    for option in (name for name in COLUMN_OPTIONS if name in options.options):
        for column in options.named(option):
            words += [f"--{option}", str(column)]
    if "header" in options.given:
        words.append("--header" if options.get("header") else "--no-header")
    for option in ("format", "delimiter", "encoding"):
        words += [f"--{option}", options.get(option)] if option in options.given else []
    for name in names_of(splits.get("test")):
        words += ["--test", name]
    for setting in options.settings:
        words += ["--set", setting]
    return printable(join(words))


def shown_labels(profile: DataProfile) -> str:
    """Return the `SHOWN_LABELS` most frequent labels as text, such as "a, b and 3 more".

    A label is cut to 30 characters.
    """
    names = [name for name, _ in profile.classes.most_common()]
    shown = [quote(x, 30) if x != x.strip() else shorten(x, 30) for x in names[:SHOWN_LABELS]]
    return listed([*shown, *names[SHOWN_LABELS:]], SHOWN_LABELS)


def _file_choices(
    splits: Splits, rows: Mapping[str, int], profile: DataProfile
) -> Iterator[Choice]:
    """Yield the settings data.train, data.validation and, if there are test files, data.test.

    Args:
        splits: Maps each split to its value in the config.
        rows: Maps each split that has files to its number of rows.
        profile: Profile of train.
    """
    unit = "sequences" if profile.schema.id is not None else "rows"
    about = "about " if profile.scale > 1 else ""
    found = f"{about}{profile.total_rows:,} {unit}, {len(profile.classes)} classes"
    folder, validation = names_of(splits["train"])[0], splits["validation"]
    if os.path.isdir(folder) and profile.format.name == "txt":
        is_whole = holds_whole_files(folder)
        found += ": a folder each, a row per file" if is_whole else ": a file each, a row per line"
    yield Choice("data.train", splits["train"], found)
    reason = "there are few rows, so all of them are learned"
    if isinstance(validation, float):
        held_out = round(validation * profile.total_rows)
        if not profile.multi_label and profile.scale == 1:
            counts = [*profile.classes.values()]
            labels = np.repeat(np.arange(len(counts)), counts)
            held_out = len(hold_out(labels, {"validation": validation}, seed=0)["validation"])
        reason = f"{about}{held_out:,} {unit} of train choose the best epoch"
    elif validation is not None:
        reason = f"{rows['validation']:,} {unit} choose the best epoch"
    yield Choice("data.validation", validation, reason)
    if "test" in splits:
        reason = f"{rows['test']:,} {unit}, scored once at the end"
        yield Choice("data.test", splits["test"], reason)


def _column_choices(profile: DataProfile) -> Iterator[Choice]:
    """Yield the settings of the data section that tell how rows are read.

    Settings that have the default value are left out.
    """
    format, schema = profile.format, profile.schema
    dropped = profile.unlabelled + profile.unreadable
    is_series = schema.kind == "features"
    label = f"column of the label: {shown_labels(profile)}"
    if schema.one_hot:
        label = "columns that mark a label each"
    if flow(schema.label).startswith('"'):
        label += " (in quotes, as YAML could read it as another value)"
    format_reasons = {"fasttext": "each line begins with __label__", "tsv": "columns between tabs"}
    is_made_of = "time steps are numbers" if is_series else "a sequence is a list of symbols"
    bad_rows = f"{profile.unlabelled:,} rows have a blank label"
    if profile.unreadable:
        bad_rows += f", {profile.unreadable:,} can't be read"
    values: list[tuple[str, Any, str]] = [
        (
            "format",
            "auto" if format.by_name else format.name,
            format_reasons.get(format.name, "--format"),
        ),
        ("delimiter", format.delimiter, "separates the columns"),
        ("encoding", format.encoding, "UTF-8 is read, too"),
        ("decimal", format.decimal, "numbers have a decimal comma"),
        ("sequence", schema.sequence, _sequence_reason(profile)),
        ("id", schema.id, "the rows of one value are a sequence"),
        ("order", schema.order, "sorts them"),
        ("steps", schema.steps, "columns of a time step"),
        ("static", schema.static, "columns with one value per sequence"),
        ("label", schema.one_hot or schema.label, label),
        ("label_separator", schema.label_separator, "a row can have several labels, or none"),
        ("kind", schema.kind if schema.kind in ("features", "tokens") else "auto", is_made_of),
        ("empty", "drop" if profile.empty else "error", f"{profile.empty:,} rows have no sequence"),
        ("bad_rows", "drop" if dropped else "error", bad_rows),
    ]
    for key, value, reason in values:
        if value != DataConfig.model_fields[key].default:
            yield Choice(f"data.{key}", value, reason)


def _sequence_reason(profile: DataProfile) -> str:
    if not isinstance(profile.schema.sequence, list):
        return "column of the sequence"
    is_series = profile.schema.kind == "features"
    return "its channels or time steps" if is_series else "the texts of these columns, joined"


def _lines(found: Iterable[Choice]) -> Iterator[str]:
    """Yield the lines of a YAML config with a comment per setting, grouped by section."""
    sections: dict[str, list[Choice]] = {}
    for choice in found:
        sections.setdefault(choice.key.rpartition(".")[0], []).append(choice)
    for section, members in sections.items():
        if section:
            yield f"{section}:"
        for choice in members:
            items = choice.value if choice.key in TABLE_KEYS and choice.value else {}
            key, value = choice.key.rpartition(".")[2], "" if items else flow(choice.value)
            line = f"{'  ' if section else ''}{key}: {value}"
            yield f"{line:<{COMMENT_COLUMN}} # {choice.why}"
            for column, kind in items.items():
                yield f"    {flow(column)}: {flow(kind)}"
