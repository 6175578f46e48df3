"""The proposal of `seqtrain init`: a config for data files, with what the user should know."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from shlex import join
from typing import Any

from seqtrain.config import Config
from seqtrain.data.dataset import prepare
from seqtrain.data.readers import read_rows
from seqtrain.data.sources import files_of, source_of
from seqtrain.data.summary import label_doubts, number_doubts, static_doubts
from seqtrain.errors import DataError
from seqtrain.proposal.choices import should_hold_out
from seqtrain.proposal.config_text import shown_labels, write_config
from seqtrain.proposal.data_profile import DataProfile
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.reading_progress import ReadingProgress
from seqtrain.proposal.split_files import Splits, assign_splits, check_labels
from seqtrain.proposal.tables import inspect
from seqtrain.text import counted, listed

TRIED_ROWS = 4096
"""With fewer rows the data is read as `fit` reads it. If that fails, no rows are held out."""
FIRST_ROWS = 20
"""Rows of a test file that show if it has labels."""
FEW_PER_CLASS = 30
"""Rows per class below which the accuracy has a wide interval."""
KIND_NAMES = {"text": "text", "tokens": "symbols", "features": "series", "steps": "a time step"}
HELD_OUT = ((1000, 0.2), (100_000, 0.1), (math.inf, 0.02))
"""Fraction of train that is held out for fewer rows than a limit."""


@dataclass(frozen=True)
class Proposal:
    """A config that `fit` accepts as it is, and what its user should know.

    Attributes:
        text: The config, as YAML with comments.
        uses: Use of each column, one line each.
        warnings: What may be wrong, one line each.
    """

    text: str
    uses: list[str]
    warnings: list[str]


def propose(
    files: Sequence[str],
    options: InitOptions,
    *,
    test: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Proposal:
    """Look at data files and write a config for them.

    Args:
        files: Train first, or files named such as `train.csv`, `dev.csv`, `test.csv`. Files whose
            names differ only in numbers, such as `part-1.csv`, belong together. Or a folder of
            these.
        options: What the user says about the files.
        test: File to score once at the end, or None to find it by its name.
        progress: Receives a line about each step that takes more than a second, or None.

    Raises:
        ConfigError: If the settings of the user are wrong.
        DataError: If a file can't be read, or if an option is needed to make something clear.
    """
    reading = ReadingProgress(progress)
    splits, warnings = assign_splits(files, test), list[str]()
    train = files_of("train", splits["train"])
    profile = inspect(train, options, reading)
    has_validation = "validation" in splits
    warnings += check_labels(train[0], profile, has_validation=has_validation)
    warnings += _drop_unlabelled_test(splits, profile)
    rows = {"train": profile.total_rows}
    for name in (name for name in splits if name != "train"):
        reading.step(f"reading {name}")
        rows[name] = _add_split(profile, files_of(name, splits[name]), options, reading)
    warnings += profile.warnings
    share = next(share for limit, share in HELD_OUT if profile.total_rows < limit)
    splits.setdefault("validation", share if should_hold_out(profile) else None)
    if "validation" in options.given:
        splits["validation"] = options.get("validation")
    text, config = write_config(splits, rows, profile, options)
    warnings += label_doubts(profile.classes, config, multi_label=profile.multi_label)
    if profile.total_rows < TRIED_ROWS:
        try:
            data = prepare(config, cache_folder=None)
        except DataError:
            if has_validation or "validation" in options.given:
                raise
            splits["validation"] = None
            text, config = write_config(splits, rows, profile, options)
            data = prepare(config, cache_folder=None)
        warnings += [*number_doubts(data), *static_doubts(data)]
    warnings += _shared_owner(profile, config)
    return Proposal(text, [*_uses(profile)], [*warnings, *_trust(profile, rows, config)])


def _drop_unlabelled_test(splits: Splits, profile: DataProfile) -> list[str]:
    """Remove a test file without labels from the splits, and return a warning about it."""
    for path in files_of("test", splits.get("test"))[:1]:
        source = source_of(path, profile.format, profile.schema)
        head = [*islice(read_rows(source, labelled=bool(profile.schema.one_hot)), FIRST_ROWS)]
        if head and not any(row.labels or row.problem for row in head):
            del splits["test"]
            return [f"{source.name} has no labels, so it isn't data.test; it is for predict"]
    return []


def _add_split(
    profile: DataProfile, files: Sequence[str], options: InitOptions, reading: ReadingProgress
) -> int:
    """Add what the rows of another split need to the profile, and return their number."""
    other = profile.count_files(files, reading, drop_bad_rows=options.drops_bad_rows)
    profile.empty += other.empty
    profile.unlabelled += other.unlabelled
    profile.unreadable += other.unreadable
    profile.missing |= other.missing
    return other.rows + other.empty


def _step_kind(kind: str | dict[str, Any]) -> str:
    """Return the type of a step column and its options in words: number by COLUMN."""
    if isinstance(kind, str):
        return kind
    name, *options = kind
    return " ".join([name, *(f"{option} {kind[option]}" for option in options)])


def _uses(profile: DataProfile) -> Iterator[str]:
    """Yield lines about the use of the columns and rows."""
    schema = profile.schema
    used = KIND_NAMES[schema.kind]
    if profile.channels > 1 and schema.kind == "features":
        used += f" of {profile.channels} channels"
    if schema.steps is not None:
        columns = [f"{name} ({_step_kind(kind)})" for name, kind in schema.steps.items()]
        order = f", by {schema.order}" if schema.order is not None else ""
        used += f" = {listed(columns, 8)}; a sequence = the rows of one {schema.id}{order}"
    elif schema.sequence is not None:
        used += f" = {listed([*map(str, schema.sequence_columns())], 4)}"
    elif schema.label_columns:
        used += " = all other columns, a time step each"
    classes = f"{len(profile.classes)} classes: {shown_labels(profile)}"
    label = None if schema.label is None else str(schema.label)
    if schema.one_hot:
        label = listed([*map(str, schema.one_hot)], 4)
    elif label is None and profile.format.name == "fasta":
        label = "the last word of each line of >"
    kind = "several labels per row" if profile.multi_label else "label"
    yield f"{used}, {classes}" if label is None else f"{used}, {kind} = {label} ({classes})"
    if schema.static:
        columns = [f"{name} ({kind})" for name, kind in schema.static.items()]
        yield f"row features = {listed(columns, 8)}"
    if profile.ignored:
        yield f"ignored: {listed(profile.ignored, 8)}"
    yield from _rows_left_out(profile)


def _rows_left_out(profile: DataProfile) -> Iterator[str]:
    """Yield lines about the rows that were not looked at or can't be used."""
    if profile.note:
        yield profile.note
    if profile.unlabelled:
        yield f"{counted(profile.unlabelled, 'row')} with a blank label left out"
    if profile.unreadable:
        yield f"{counted(profile.unreadable, 'row')} that can't be read left out"


def _shared_owner(profile: DataProfile, config: Config) -> Iterator[str]:
    """Yield a warning if rows of one owner, such as a customer, are on both sides of a split."""
    is_divided = isinstance(config.data.validation, float) or isinstance(config.data.test, float)
    if profile.owner is None or not is_divided or config.data.group is not None:
        return
    name = profile.owner
    yield (
        f"rows with the same {name!r} are in train and among the held-out rows, so scores may be "
        f"too good for a new {name}; {join(['--set', f'data.group={name}'])} keeps them together"
    )


def _trust(profile: DataProfile, rows: Mapping[str, int], config: Config) -> Iterator[str]:
    """Yield a warning about the uncertainty of the accuracy if rows are few."""
    share, few = config.data.validation, profile.total_rows / len(profile.classes)
    if few >= FEW_PER_CLASS:
        return
    held_out = rows.get("validation", 0)
    if isinstance(share, float):
        held_out = round(share * profile.total_rows)
    split, scored = ("test" if "test" in rows else "validation"), rows.get("test", held_out)
    if not scored:
        advice = "none are held out: seqtrain fit --folds 5 measures an accuracy"
        yield f"{few:.0f} rows per class are few, and {advice}"
        return
    points = 196 * math.sqrt(0.09 / scored)
    yield (
        f"{few:.0f} rows per class are few: an accuracy of 90 % on {counted(scored, 'row')} of "
        f"{split} would have an uncertainty of ± {points:.0f} points; fit --folds 5 scores all rows"
    )
