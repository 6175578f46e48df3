"""Text of the config that `seqtrain init` writes: settings with comments, and a head."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from seqtrain.config import Config, config_from_mapping, values_by_key
from seqtrain.config.document import flow, resolve_scalar
from seqtrain.config.schema import KEYS, DataConfig
from seqtrain.proposal.facts import Facts, symbol_mark
from seqtrain.proposal.options import InitOptions, Splits
from seqtrain.proposal.roles import Roles
from seqtrain.proposal.settings import Setting, Settings
from seqtrain.proposal.table import Table
from seqtrain.sequences.inspection import RARE
from seqtrain.tables.blocks import FILE, LABEL, REST
from seqtrain.tables.formats import resolve_format
from seqtrain.text import counted, listed, quote, shorten

COMMENT_COLUMN = 44
SHOWN_LABELS = 6
GROWTH = "growth of the order since the step before"
"""Meaning of the kind `order` of a column of time steps."""
TABLE_KEYS = ("data.steps", "data.static")
"""Keys whose mapping is written on several lines."""
FORMAT_REASONS = {
    "fasttext": "each line begins with __label__",
    "lines": "a sequence per line",
    "tsv": "columns between tabs",
}
"""Reasons for a format that the name of the file doesn't tell."""


def write_config(
    settings: Settings, comments: list[str], options: InitOptions
) -> tuple[str, Config, Settings]:
    """Return the proposed config: as YAML text with comments, parsed, and its settings.

    Settings that the user gave with `--set` replace the proposed settings.

    Args:
        settings: The proposed settings.
        comments: Lines at the beginning.
        options: Options of the user.

    Raises:
        ConfigError: If a setting of the user isn't valid.
    """
    config = config_from_mapping(_by_section(settings), options.settings)
    # A key that only refines another one is reset if the user's settings remove that one.
    found = {key: x for key, x in settings.items() if config.value(key) == x.value}
    for text in options.settings:
        named = text.partition("=")[0].strip() + "."
        for key, value in values_by_key(config).items():
            if named.startswith(f"{key}.") or f"{key}.".startswith(named):
                found[key] = Setting(value, f"--set {shorten(text, 60)}")
    head = [f"# {comment}" for comment in comments]
    return "\n".join([*head, *_lines(found), ""]), config, found


def _by_section(settings: Settings) -> dict[str, Any]:
    """Return the values of settings as nested dicts, by section and key."""
    values: dict[str, Any] = {}
    for key, setting in settings.items():
        section, _, name = key.rpartition(".")
        place = values.setdefault(section, {}) if section else values
        place[name] = setting.value
    return values


def comments_of(command: str, facts: Facts) -> list[str]:
    """Return the lines at the beginning: the command, the lengths, and the sizes of classes."""
    median, most, longest = facts.lengths
    largest, smallest = max(facts.classes.values()), min(facts.classes.values())
    sizes = f"{smallest:,}" + (f" to {largest:,}" if smallest < largest else "")
    lines = [
        f"Written by: {command}",
        f"lengths in time steps: median {median:,}, 95 % {most:,}, longest {longest:,}",
        f"rows per class: {sizes}",
    ]
    rare = [shorten(name, 80) for name, count in facts.classes.items() if count < RARE]
    if rare:
        lines.append(f"classes with fewer than {RARE} rows: {len(rare)}, such as {rare[0]}")
    return lines


def shown_labels(facts: Facts) -> str:
    """Return labels as text, such as "a, b and 3 more", each cut to 30.

    The most frequent ones come first, but classes that are positions are in their order.
    """
    names = [name for name, _ in facts.classes.most_common()]
    if facts.positions is not None:
        names.sort(key=int)
    shown = [quote(x, 30) if x != x.strip() else shorten(x, 30) for x in names[:SHOWN_LABELS]]
    return listed([*shown, *names[SHOWN_LABELS:]], SHOWN_LABELS)


def split_settings(
    splits: Splits, rows: Mapping[str, int], table: Table, roles: Roles, facts: Facts
) -> Settings:
    """Return the settings data.train, data.validation and, if there are test files, data.test.

    Args:
        splits: Maps each split to its value in the config.
        rows: Maps each split to its number of rows, as far as it is known.
        table: The files of train.
        roles: Roles of the columns.
        facts: Facts about train.
    """
    if roles.id is None:
        unit = "rows"
    elif roles.window is None:
        unit = "sequences"
    else:
        unit = "windows"
    found = f"{facts.rows:,} {unit}, {len(facts.classes)} classes"
    is_whole = table.has_whole_files
    if table.layout.pattern and table.format == "txt":
        found += ": a row per file" if is_whole else ": a row per line"
    elif os.path.isdir(table.path) and table.format == "txt":
        found += ": a folder each, a row per file" if is_whole else ": a file each, a row per line"
    settings = {"data.train": Setting(splits["train"], found)}
    validation = splits["validation"]
    if validation is None:
        reason = "too few rows to hold some out: all of them are learned"
    elif "validation" in rows:
        origin = " of train" if isinstance(validation, float) else ""
        reason = f"{rows['validation']:,} {unit}{origin} choose the best epoch"
    elif isinstance(validation, float):
        about = f"about {validation * facts.rows:,.0f} {unit} of train"
        reason = f"{about}, with whole groups and all equal {unit}, choose the best epoch"
    else:
        reason = "a fold of train chooses the best epoch"
    settings["data.validation"] = Setting(validation, reason)
    if "test" in splits:
        reason = f"{rows['test']:,} {unit}, scored once at the end"
        settings["data.test"] = Setting(splits["test"], reason)
    return settings


def column_settings(table: Table, roles: Roles, facts: Facts) -> Settings:
    """Return the settings of the data section that tell how rows are read.

    Settings that have the default value are left out.
    """
    layout, dialect = table.layout, table.dialect
    if roles.kind in ("features", "tokens") and not roles.steps:
        kind = roles.kind
    else:
        kind = "auto"
    is_rest = any(column.name == REST for column in roles.sequence)
    # Keys of data.steps are texts, so that an index there isn't told from a name.
    has_index = roles.id is not None and isinstance(roles.id.parts[0].name, int)
    # The name of a joined column, or of a part of a path such as file, tells nothing about the
    # table's own names.
    is_headless = (is_rest and not table.header) or has_index
    has_names = roles.id is not None or layout.joins or layout.pattern
    is_headless |= table.header is False and bool(has_names)
    if facts.unlabelled:
        bad = [f"{counted(facts.unlabelled, 'row')} with a blank label"]
    else:
        bad = []
    if facts.unreadable:
        bad.append(f"{facts.unreadable:,} can't be read")
    values: dict[str, tuple[Any, str]] = {
        "format": _format(table),
        "header": (False if is_headless else "auto", "the first row is data"),
        "delimiter": (layout.options.get("delimiter"), "separates the columns"),
        "quoting": (
            "standard" if dialect.format == "tsv" and dialect.quotes else "auto",
            "cells may be in quotes, as in csv",
        ),
        "encoding": (dialect.encoding, "UTF-8 is read, too"),
        "decimal": ("," if _has_decimal_commas(roles) else ".", "numbers have a decimal comma"),
        "path": (layout.pattern, "parts of the names of files are columns"),
        "join": (list(layout.joins) or None, "columns of another file"),
        "sequence": _sequence(roles),
        "id": _id(table, roles),
        "order": (roles.order.name, "sorts the rows of a sequence"),
        "window": (roles.window, roles.reasons.get("window", "")),
        "steps": (roles.steps or None, "columns of a time step"),
        "static": (roles.static or None, "columns with one value per sequence"),
        "units": (roles.units or None, "written with the numbers"),
        "label": _label(roles, facts),
        "label_separator": (facts.separator, "a row can have several labels, or none"),
        "group": (
            roles.group and roles.group.name,
            "the rows of one value stay on one side of a split",
        ),
        "kind": (kind, "time steps are numbers" if kind == "features" else "a list of symbols"),
        "symbol_separator": (symbol_mark(roles), "between the symbols of a cell"),
        "empty": (
            "drop" if facts.empty else "error",
            f"{counted(facts.empty, 'row')} without a sequence",
        ),
        "bad_rows": ("drop" if bad else "error", ", ".join(bad)),
    }
    settings: Settings = {}
    for key, (value, reason) in values.items():
        if value is not None and value != DataConfig.model_fields[key].default:
            settings[f"data.{key}"] = Setting(value, reason)
    return settings


def _format(table: Table) -> tuple[str, str]:
    """Return the value of data.format, and its reason if the name of the files doesn't tell it."""
    format = table.format
    if format == resolve_format(table.path, "auto"):
        return "auto", ""
    if os.path.isdir(table.path):
        return format, "format of the files of the folder"
    reason = FORMAT_REASONS.get(format, "form of its lines")
    return "txt" if format == "lines" else format, reason  # joined labels


def _has_decimal_commas(roles: Roles) -> bool:
    if roles.kind == "features":
        columns = roles.sequence
    else:
        columns = roles.numbers_and_order()
    return any(column.has_decimal_commas for column in columns)


def _sequence(roles: Roles) -> tuple[Any, str]:
    """Return the value of data.sequence, and its reason."""
    is_step = roles.id is not None and not roles.sequence
    if is_step or roles.all_others or not roles.has_names:
        return None, ""
    if roles.id is not None:
        names = [column.name for column in roles.sequence]
        return (names if len(names) > 1 else names[0]), "the text of a turn; a row is a turn"
    if roles.steps:
        return roles.sequence[0].name, "lists of objects; each object is a time step"
    if len(roles.sequence) == 1:
        return roles.sequence[0].name, "column of the sequence"
    reasons = {"features": "its channels or time steps", "tokens": "each column is a symbol"}
    reason = reasons.get(roles.kind, "the texts of these columns, joined")
    return [column.name for column in roles.sequence], reason


def _id(table: Table, roles: Roles) -> tuple[Any, str]:
    """Return the value of data.id, and its reason."""
    if roles.id is None:
        is_given = table.has_whole_files and table.options.named("id")
        return (FILE if is_given else None), "a file is a row, with all of its lines"
    if len(roles.id.parts) == 1:
        return roles.id.key, "the rows of one value are a sequence"
    return roles.id.key, "the rows with equal values in all of these are a sequence"


def _label(roles: Roles, facts: Facts) -> tuple[Any, str]:
    """Return the value of data.label, and its reason."""
    if roles.one_hot:
        return [column.name for column in roles.one_hot], "columns that mark a label each"
    if not roles.has_names and roles.label.name == LABEL:
        return None, ""
    reason = f"column of the label: {shown_labels(facts)}"
    if isinstance(roles.label.name, str) and resolve_scalar(roles.label.name) != roles.label.name:
        reason += " (in quotes, as YAML could read it as another value)"
    return roles.label.name, reason


def _lines(settings: Mapping[str, Setting]) -> Iterator[str]:
    """Yield the lines of a YAML config in the order of the schema, with a comment per setting."""
    last = ""
    for key in sorted(settings, key=KEYS.index):
        value, reason = settings[key]
        section, _, name = key.rpartition(".")
        if section != last:
            yield f"{section}:"
        last = section
        is_table = key in TABLE_KEYS and value
        line = f"{'  ' if section else ''}{name}: {'' if is_table else flow(value)}"
        yield f"{line:<{COMMENT_COLUMN}} # {reason}"
        for column, kind in value.items() if is_table else ():
            entry = f"    {flow(column)}: {flow(kind)}"
            if kind == "order":
                entry = f"{entry:<{COMMENT_COLUMN}} # {GROWTH}"
            yield entry
