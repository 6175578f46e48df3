"""Proposal of `seqtrain init`: the text of a config for data files, and notes for the user."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from shlex import join
from typing import Any

from seqtrain.config import Config
from seqtrain.errors import DataError
from seqtrain.proposal.choices import should_hold_out
from seqtrain.proposal.config_text import shown_labels, write_config
from seqtrain.proposal.data_profile import DataProfile
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.reading_progress import ReadingProgress
from seqtrain.proposal.split_files import Splits, assign_splits, check_labels
from seqtrain.proposal.tables import inspect
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.read_options import Column
from seqtrain.sequences.readers import read_rows
from seqtrain.sequences.sources import files_of, source_of
from seqtrain.sequences.summary import label_doubts, number_doubts, static_doubts
from seqtrain.text import counted, listed

TRIED_ROWS, TRIED_IDS = 4096, 1000
"""With fewer rows, or ids of a table of time steps, `propose` also prepares the data as `fit` does.

If this fails, and `propose` itself chose the validation, it tries again without validation.
"""
FIRST_ROWS = 20
"""Number of first rows of a test file that are searched for labels."""
FEW_PER_CLASS = 30
"""Rows per class below which a warning says that the accuracy is uncertain."""
KIND_NAMES = {"text": "text", "tokens": "symbols", "features": "series", "steps": "a time step"}
HELD_OUT = ((1000, 0.2), (100_000, 0.1), (math.inf, 0.02))
"""Pairs: below this number of rows, this fraction of train is held out. The first match counts."""


@dataclass(frozen=True)
class Proposal:
    """A config that `fit` accepts unchanged, and notes for the user.

    Attributes:
        text: The config, as YAML with comments.
        uses: Lines that say how columns and rows are used or why they are left out.
        warnings: One line per doubt about the data or the config.
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
    """Inspect data files and return a config for them.

    Large training files are only sampled. If there are few rows (`TRIED_ROWS`), the data is also
    prepared as `fit` does, to find problems. A test file without labels isn't used. The proposal
    then has a warning.

    Args:
        files: Data files, or one folder. The folder holds the files, or is the training data
            itself. Files are for training, unless a name such as `dev.csv` or `test.csv` tells
            another split. Files of one split must have names that differ only in numbers, such as
            `part-1.csv`.
        options: Options of the user about the files.
        test: Test file, or None to recognize it by its name.
        progress: Called with a line of text during steps that take more than a second. None
            reports nothing.

    Raises:
        ConfigError: If a setting of the user isn't valid.
        DataError: If a file can't be read, or if the data is ambiguous without a further option.
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
    if profile.total_rows < (TRIED_ROWS if profile.schema.steps is None else TRIED_IDS):
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
    uses = [*_uses(profile, config.data.order)]
    return Proposal(text, uses, [*warnings, *_trust(profile, rows, config)])


def _drop_unlabelled_test(splits: Splits, profile: DataProfile) -> list[str]:
    """Remove "test" from the splits if the first rows of the test file have no labels.

    Only the first `FIRST_ROWS` rows of the first test file are read. If one of them can't be read,
    the split is kept.

    Returns:
        A list with a warning about the removed file, or an empty list.
    """
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
    """Read the files of validation or test, and return the number of labelled rows among them.

    Only the rows that were read of a large file are counted. The numbers of empty, unlabelled and
    unreadable rows are added to `profile`. `profile.missing` is set if the files have missing
    values.

    Raises:
        DataError: If a file can't be read. Also if a row can't be read, and the user's settings
            don't drop such rows.
    """
    other = profile.count_files(files, reading, drop_bad_rows=options.drops_bad_rows)
    profile.empty += other.empty
    profile.unlabelled += other.unlabelled
    profile.unreadable += other.unreadable
    profile.missing |= other.missing
    return other.rows + other.empty


def _step_kind(kind: str | dict[str, Any]) -> str:
    """Return the type of a step column as text, such as "number" or "number by COLUMN".

    Args:
        kind: The type, or a dictionary such as {"number": True, "by": COLUMN}.
    """
    if isinstance(kind, str):
        return kind
    name, *options = kind
    return " ".join([name, *(f"{option} {kind[option]}" for option in options)])


def _uses(profile: DataProfile, order: Column | None) -> Iterator[str]:
    """Yield the lines of `Proposal.uses`.

    They are about the sequence and the label, row features, ignored columns, and rows left out.

    Args:
        profile: The data that was inspected.
        order: Column that sorts the rows of one id in the proposed config, or None.
    """
    schema = profile.schema
    used = KIND_NAMES[schema.kind]
    if profile.channels > 1 and schema.kind == "features":
        used += f" of {profile.channels} channels"
    if schema.steps is not None:
        columns = [f"{name} ({_step_kind(kind)})" for name, kind in schema.steps.items()]
        sorted_by = f", by {order}" if order is not None else ""
        used += f" = {listed(columns, 8)}; a sequence = the rows of one {schema.id}{sorted_by}"
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
    """Yield a line about a sample if not all rows were read, and lines about rows left out.

    Rows are left out if they have a blank label or can't be read.
    """
    if profile.note:
        yield profile.note
    if profile.unlabelled:
        yield f"{counted(profile.unlabelled, 'row')} with a blank label left out"
    if profile.unreadable:
        yield f"{counted(profile.unreadable, 'row')} that can't be read left out"


def _shared_owner(profile: DataProfile, config: Config) -> Iterator[str]:
    """Yield a warning if a random split can divide the rows of one owner, such as a customer.

    There is no warning if data.group is set, or if no fraction of train is held out.
    """
    is_divided = isinstance(config.data.validation, float) or isinstance(config.data.test, float)
    if profile.owner is None or not is_divided or config.data.group is not None:
        return
    name = profile.owner
    yield (
        f"rows with the same {name!r} are in train and among the held-out rows, so scores may be "
        f"too good for a new {name}; {join(['--set', f'data.group={name}'])} keeps them together"
    )


def _trust(profile: DataProfile, rows: Mapping[str, int], config: Config) -> Iterator[str]:
    """Yield a warning that the accuracy is uncertain, if there are few rows per class.

    Rows are few if train has fewer than `FEW_PER_CLASS` of them per class, on average.

    Args:
        profile: Profile of train.
        rows: Maps each split that has files to its number of rows.
        config: The proposed config.
    """
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
