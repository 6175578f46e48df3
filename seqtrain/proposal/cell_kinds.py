"""Kinds of table cells, such as number, date, text, list of numbers, or list of symbols."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from seqtrain.sequences.examples import BadRow
from seqtrain.sequences.readers.numbers import DECIMAL_COMMAS, MISSING, is_number
from seqtrain.sequences.readers.sequences import sequence_from_text
from seqtrain.sequences.readers.times import ISO_DURATION

LONGEST_NUMBER = 15
"""Largest number of digits of a whole number that counts as a number. A longer one is text."""
LONGEST_SPECIAL_WORD = 6
"""Largest length of a cell that begins with a letter and isn't text, such as "null".

ISO durations, such as PT1M30S, may be longer.
"""
LIST_KINDS = ("series", "symbols", "turns")
"""Kinds of columns whose cells hold whole sequences."""
DATE = re.compile(
    r"([0-9]{4}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2})[-/.][0-9]{1,4}([T ].*)?"
    r"|(-?[0-9]+ days?,? )?[0-9]{1,3}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"
)
PERIOD = re.compile(rf"(?=.*T.){ISO_DURATION.pattern}")
"""An ISO duration with a time, such as PT1M30S. One without, such as P1D, may be a code."""
LIST_OF_NUMBERS = re.compile(r"\[+\s*[-+.0-9]|[-+0-9\s]+,[-+.,0-9\s]*;[-+.,;0-9\s]*$")
"""Pattern of a text that counts as a list of numbers even with a mistake. The reader reports it."""
DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")
THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2},[0-9]{3}")
UNIT = re.compile(
    r"([€$£¥]?)\s?[-+]?([0-9]+|[0-9]+[.,][0-9]+|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?"
    r"|[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+)\s?([€$£¥%]|°?[A-Za-zµ]{0,6}(?:/[a-z]+)?)"
)
"""Pattern of a number that may have commas and a unit.

Group 1 is a unit before the number, and group 3 a unit after it. Both may be empty.
"""


class Cell(NamedTuple):
    """Kind of a table cell, with its content.

    Attributes:
        kind: One of

            - blank, missing (a word such as NA), number, text.
            - date: a date, a time of day or a duration.
            - unit: a number with a comma or a unit.
            - series: a list of numbers.
            - whole: a list of whole numbers from 0 on, which may be symbols.
            - symbols: a list of strings.
            - turns: a list of sentences, or of objects such as the messages of a chat.
        content: What it holds depends on the kind:

            - series, whole: the numbers. It is () if they have decimal commas or a mistake.
            - symbols, turns: the strings of a list from JSON.
            - unit: the unit, or "" for a number with a comma and no unit.
            - Other kinds: ().
    """

    kind: str
    content: Any = ()


def cell_of_list(value: Sequence[Any]) -> Cell:
    """Return the kind and content of a cell that holds a list from JSON.

    The first entry decides between objects, strings and numbers. Objects are turns. Strings are
    turns if they have two words or more on average, and symbols if they have fewer. Whole numbers
    from 0 on are whole. All other lists are series, even if entries aren't numbers.
    """
    if not value:
        return Cell("blank")
    if isinstance(value[0], dict):
        return Cell("turns")
    if isinstance(value[0], str):
        strings = [each for each in value if isinstance(each, str)]
        words = sum(len(each.split()) for each in strings)
        return Cell("turns" if words >= 2 * len(value) else "symbols", strings)
    is_whole = all(type(each) is int and each >= 0 for each in value)
    return Cell("whole" if is_whole else "series", value)


def is_plainly_text(text: str) -> bool:
    """Return True if the length and the first letter of a cell show that it is text.

    False means that `cell_of_text` must decide.
    """
    is_long = len(text) > LONGEST_SPECIAL_WORD and not text[-1].isspace()
    is_period = is_long and text[0] == "P" and PERIOD.fullmatch(text)
    return is_long and text[0].isalpha() and not is_period and "\n" not in text


@lru_cache(maxsize=4096)
def cell_of_text(text: str) -> Cell:
    """Return the kind and content of a cell that holds text.

    Whitespace around the text is ignored. A text that begins with `["` counts as symbols without
    content.
    """
    text = text.strip()
    if not text:
        return Cell("blank")
    if text[0] in "-+P" and PERIOD.fullmatch(text):
        return Cell("date")
    if is_plainly_text(text):
        return Cell("text")
    if text.startswith('["'):
        return Cell("symbols")
    if text.isdigit() and (len(text) > LONGEST_NUMBER or not text.isascii()):
        return Cell("text")
    if is_number(text):
        return Cell("number")
    if DATE.fullmatch(text):
        return Cell("date")
    unit = UNIT.fullmatch(text)
    if unit is not None:
        return Cell("unit", unit[1] + unit[3])
    if text.lower() in MISSING:
        return Cell("missing")
    if text[0] not in "[-+.0123456789" and "\n" not in text:  # a file may begin with names
        return Cell("text")
    return _cell_of_numbers(text)


def _cell_of_numbers(text: str) -> Cell:
    """Return the kind and content of a text that may hold several numbers.

    - Two or more whole numbers from 0 on, in brackets or separated by blanks, are whole.
    - Other lists of numbers are series. Their content is () if they have decimal commas or a
      mistake.
    - All other texts are text.
    """
    try:
        steps = np.asarray(sequence_from_text(text, "features"))
    except BadRow:
        is_meant = LIST_OF_NUMBERS.match(text) or DECIMAL_COMMAS.fullmatch(text)
        return Cell("series" if is_meant else "text")
    is_plain = text[0] == "[" or not {*",;\n"} & {*text}
    is_list = is_plain and steps.shape[1:] == (1,) and len(steps) > 1
    is_whole = is_list and ((steps >= 0) & (steps == np.rint(steps))).all()
    return Cell("whole", steps[:, 0]) if is_whole else Cell("series", steps)
