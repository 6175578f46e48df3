"""The config that `seqtrain init` writes: short, commented, and accepted by `fit`."""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from shlex import join
from typing import Any, TypeAlias

from seqtrain.config import Config, parse_config, values_by_key
from seqtrain.config.document import flow
from seqtrain.config.formats import names_of, resolve_format
from seqtrain.config.schema import DataConfig
from seqtrain.data.dataset import prepare
from seqtrain.data.readers import read_rows
from seqtrain.data.readers.folders import holds_whole_files
from seqtrain.data.sources import files_of, source_of
from seqtrain.data.summary import label_doubts, number_doubts, static_doubts
from seqtrain.errors import DataError
from seqtrain.proposal.choices import Choice, choices, should_hold_out
from seqtrain.proposal.columns import Wishes
from seqtrain.proposal.contents import Facts
from seqtrain.proposal.steps import PER_ID
from seqtrain.proposal.tables import inspect
from seqtrain.text import counted, display_name, listed, quote, shorten

Splits: TypeAlias = dict[str, Any]
"""What the config has for each split: files; the share of train that is held out; None."""
ROLES = {
    "validation": {"valid", "validation", "val", "dev"},
    "test": {"test"},
    "train": {"train", "training"},
}
"""What words in the names of files say of their split, looked for in this order."""
NUMBER = re.compile("[0-9]+")
TRIED_ROWS = 4096
"""With fewer rows the data is read as `fit` reads it; where that fails, no row is held out."""
MOST_ALONE = 2
"""Rows at most whose labels may all differ, where no file of validation is given."""
COMMENT_COLUMN = 44
SHOWN_LABELS = 6
FIRST_ROWS = 20
"""Rows of a test file that show whether it has labels."""
MOST_NUMBERED = 10
"""Classes at most whose files may have names that differ in numbers alone, as digits have."""
FEW_PER_CLASS = 30
"""Rows per class below which an accuracy is known badly."""
KINDS = {"text": "text", "tokens": "symbols", "features": "series", "steps": "a time step"}


@dataclass(frozen=True)
class Proposal:
    """A config that `fit` takes as it is, and what its user should know.

    Attributes:
        taken: which columns were taken for what, and which were left out, a line each.
        doubts: what may be wrong, a line each.
    """

    text: str
    taken: list[str]
    doubts: list[str]


def propose(files: Sequence[str], wishes: Wishes, *, test: str | None = None) -> Proposal:
    """Look at data files and write a config for them.

    Args:
        files: train first, or named such as `train.csv`, `dev.csv`, `test.csv`; those whose names
            differ in numbers alone, such as `part-1.csv`, belong together. Or a folder of these.
        wishes: what the user says of them.
        test: the file to score once at the end.

    Raises:
        DataError: a file can't be read, or something isn't clear and an option has to say it.
    """
    splits, doubts = _splits(files, test), list[str]()
    train = files_of("train", splits["train"])
    facts = inspect(train, wishes)
    doubts += _odd_labels(train[0], facts, alone="validation" not in splits)
    for path in files_of("test", splits.get("test"))[:1]:
        source = source_of(path, facts.format, facts.schema)
        head = [*islice(read_rows(source, labelled=False), FIRST_ROWS)]
        if head and not any(row.labels or row.problem for row in head):
            del splits["test"]
            unlabelled = f"{source.name} has no labels, so it isn't data.test"
            doubts.append(f"{unlabelled}; it is for predict")
    rows = {"train": facts.rows}
    for name in (name for name in splits if name != "train"):
        others = facts.of(files_of(name, splits[name]))
        rows[name] = others.rows + others.empty
        facts.empty += others.empty
        facts.unlabelled += others.unlabelled
        facts.missing |= others.missing
    doubts += [*facts.doubts, *label_doubts(facts.classes)]
    share = 0.2 if facts.rows < 1000 else 0.1 if facts.rows < 100_000 else 0.02
    splits.setdefault("validation", share if should_hold_out(facts) else None)
    text, config = _written(splits, rows, facts, wishes.settings)
    if facts.rows < TRIED_ROWS:
        try:
            data = prepare(config, cache_folder=None)
        except DataError:
            if splits["validation"] != share:
                raise
            splits["validation"] = None
            text, config = _written(splits, rows, facts, wishes.settings)
            data = prepare(config, cache_folder=None)
        doubts += [*number_doubts(data), *static_doubts(data)]
    return Proposal(text, [*_taken(facts)], [*doubts, *_trust(facts, rows, config)])


def _taken(facts: Facts) -> Iterator[str]:
    schema = facts.schema
    what = KINDS[schema.kind]
    if facts.channels > 1 and schema.kind == "features":
        what += f" of {facts.channels} channels"
    if schema.steps is not None:
        shown = [f"{name} ({read})" for name, read in schema.steps.items()]
        order = f", by {schema.order}" if schema.order is not None else ""
        what += f" = {listed(shown, 8)}; a sequence = the rows of one {schema.id}{order}"
    elif schema.sequence is not None:
        what += f" = {listed([*map(str, schema.sequence_columns())], 4)}"
    elif schema.label is not None:
        what += " = all other columns, a time step each"
    classes = f"{len(facts.classes)} classes: {_labels(facts)}"
    of_fasta = "the last word of each line of >" if facts.format.name == "fasta" else None
    label = of_fasta if schema.label is None else schema.label
    kind = "several labels per row" if facts.multi_label else "label"
    yield f"{what}, {classes}" if label is None else f"{what}, {kind} = {label} ({classes})"
    if facts.ignored:
        yield f"ignored: {listed(facts.ignored, 8)}"
    if any(PER_ID in each for each in facts.ignored):
        yield f"data.static can take what has {PER_ID}"
    if facts.unlabelled:
        yield f"{counted(facts.unlabelled, 'row')} with a blank label left out"


def _labels(facts: Facts) -> str:
    every = [name for name, _ in facts.classes.most_common()]
    names = [quote(x, 30) if x != x.strip() else shorten(x, 30) for x in every]
    return listed(names, SHOWN_LABELS)


def _trust(facts: Facts, rows: Mapping[str, int], config: Config) -> Iterator[str]:
    """Say of a small set how far its accuracy can be trusted."""
    share, few = config.data.validation, facts.rows / len(facts.classes)
    held_out = round(share * facts.rows) if isinstance(share, float) else rows.get("validation", 0)
    split, scored = "test" if "test" in rows else "validation", rows.get("test", held_out)
    if few >= FEW_PER_CLASS:
        return
    known = "and none are held out: seqtrain fit --folds 5 measures an accuracy"
    if scored:
        points = 196 * math.sqrt(0.09 / scored)
        known = (
            f"an accuracy of 90 % on {counted(scored, 'row')} of {split} would be known to "
            f"± {points:.0f} points; fit --folds 5 scores all rows"
        )
    yield f"{few:.0f} rows per class are few{': ' if scored else ', '}{known}"


def _splits(files: Sequence[str], test: str | None) -> Splits:
    found: dict[str, list[str]] = {} if test is None else {"test": [test]}
    if len(files) == 1 and os.path.isdir(files[0]):
        files = _splits_inside(files[0]) or files
    for path in files:
        role = _role(os.path.basename(path)) or "train"
        known = found.setdefault("train" if len(files) == 1 else role, [])
        if known and NUMBER.sub("0", known[0]) != NUMBER.sub("0", path):
            raise DataError(
                f"{role}: both {quote(known[0])} and {quote(path)} may be it; give the file to "
                "train on, name the others …validation… and …test…, or give --test FILE"
            )
        known.append(path)
    if "train" not in found:
        raise DataError("train: no file is named like it; give the file to train on first, alone")
    return {name: known if len(known) > 1 else known[0] for name, known in found.items()}


def _role(name: str) -> str | None:
    words = {*re.findall("[a-z]+", name.lower())}
    return next((role for role, known in ROLES.items() if words & known), None)


def _splits_inside(folder: str) -> list[str]:
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    paths = {name: os.path.join(folder, name) for name in names}
    folders = [name for name, path in paths.items() if os.path.isdir(path)]
    found = [x for x in names if (x in folders or resolve_format(x, "auto")) and _role(x)]
    is_split = ({*folders} <= {*found} and len(found) > 1) or "dataset_dict.json" in names
    return [paths[name] for name in found] if is_split and "train" in map(_role, found) else []


def _odd_labels(path: str, facts: Facts, *, alone: bool) -> Iterator[str]:
    """Doubt labels that name numbered files or, `alone`, each row; refuse them where it is sure."""
    name, labels = display_name(path), [*facts.classes]
    stems = {NUMBER.sub("", label) for label in labels}
    is_folder = facts.format.name == "txt" and os.path.isdir(path)
    are_files = is_folder and not holds_whole_files(path)
    if are_files and len(labels) > MOST_NUMBERED and len(stems) == 1:
        found = f"one file per class, {labels[0]}, {labels[1]} and {len(labels) - 2} more"
        if stems == {""}:
            raise DataError(f"{name}: this folder holds {found}; did you mean its parent?")
        yield f"this folder holds {found}; if the folder is a class, give its parent"
    if alone and max(facts.classes.values()) == 1 and facts.rows > MOST_ALONE:
        expected = "expected labels that several rows share"
        if facts.schema.label is not None:
            expected += "; --label names their column"
        elif is_folder:
            expected += ": each file is a class here; give each class a folder for its files"
        each = f"each of {facts.rows} rows has a label of its own, such as {quote(labels[0], 40)}"
        raise DataError(f"{name}: {each}; {expected}")


def _written(
    splits: Splits, rows: Mapping[str, int], facts: Facts, settings: Sequence[str]
) -> tuple[str, Config]:
    """Write the config, with the user's settings in the place of ours."""
    ours = [*_files(splits, rows, facts), *_columns(facts), *choices(facts, splits["validation"])]
    found = {choice.key: choice for choice in ours}
    config = parse_config("\n".join(_lines(ours)), "the proposed config", settings)
    for given in settings:
        named = given.partition("=")[0].strip() + "."
        for key, value in values_by_key(config).items():
            if named.startswith(f"{key}.") or f"{key}.".startswith(named):
                found[key] = Choice(key, value, f"--set {shorten(given, 60)}")
    median, most, longest = facts.lengths
    largest, smallest = max(facts.classes.values()), min(facts.classes.values())
    head = [
        f"# Written by: seqtrain init {shorten(join(names_of(splits['train'])), 80)}",
        f"# lengths in time steps: median {median:,}, 95 % {most:,}, longest {longest:,}",
        f"# rows per class: {smallest:,}" + (f" to {largest:,}" if smallest < largest else ""),
    ]
    rare = [shorten(name, 80) for name, count in facts.classes.items() if count < 5]
    notes = [f"# Classes with fewer than 5 rows: {len(rare)}, such as {x}." for x in rare[:1]]
    return "\n".join([*head, *_lines(found.values()), *notes, ""]), config


def _files(splits: Splits, rows: Mapping[str, int], facts: Facts) -> Iterator[Choice]:
    unit = "sequences" if facts.schema.id is not None else "rows"
    found = f"{facts.rows:,} {unit}, {len(facts.classes)} classes"
    folder, validation = names_of(splits["train"])[0], splits["validation"]
    if os.path.isdir(folder) and facts.format.name == "txt":
        whole = holds_whole_files(folder)
        found += ": a folder each, a row per file" if whole else ": a file each, a row per line"
    yield Choice("data.train", splits["train"], found)
    why = "there are few rows, so all of them are learned"
    if isinstance(validation, float):
        why = f"{round(validation * facts.rows):,} {unit} of train choose the best epoch"
    elif validation is not None:
        why = f"{rows['validation']:,} {unit} choose the best epoch"
    yield Choice("data.validation", validation, why)
    if "test" in splits:
        why = f"{rows['test']:,} {unit}, scored once at the end"
        yield Choice("data.test", splits["test"], why)


def _columns(facts: Facts) -> Iterator[Choice]:
    """Yield the keys that say how rows are read, where they aren't the default."""
    format, schema = facts.format, facts.schema
    unlabelled, sequence = facts.unlabelled, "column of the sequence"
    read_as = "each line begins with __label__" if format.name == "fasttext" else "--format"
    is_series, joined = schema.kind == "features", "the texts of these columns, joined"
    is_made_of = "time steps are numbers" if is_series else "a sequence is a list of symbols"
    kind = schema.kind if schema.kind in ("features", "tokens") else "auto"
    if isinstance(schema.sequence, list):
        sequence = "its channels or time steps" if is_series else joined
    masked = "mask" if facts.missing else "error"
    named = [
        ("format", "auto" if format.by_name else format.name, read_as),
        ("delimiter", format.delimiter, "separates the columns"),
        ("encoding", format.encoding, "UTF-8 is read, too"),
        ("sequence", schema.sequence, sequence),
        ("id", schema.id, "the rows of one value are a sequence"),
        ("order", schema.order, "sorts them"),
        ("steps", schema.steps, "what a time step is made of"),
        ("label", schema.label, f"column of the label: {_labels(facts)}"),
        ("label_separator", schema.label_separator, "a row may have several labels, or none"),
        ("kind", kind, is_made_of),
        ("empty", "drop" if facts.empty else "error", f"{facts.empty:,} rows have no sequence"),
        ("bad_rows", "drop" if unlabelled else "error", f"{unlabelled:,} rows have a blank label"),
        ("missing", masked, "values are missing, and a channel says where"),
    ]
    for key, value, why in named:
        if value != DataConfig.model_fields[key].default:
            yield Choice(f"data.{key}", value, why)


def _lines(found: Iterable[Choice]) -> Iterator[str]:
    """Yield the lines of a config, section by section."""
    sections: dict[str, list[Choice]] = {}
    for choice in found:
        sections.setdefault(choice.key.rpartition(".")[0], []).append(choice)
    for section, some in sections.items():
        yield from [f"{section}:"] if section else []
        for choice in some:
            items = choice.value if choice.key == "data.steps" else {}
            key, value = choice.key.rpartition(".")[2], "" if items else flow(choice.value)
            line = f"{'  ' if section else ''}{key}: {value}"
            yield f"{line:<{COMMENT_COLUMN}} # {choice.why}"
            yield from (f"    {flow(column)}: {flow(kind)}" for column, kind in items.items())
