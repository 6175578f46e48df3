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
from seqtrain.data.preparation import prepare
from seqtrain.data.readers.txt import holds_whole_files
from seqtrain.data.sources import files_of
from seqtrain.errors import DataError
from seqtrain.proposal.inspection import Facts, Further, inspect, look_through
from seqtrain.proposal.rules import Choice, choices, should_hold_out
from seqtrain.proposal.tables import Wishes
from seqtrain.text import display_name, quote, shorten

ROLES = {
    "validation": re.compile(r"(^|[^a-z])(valid|validation|val|dev)([^a-z]|$)"),
    "test": re.compile(r"(^|[^a-z])test([^a-z]|$)"),
    "train": re.compile(r"(^|[^a-z])train(ing)?([^a-z]|$)"),
}
"""What the names of files say of their part, looked for in this order."""
NUMBER = re.compile("[0-9]+")
TRIED_ROWS = 4096
"""Below so many rows the data is read as `fit` reads it, and what it refuses is mended."""
MOST_ALONE = 2
"""Rows at most whose labels may all differ, where no file of validation is given."""
COMMENT_COLUMN = 44
SHOWN_LABELS = 6


def propose(files: Sequence[str], wishes: Wishes, *, test: str | None = None) -> str:
    """Look at data files and write a config for them.

    Args:
        files: train first, or told apart by names such as `train.csv`, `dev.csv`, `test.csv`; those
            whose names differ in numbers alone, such as `part-1.csv`, are pieces of one.
        wishes: what the user says of them.
        test: the file to score once at the end.

    Returns:
        YAML text that `fit` takes as it is, with the reason for each choice.

    Raises:
        DataError: a file can't be read, or something can't be told and a flag has to say it.
    """
    parts = _parts(files, test)
    first, *others = files_of("train", parts["train"])
    facts = inspect(first, wishes, others)
    if "validation" not in parts:
        _check_shared(first, facts)
    further = {
        name: look_through(files_of(name, paths), facts.reading, facts.classes)
        for name, paths in parts.items()
        if name != "train"
    }
    facts = replace(
        facts,
        empty=facts.empty + sum(each.empty for each in further.values()),
        missing=facts.missing or any(each.missing for each in further.values()),
    )

    def written(*, held_out: bool) -> str:
        files = list(_files(parts, further, facts, held_out=held_out))
        validation = next(file.value for file in files if file.key == "data.validation")
        found = [*files, *_columns(facts), *choices(facts, validation)]
        return "\n".join([*_head(parts, facts), *_lines(found), *_notes(facts)]) + "\n"

    text = written(held_out=should_hold_out(facts))
    config = parse_config(text, "the proposed config")
    if facts.rows < TRIED_ROWS:
        try:
            prepare(config, cache_folder=None)
        except DataError:
            text = written(held_out=False)
            prepare(parse_config(text, "the proposed config"), cache_folder=None)
    return text


def _parts(files: Sequence[str], test: str | None) -> dict[str, str | list[str]]:
    """Tell which file is train, validation and test; of pieces which files are."""
    found: dict[str, list[str]] = {} if test is None else {"test": [test]}
    if len(files) == 1:
        return {"train": files[0], **({} if test is None else {"test": test})}
    for path in files:
        stem = os.path.basename(path).lower()
        role = next((name for name, pattern in ROLES.items() if pattern.search(stem)), "train")
        known = found.setdefault(role, [])
        if known and NUMBER.sub("0", known[0]) != NUMBER.sub("0", path):
            raise DataError(
                f"{role}: {quote(known[0])} and {quote(path)} can both be it; give the file "
                "to train on, name the others …validation… and …test…, or give --test FILE"
            )
        known.append(path)
    if "train" not in found:
        raise DataError("train: no file is it; give the file to train on first, alone")
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


def _files(
    parts: Mapping[str, str | list[str]],
    further: dict[str, Further],
    facts: Facts,
    *,
    held_out: bool,
) -> Iterator[Choice]:
    found = f"{facts.rows:,} rows, {len(facts.classes)} classes"
    folder = names_of(parts["train"])[0]
    if os.path.isdir(folder):
        whole = holds_whole_files(folder)
        found += ": a folder each, a row per file" if whole else ": a file each, a row per line"
    yield Choice("data.train", parts["train"], found)
    if "validation" in parts:
        why = f"{further['validation'].rows:,} rows choose the best epoch"
        yield Choice("data.validation", parts["validation"], why)
    elif held_out:
        share = 0.2 if facts.rows < 1000 else 0.1 if facts.rows < 100_000 else 0.02
        why = f"held out of train: {round(share * facts.rows):,} rows choose the best epoch"
        yield Choice("data.validation", share, why)
    else:
        yield Choice("data.validation", None, "few rows: all of them are learned")
    if "test" in parts:
        why = f"{further['test'].rows:,} rows, scored once at the end"
        yield Choice("data.test", parts["test"], why)


def _columns(facts: Facts) -> Iterator[Choice]:
    reading = facts.reading
    if reading.format == "fasttext":
        yield Choice("data.format", "fasttext", "each line begins with __label__")
    if facts.delimiter:
        yield Choice("data.delimiter", facts.delimiter, "separates the columns")
    if facts.header is not None:
        why = "the first row names the columns" if facts.header else "the first row is data"
        yield Choice("data.header", facts.header, why)
    if reading.sequence is not None:
        why = "columns joined" if isinstance(reading.sequence, list) else "column of the sequence"
        yield Choice("data.sequence", reading.sequence, why)
    if reading.label is not None:
        yield Choice("data.label", reading.label, f"column of the class: {_labels(facts)}")
    if reading.kind != "text":
        words = {"tokens": "symbols, already split", "features": "numbers per time step"}
        yield Choice("data.kind", reading.kind, words[reading.kind])
    if facts.empty:
        yield Choice("data.empty", "drop", f"{facts.empty:,} rows have no sequence")
    if facts.missing:
        yield Choice("data.missing", "mask", "values are missing: a channel says where")


def _labels(facts: Facts) -> str:
    names = [shorten(name, 80) for name, _ in facts.classes.most_common(SHOWN_LABELS)]
    more = len(facts.classes) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _head(parts: Mapping[str, str | list[str]], facts: Facts) -> Iterator[str]:
    _, median, most, longest = facts.lengths
    largest, smallest = max(facts.classes.values()), min(facts.classes.values())
    yield f"# Written by: seqtrain init {shorten(join(names_of(parts['train'])), 80)}"
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
    """Say what isn't sure, or what the user may want to know."""
    if facts.group is not None:
        yield (
            f"# Column {quote(str(facts.group))} looks like a session: where rows of a session "
            "continue one another,"
        )
        yield "# give a validation file, set data.group to it and model.initial_state: carried;"
        yield "# training.refit doesn't go with that."
    rare = [name for name, count in facts.classes.items() if count < 5]
    if rare:
        yield f"# Classes with fewer than 5 rows: {len(rare)}, such as {shorten(rare[0], 80)}."


__all__ = ["Wishes", "propose"]
