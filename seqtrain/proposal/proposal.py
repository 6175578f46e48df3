"""The config that `seqtrain init` writes: short, commented, and accepted by `fit`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import join

from seqtrain.config import parse_config
from seqtrain.config.document import flow
from seqtrain.config.formats import names_of
from seqtrain.data.dataset import prepare
from seqtrain.data.readers.txt import holds_whole_files
from seqtrain.data.sources import files_of
from seqtrain.errors import DataError
from seqtrain.proposal.choices import Choice, choices, should_hold_out
from seqtrain.proposal.contents import Facts, inspect, read_facts
from seqtrain.proposal.tables import Wishes
from seqtrain.text import display_name, quote, shorten

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


def propose(files: Sequence[str], wishes: Wishes, *, test: str | None = None) -> str:
    """Look at data files and write a config for them.

    Args:
        files: train first, or named such as `train.csv`, `dev.csv`, `test.csv`; those whose names
            differ in numbers alone, such as `part-1.csv`, belong together.
        wishes: what the user says of them.
        test: the file to score once at the end.

    Returns:
        YAML text that `fit` takes as it is, with the reason for each choice.

    Raises:
        DataError: a file can't be read, or something isn't clear and an option has to say it.
    """
    splits = _splits(files, test)
    first, *others = files_of("train", splits["train"])
    facts = inspect([first, *others], wishes)
    if "validation" not in splits:
        _check_shared(first, facts)
    further = {
        name: read_facts(files_of(name, paths), facts.reading, known=facts.classes)
        for name, paths in splits.items()
        if name != "train"
    }
    facts = replace(
        facts,
        empty=facts.empty + sum(each.empty for each in further.values()),
        missing=facts.missing or any(each.missing for each in further.values()),
    )
    rows = {"train": facts.rows, **{name: each.rows + each.empty for name, each in further.items()}}
    text = _written(splits, rows, facts, held_out=should_hold_out(facts))
    config = parse_config(text, "the proposed config")
    if facts.rows < TRIED_ROWS:
        try:
            prepare(config, cache_folder=None)
        except DataError:
            text = _written(splits, rows, facts, held_out=False)
            prepare(parse_config(text, "the proposed config"), cache_folder=None)
    return text


def _splits(files: Sequence[str], test: str | None) -> dict[str, str | list[str]]:
    """Find which files are train, validation and test, by their names."""
    found: dict[str, list[str]] = {} if test is None else {"test": [test]}
    for path in files:
        stem = os.path.basename(path).lower()
        role = next((name for name, pattern in ROLES.items() if pattern.search(stem)), "train")
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
    splits: Mapping[str, str | list[str]], rows: Mapping[str, int], facts: Facts, *, held_out: bool
) -> str:
    """Write the config."""
    files = list(_files(splits, rows, facts, held_out=held_out))
    validation = next(file.value for file in files if file.key == "data.validation")
    found = [*files, *_columns(facts), *choices(facts, validation)]
    return "\n".join([*_head(splits, facts), *_lines(found), *_notes(facts)]) + "\n"


def _files(
    splits: Mapping[str, str | list[str]], rows: Mapping[str, int], facts: Facts, *, held_out: bool
) -> Iterator[Choice]:
    found = f"{facts.rows:,} rows, {len(facts.classes)} classes"
    folder = names_of(splits["train"])[0]
    if os.path.isdir(folder):
        whole = holds_whole_files(folder)
        found += ": a folder each, a row per file" if whole else ": a file each, a row per line"
    yield Choice("data.train", splits["train"], found)
    if "validation" in splits:
        why = f"{rows['validation']:,} rows choose the best epoch"
        yield Choice("data.validation", splits["validation"], why)
    elif held_out:
        share = 0.2 if facts.rows < 1000 else 0.1 if facts.rows < 100_000 else 0.02
        why = f"{round(share * facts.rows):,} rows of train choose the best epoch"
        yield Choice("data.validation", share, why)
    else:
        yield Choice("data.validation", None, "there are few rows, so all of them are learned")
    if "test" in splits:
        yield Choice("data.test", splits["test"], f"{rows['test']:,} rows, scored once at the end")


def _columns(facts: Facts) -> Iterator[Choice]:
    reading = facts.reading
    if reading.format == "fasttext":
        yield Choice("data.format", "fasttext", "each line begins with __label__")
    if reading.delimiter != "auto":
        yield Choice("data.delimiter", reading.delimiter, "separates the columns")
    if reading.header != "auto":
        why = "the first row names the columns" if reading.header else "the first row is data"
        yield Choice("data.header", reading.header, why)
    if reading.sequence is not None:
        several = isinstance(reading.sequence, list)
        why = "the texts of these columns, joined" if several else "column of the sequence"
        yield Choice("data.sequence", reading.sequence, why)
    if reading.label is not None:
        names = [shorten(name, 80) for name, _ in facts.classes.most_common(SHOWN_LABELS)]
        more = len(facts.classes) - len(names)
        labels = ", ".join(names) + (f" and {more} more" if more else "")
        yield Choice("data.label", reading.label, f"column of the label: {labels}")
    if reading.kind != "text":
        words = {"tokens": "a sequence is a list of symbols", "features": "time steps are numbers"}
        yield Choice("data.kind", reading.kind, words[reading.kind])
    if facts.empty:
        yield Choice("data.empty", "drop", f"{facts.empty:,} rows have no sequence")
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
        name, key = choice.key.split(".")
        if name != section:
            yield f"{name}:"
            section = name
        yield f"{f'  {key}: {flow(choice.value)}':<{COMMENT_COLUMN}} # {choice.why}"


def _notes(facts: Facts) -> Iterator[str]:
    rare = [name for name, count in facts.classes.items() if count < 5]
    if rare:
        yield f"# Classes with fewer than 5 rows: {len(rare)}, such as {shorten(rare[0], 80)}."
