"""Random step tables: their rows, and the sequences that an independent reading gives."""

import math
import random
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from seqtrain.sequences.examples import Example

SCHEMA: dict[str, Any] = {
    "kind": "steps",
    "id": "who",
    "order": "at",
    "label": "l",
    "steps": {"place": "token", "heat": "number", "since": "order", "mood": "token"},
    "static": {"land": "token", "age": "number"},
}
IDS = ["a", "b b", "é", "7", "007", 'q"q', "x,y", "NA", "id\twith tab", "true", "0", "-"]
PLACES = ["home", "Café", "a b", "x,y", 'say "so"', "0", "12", "it's", "<unk>", "", "NA", "{a}"]
LABELS = ["yes", "no", "may be", "1", "0.5", "[x]", "é|y"]
LAST_DAY = 946598400 * 10**9
"""The moment of 31 December 1999, whose text tells the day from the month."""
MISSING = ["", "NA", "?", "nan", "null", "-", "N/A", "None"]


class Step(NamedTuple):
    """A row of a table: its cells, and the time by which an independent reading sorts it."""

    who: str
    at: Any
    moment: int | Decimal
    place: str
    mood: str
    heat: str
    land: str
    age: str
    label: str


def moments(draw: random.Random, kind: str) -> tuple[Any, int | Decimal]:
    """Return a cell of `data.order`, and its time: a number, or nanoseconds."""
    if kind == "whole":
        number = draw.choice([draw.randrange(-9, 9), draw.randrange(-(2**62), 2**62)])
        return number, number
    if kind == "decimal":
        number = Decimal(draw.randrange(-9999, 9999)) / draw.choice([1, 4, 8, 16])
        return str(number), number
    if kind == "duration":
        seconds, nanos = draw.randrange(0, 86400 * 3), draw.choice([0, 0, 1, 500_000_000])
        hours, rest = divmod(seconds, 3600)
        cell = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
        cell += f".{nanos:09d}".rstrip("0") if nanos else ""
        return cell, seconds * 10**9 + nanos
    day = datetime(1960, 1, 1) + timedelta(seconds=draw.randrange(0, 3 * 10**9))
    if draw.random() < 0.3:
        day = day.replace(hour=0, minute=0, second=0)
    nanos = draw.choice([0, 0, 1, 999_999_999, 123_456_000])
    since = day - datetime(1970, 1, 1)
    whole = (since.days * 86400 + since.seconds) * 10**9
    if kind == "day first":
        return f"{day:%d.%m.%Y %H:%M:%S}", whole
    if kind == "month first":
        hour = day.hour % 12 or 12
        clock = f"{hour}:{day:%M:%S} {'AM' if day.hour < 12 else 'PM'}"
        return f"{day.month}/{day.day}/{day.year} {clock}", whole
    decimals = f".{nanos:09d}".rstrip("0") if nanos else ""
    text = f"{day:%Y-%m-%d}{draw.choice('T ')}{day:%H:%M:%S}{decimals}"
    if kind == "zoned":
        offset = draw.choice([0, 60, -330, 14 * 60])
        sign, size = "+-"[offset < 0], abs(offset)
        zone = "Z" if offset == 0 else f"{sign}{size // 60:02d}:{size % 60:02d}"
        return text + zone, whole + nanos - offset * 60 * 10**9
    return text, whole + nanos


KINDS = ("whole", "decimal", "duration", "day first", "month first", "naive", "zoned")


def random_table(seed: int) -> tuple[str, list[Step]]:
    """Return the type of the order of a table, and its rows, often shuffled."""
    draw, rows = random.Random(seed), list[Step]()
    kind = KINDS[seed % len(KINDS)]
    for who in draw.sample(IDS, draw.randint(1, 7)):
        land, age, label = draw.choice(PLACES), draw.choice(["3", "", "1e3"]), draw.choice(LABELS)
        pool = [moments(draw, kind) for _ in range(4)]  # so that some times are equal
        for _ in range(draw.randint(1, 6)):
            at, moment = draw.choice([*pool, moments(draw, kind), moments(draw, kind)])
            heat = draw.choice(["1", "-0.25", "1e-3", "+7", " 2 ", *draw.sample(MISSING, 2)])
            cells = draw.choice(PLACES), draw.choice("uvw"), heat, land, age, label
            rows.append(Step(who, at, moment, *cells))
    if kind == "day first":  # a day beyond 12 says which number is the day
        rows[0] = rows[0]._replace(at="31.12.1999 00:00:00", moment=LAST_DAY)
    if kind == "month first":
        rows[0] = rows[0]._replace(at="12/31/1999 12:00:00 AM", moment=LAST_DAY)
    if draw.random() < 0.6:
        draw.shuffle(rows)
    return kind, rows


def number(cell: str) -> float:
    return math.nan if cell.strip() in MISSING else float(cell)


def token(cell: str) -> str:
    return cell if cell.strip() else "<unk>"


def expected(kind: str, rows: list[Step]) -> list[tuple[Any, ...]]:
    """Return the sequences of a table, computed without seqtrain."""
    found, scale = [], 1 if kind in ("whole", "decimal") else 10**9
    for who in dict.fromkeys(row.who for row in rows):
        own = sorted((row for row in rows if row.who == who), key=lambda row: row.moment)
        times = [row.moment for row in own]
        grown = [float((b - a) / scale) for a, b in zip([times[0], *times], times, strict=False)]
        numbers = np.array(
            [[number(row.heat), grow] for row, grow in zip(own, grown, strict=True)], np.float32
        )
        tokens = [[token(row.place) for row in own], [token(row.mood) for row in own]]
        static = [token(own[0].land)], np.float32(number(own[0].age))
        found.append((who, (own[0].label,), tokens, numbers, static))
    return found


def cells_of(rows: list[Step]) -> list[dict[str, Any]]:
    names = {"who": "who", "at": "at", "place": "place", "mood": "mood", "heat": "heat",
             "land": "land", "age": "age", "l": "label"}  # fmt: skip
    return [{name: getattr(row, own) for name, own in names.items()} for row in rows]


def content(example: Example) -> tuple[Any, ...]:
    """Return what was read of an id, as `expected` returns it."""
    assert example.problem is None, example.problem
    steps, facts = example.sequence, example.static
    tokens = steps.token_texts()
    static = facts.token_texts()[0], facts.numbers[0, 0]
    return example.id, example.labels, tokens, steps.numbers, static


def assert_equal(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]], where: Any) -> None:
    assert len(found) == len(wanted), where
    for one, other in zip(found, wanted, strict=True):
        assert one[:3] == other[:3], where
        np.testing.assert_array_equal(one[3], other[3], err_msg=str(where))
        assert one[4][0] == other[4][0], where
        np.testing.assert_array_equal(one[4][1], other[4][1], err_msg=str(where))
