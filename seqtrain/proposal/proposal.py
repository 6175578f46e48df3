"""The config that `seqtrain init` writes: short, commented, and accepted by `fit`."""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from shlex import join

from seqtrain.config import Config, parse_config
from seqtrain.config.document import flow
from seqtrain.config.formats import names_of, resolve_format
from seqtrain.data.dataset import prepare
from seqtrain.data.readers import ReadOptions, read_rows
from seqtrain.data.readers.txt import holds_whole_files
from seqtrain.data.sources import files_of
from seqtrain.data.summary import label_doubts, number_doubts
from seqtrain.errors import DataError
from seqtrain.proposal.choices import Choice, choices, should_hold_out
from seqtrain.proposal.columns import Wishes
from seqtrain.proposal.contents import Facts, inspect, read_facts
from seqtrain.proposal.steps import PER_ID
from seqtrain.text import counted, display_name, listed, quote, shorten

ROLES = {
    "validation": re.compile(r"(^|[^a-z])(valid|validation|val|dev)([^a-z]|$)"),
    "test": re.compile(r"(^|[^a-z])test([^a-z]|$)"),
    "train": re.compile(r"(^|[^a-z])train(ing)?([^a-z]|$)"),
}
"""What the names of files say of their split, looked for in this order."""
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
    first, *others = files_of("train", splits["train"])
    facts = inspect([first, *others], wishes)
    doubts += _numbered(first, facts)
    if "validation" not in splits:
        _check_shared(first, facts)
    unlabelled = _unlabelled(splits, facts.reading)
    if unlabelled is not None:
        del splits["test"]
        doubts.append(f"{unlabelled} has no labels, so it isn't data.test; it is for predict")
    further = {
        name: read_facts(files_of(name, paths), facts.reading)
        for name, paths in splits.items()
        if name != "train"
    }
    facts = replace(
        facts,
        empty=facts.empty + sum(each.empty for each in further.values()),
        unlabelled=facts.unlabelled + sum(each.unlabelled for each in further.values()),
        missing=facts.missing or any(each.missing for each in further.values()),
    )
    rows = {"train": facts.rows, **{name: each.rows + each.empty for name, each in further.items()}}
    doubts += [*facts.table.doubts, *label_doubts(facts.classes)]
    text, config = _written(splits, rows, facts, wishes.settings, held_out=should_hold_out(facts))
    if facts.rows < TRIED_ROWS:
        try:
            data = prepare(config, cache_folder=None)
        except DataError:
            text, config = _written(splits, rows, facts, wishes.settings, held_out=False)
            data = prepare(config, cache_folder=None)
        doubts += number_doubts(data)
    return Proposal(text, [*_taken(facts)], [*doubts, *_trust(facts, rows, config)])


def _unlabelled(splits: Mapping[str, str | list[str]], reading: ReadOptions) -> str | None:
    """Return the name of the test file, if its first row has no label."""
    for path in files_of("test", splits.get("test"))[:1]:
        rows = list(islice(read_rows(path, reading.for_file(path), labelled=False), FIRST_ROWS))
        if rows and not any(row.label or row.problem for row in rows):
            return display_name(path)
    return None


def _taken(facts: Facts) -> Iterator[str]:
    table, kind = facts.table, facts.reading.kind
    what = {"text": "text", "tokens": "symbols", "features": "series", "steps": "a time step"}[kind]
    if facts.channels > 1 and kind == "features":
        what += f" of {facts.channels} channels"
    sequence, steps = table.reading.sequence, table.reading.steps
    columns = [str(c) for c in (sequence if isinstance(sequence, list) else [sequence])]
    if sequence is not None:
        what += f" = {listed(columns, 4)}"
    elif steps is not None:
        shown = [f"{name} ({read})" for name, read in steps.items()]
        what += f" = {listed(shown, 8)}; a sequence = the rows of one {table.reading.id}"
        what += f", by {table.reading.order}" if table.reading.order is not None else ""
    elif table.reading.label is not None:
        what += " = all other columns, a time step each"
    classes = f"{len(facts.classes)} classes: {_labels(facts)}"
    label = table.reading.label if table.label is None else table.label
    several = "several labels per row" if facts.several else "label"
    yield f"{what}, {classes}" if label is None else f"{what}, {several} = {label} ({classes})"
    if table.ignored:
        yield f"ignored: {listed(table.ignored, 8)}"
    if any(PER_ID in each for each in table.ignored):
        yield f"data.static can take what has {PER_ID}"
    if facts.unlabelled:
        yield f"{counted(facts.unlabelled, 'row')} with a blank label left out"


def _labels(facts: Facts) -> str:
    names = [shorten(name, 30) for name, _ in facts.classes.most_common()]
    return listed(names, SHOWN_LABELS)


def _trust(facts: Facts, rows: Mapping[str, int], config: Config) -> Iterator[str]:
    """Say of a small set how far its accuracy can be trusted."""
    if facts.rows >= FEW_PER_CLASS * len(facts.classes):
        return
    share = config.data.validation
    held_out = round(share * facts.rows) if isinstance(share, float) else rows.get("validation", 0)
    scored = rows.get("test", held_out)
    few = f"{facts.rows / len(facts.classes):.0f} rows per class are few"
    if not scored:
        yield f"{few}, and none are held out: seqtrain fit --folds 5 measures an accuracy"
        return
    split, points = "test" if "test" in rows else "validation", 196 * math.sqrt(0.09 / scored)
    yield (
        f"{few}: an accuracy of 90 % on {counted(scored, 'row')} of {split} would be known to "
        f"± {points:.0f} points; fit --folds 5 scores all rows"
    )


def _splits(files: Sequence[str], test: str | None) -> dict[str, str | list[str]]:
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
    return next((role for role, pattern in ROLES.items() if pattern.search(name.lower())), None)


def _splits_inside(folder: str) -> list[str]:
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    paths = {name: os.path.join(folder, name) for name in names}
    folders = [name for name, path in paths.items() if os.path.isdir(path)]
    found = [name for name in names if name in folders or resolve_format(name, "auto")]
    found = [name for name in found if _role(name)]
    is_split = {*folders} <= {*found} and len(found) > 1
    is_split = "train" in map(_role, found) and (is_split or "dataset_dict.json" in names)
    return [paths[name] for name in found] if is_split else []


def _numbered(path: str, facts: Facts) -> Iterator[str]:
    """Doubt classes named after numbered files, which are of one class; refuse bare numbers."""
    names = [*facts.classes]
    stems = {NUMBER.sub("", name) for name in names}
    is_folder = facts.reading.format == "txt" and os.path.isdir(path)
    if not is_folder or holds_whole_files(path) or len(names) <= MOST_NUMBERED or len(stems) > 1:
        return
    found = (
        f"this folder holds one file per class, {names[0]}, {names[1]} and {len(names) - 2} more"
    )
    if stems == {""}:
        raise DataError(f"{display_name(path)}: {found}; did you mean its parent?")
    yield f"{found}; if the folder is a class, give its parent"


def _check_shared(path: str, facts: Facts) -> None:
    """Refuse labels of which each stands in one row: nothing could be held out to try them on."""
    if max(facts.classes.values()) > 1 or facts.rows <= MOST_ALONE:
        return
    label = quote(next(iter(facts.classes)), 40)
    found = f"{display_name(path)}: each of {facts.rows} rows has a label of its own, such as"
    expected = "expected labels that several rows share"
    if facts.reading.label is not None:
        expected += "; --label names their column"
    elif os.path.isdir(path):
        expected += ": each file is a class here; give each class a folder for its files"
    raise DataError(f"{found} {label}; {expected}")


def _written(
    splits: Mapping[str, str | list[str]],
    rows: Mapping[str, int],
    facts: Facts,
    settings: Sequence[str],
    *,
    held_out: bool,
) -> tuple[str, Config]:
    """Write the config, with the user's settings in the place of ours."""
    files = list(_files(splits, rows, facts, held_out=held_out))
    validation = next(file.value for file in files if file.key == "data.validation")
    found = [*files, *_columns(facts), *choices(facts, validation)]
    config = parse_config(_yaml(splits, facts, found), "the proposed config", settings)
    for given in settings:
        key = ".".join(given.partition("=")[0].split(".")[:2])
        section, _, name = key.partition(".")
        value = config.model_dump()[section]
        known = [each.key for each in found]
        same = key in known
        beside = [i for i, each in enumerate(known) if each.startswith(f"{section}.")]
        at = known.index(key) if same else max(beside, default=len(found)) + 1
        why = f"--set {shorten(given, 60)}"
        found[at : at + same] = [Choice(key, value[name] if name else value, why)]
    return _yaml(splits, facts, found), config


def _yaml(splits: Mapping[str, str | list[str]], facts: Facts, found: Sequence[Choice]) -> str:
    return "\n".join([*_head(splits, facts), *_lines(found), *_notes(facts)]) + "\n"


def _files(
    splits: Mapping[str, str | list[str]], rows: Mapping[str, int], facts: Facts, *, held_out: bool
) -> Iterator[Choice]:
    unit = "sequences" if facts.reading.id is not None else "rows"
    found = f"{facts.rows:,} {unit}, {len(facts.classes)} classes"
    folder = names_of(splits["train"])[0]
    if os.path.isdir(folder) and facts.reading.format == "txt":
        whole = holds_whole_files(folder)
        found += ": a folder each, a row per file" if whole else ": a file each, a row per line"
    yield Choice("data.train", splits["train"], found)
    if "validation" in splits:
        why = f"{rows['validation']:,} {unit} choose the best epoch"
        yield Choice("data.validation", splits["validation"], why)
    elif held_out:
        share = 0.2 if facts.rows < 1000 else 0.1 if facts.rows < 100_000 else 0.02
        why = f"{round(share * facts.rows):,} {unit} of train choose the best epoch"
        yield Choice("data.validation", share, why)
    else:
        yield Choice("data.validation", None, "there are few rows, so all of them are learned")
    if "test" in splits:
        yield Choice(
            "data.test", splits["test"], f"{rows['test']:,} {unit}, scored once at the end"
        )


def _columns(facts: Facts) -> Iterator[Choice]:
    reading = facts.reading
    if not reading.by_name:
        why = "each line begins with __label__" if reading.format == "fasttext" else "--format"
        yield Choice("data.format", reading.format, why)
    if reading.delimiter != "auto":
        yield Choice("data.delimiter", reading.delimiter, "separates the columns")
    if reading.encoding != "utf-8":
        yield Choice("data.encoding", reading.encoding, "UTF-8 is read, too")
    if reading.header != "auto":
        why = "the first row names the columns" if reading.header else "the first row is data"
        yield Choice("data.header", reading.header, why)
    if reading.sequence is not None:
        why = "column of the sequence"
        if isinstance(reading.sequence, list):
            why = "the texts of these columns, joined"
            if reading.kind == "features":
                why = "its channels or time steps"
        yield Choice("data.sequence", reading.sequence, why)
    if reading.steps is not None:
        yield Choice("data.id", reading.id, "the rows of one value are a sequence")
        if reading.order is not None:
            yield Choice("data.order", reading.order, "sorts them")
        yield Choice("data.steps", reading.steps, "what a time step is made of")
    if reading.label is not None:
        yield Choice("data.label", reading.label, f"column of the label: {_labels(facts)}")
    if reading.label_separator is not None:
        why = "a row may have several labels, or none"
        yield Choice("data.label_separator", reading.label_separator, why)
    if reading.kind in ("tokens", "features"):
        words = {"tokens": "a sequence is a list of symbols", "features": "time steps are numbers"}
        yield Choice("data.kind", reading.kind, words[reading.kind])
    if facts.empty:
        yield Choice("data.empty", "drop", f"{facts.empty:,} rows have no sequence")
    if facts.unlabelled:
        yield Choice("data.bad_rows", "drop", f"{facts.unlabelled:,} rows have a blank label")
    if facts.missing:
        yield Choice("data.missing", "mask", "values are missing, and a channel says where")


def _head(splits: Mapping[str, str | list[str]], facts: Facts) -> Iterator[str]:
    median, most, longest = facts.lengths
    largest, smallest = max(facts.classes.values()), min(facts.classes.values())
    yield f"# Written by: seqtrain init {shorten(join(names_of(splits['train'])), 80)}"
    yield f"# lengths in time steps: median {median:,}, 95 % {most:,}, longest {longest:,}"
    yield f"# rows per class: {smallest:,}" + (f" to {largest:,}" if smallest < largest else "")


def _lines(found: Sequence[Choice]) -> Iterator[str]:
    section = ""
    for choice in found:
        name, _, key = choice.key.rpartition(".")
        if name not in ("", section):
            yield f"{name}:"
        section = name
        items = choice.value if choice.key == "data.steps" else {}
        line = f"{'  ' if name else ''}{key}: {'' if items else flow(choice.value)}"
        yield f"{line:<{COMMENT_COLUMN}} # {choice.why}"
        yield from (f"    {flow(column)}: {flow(kind)}" for column, kind in items.items())


def _notes(facts: Facts) -> Iterator[str]:
    rare = [name for name, count in facts.classes.items() if count < 5]
    if rare:
        yield f"# Classes with fewer than 5 rows: {len(rare)}, such as {shorten(rare[0], 80)}."
