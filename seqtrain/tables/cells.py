"""Meaning of cells: texts, names, numbers and lists. A cell means the same from every format."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np

from seqtrain.files.reading import NotJSONError, parse_json
from seqtrain.tables.blocks import (
    BadCellError,
    Cells,
    Coded,
    Codes,
    Float64s,
    Name,
    Reasons,
    as_list,
    with_codes,
)
from seqtrain.tables.json_lines import json_type
from seqtrain.tables.times import SECOND, has_one_unit, read_duration
from seqtrain.text import delimited_line, quote

SCALES = {
    **dict.fromkeys(("k", "K", "tsd", "Tsd"), 1000),
    **dict.fromkeys(("M", "mn", "mln", "mio", "Mio"), 10**6),
    **dict.fromkeys(("B", "bn", "Mrd"), 10**9),
}
"""Maps units that may stand for a thousand, a million or more to this number."""
FLOAT32_MAX = float(np.finfo(np.float32).max)
MISSING_NUMBERS = frozenset({"", "?", "-", "na", "n/a", "#n/a", "nan", "null", "none"})
"""Cells of a missing number, in lower case."""
MISSING_LABELS = (MISSING_NUMBERS - {""}) | {
    "<na>",
    "n.a.",
    "k.a.",
    "k. a.",
    "nat",
    "(null)",
    "\\n",
}
"""Labels that may stand for a missing one, in lower case. They are classes, as one may be none."""
TRUTH = {"true": 1.0, "false": 0.0}
YES = (
    "1",
    "true",
    "yes",
    "y",
    "j",
    "t",
    "x",
    "+",
    "✓",
    "✔",
    "on",
    "sí",
    "si",
    "ja",
    "oui",
    "да",
    "tak",
    "sim",
    "evet",
    "ano",
    "kyllä",
    "igen",
    "ναι",
    "是",
    "はい",
    "예",
    "wahr",
    "vrai",
    "verdadeiro",
    "verdadero",
    "vero",
    "waar",
    "prawda",
    "истина",
)
NO = (
    "0",
    "false",
    "no",
    "n",
    "f",
    "-",
    "off",
    "nein",
    "non",
    "нет",
    "nie",
    "não",
    "nao",
    "hayır",
    "ne",
    "ei",
    "nej",
    "nem",
    "όχι",
    "否",
    "いいえ",
    "아니오",
    "falsch",
    "faux",
    "falso",
    "onwaar",
    "fałsz",
    "ложь",
)
TRUTH_VALUES = dict.fromkeys(YES, True) | dict.fromkeys((*NO, ""), False)
"""Maps each valid cell of a one-hot label column, in lower case, to True if its label applies."""
SIGNED_WHOLE = re.compile(r"(?P<sign>[-+]?)(?P<digits>0|[1-9][0-9]*)(?:\.0+)?")
"""A whole number, also with a sign, or with decimals, as pandas writes it beside a missing cell."""
DECIMAL_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,9})?\.[0-9]{1,6}")
"""A number with few decimals, which float64 holds exactly enough to be printed as it was."""
PRINTED_NUMBER = re.compile(r"[-+]?[0-9]\.[0-9]+[eE][-+][0-9]{2}")
"""A number as numpy.savetxt prints it, 4.000000000000000000e+00, which is spelled plainly: 4."""
CLOSING_BRACKETS = {"[": "]", "(": ")", "{": "}"}
PRINTED_VALUES = {"None": None, "nan": None, "True": True, "False": False}
_UNSIGNED = r"[0-9]+\.[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+"
NEGATIVE = re.compile(rf"\((?P<in>{_UNSIGNED})\)|(?P<before>{_UNSIGNED}|[0-9]+,[0-9]+)-")
"""A negative number as accountants write it: in parentheses, or with the minus behind.

It has decimals: (12) may number rows, too.
"""
MINUS = "\N{MINUS SIGN}"
GROUPED = {
    decimal: re.compile(
        r"[-+]?(?=[1-9])(?:[0-9]{1,3}|[0-9]{1,2}(?:,[0-9]{2})+(?=,))"
        rf"(?P<mark>[{mark}'\u2019\u00a0\u2009\u202f ])[0-9]{{3}}"
        rf"(?:(?P=mark)[0-9]{{3}})*(?:[{decimal}][0-9]+)?"
    )
    for decimal, mark in ((".", ","), (",", "."))
}
"""Maps decimal marks to numbers with marks between thousands, such as 1,234.5 and 1 234.

In India, the marks are between hundreds of thousands as well: 1,45,000.
"""
WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,30})")
NAMED_LIST = re.compile(
    r"(?:frozenset|set|list|tuple|array|tensor)\((?P<list>[\[({].*[])}])(?:, dtype=[\w.]+)?\)",
    re.DOTALL,
)
"""A list as Python prints one with its type, such as ``frozenset({'a', 'b'})``."""
EMPTY_LISTS = ("set()", "frozenset()", "list()", "tuple()")
"""Empty lists as Python prints some. So are {} in columns of lists such as {A,B}."""
TAGS = re.compile(r"(?:<[^<>]+>)+")
"""Names in pointed brackets, such as ``<a><b>``."""
IN_QUOTES = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
IN_BARE = r"""(?:[^'"\[\](){},:]|(?<=\w)'(?=\w))"""
BARE = rf"""[^\s'"\[\](){{}},:](?:{IN_BARE}*[^\s'"\[\](){{}},:])?"""
AN_ITEM = f"(?:{IN_QUOTES}|{BARE})"
ITEM, QUOTED_ITEM = re.compile(AN_ITEM), re.compile(IN_QUOTES)
"""An item of a list as Python prints it: in either kind of quotes, or bare."""
BY_COMMAS = re.compile(rf"{AN_ITEM}\s*(?:,\s*{AN_ITEM}\s*)*,?")
BY_BLANKS = re.compile(rf"(?:{IN_QUOTES})(?:\s+(?:{IN_QUOTES}))*")
"""Items between which there are commas, or blanks."""
NESTED = re.compile(r"[\[\](){}:'\"]")
"""Characters that no list of bare words contains."""
NUMBERS = {int, float, type(None)}


def text_of(cell: Any) -> str:
    """Return a cell as the text that a csv file would hold, or "" if it is missing.

    True is "true", and 2.0 is "2": pandas turns whole numbers into floats if a cell of their column
    is missing.

    Raises:
        BadCellError: If the cell is a list, an object or bytes.
    """
    if isinstance(cell, str):
        return cell
    if cell is None or cell is True or cell is False:
        if cell is None:
            return ""
        return str(cell).lower()
    if isinstance(cell, float):
        if cell != cell:
            return ""
        if cell.is_integer():
            return str(int(cell))
        return str(cell)
    if isinstance(cell, int | Decimal):
        try:
            return str(cell)
        except ValueError:
            raise BadCellError("found an integer of thousands of digits") from None
    raise BadCellError(f"expected a text or a number, found {json_type(cell)}")


def name_of(text: str) -> str:
    """Return the name that a cell stands for, as a token, a label or an id, or "" if it is blank.

    Equal values have one name in every format: "2.0", "+2" and "2.000e+00" are 2, and "TRUE" is
    true.
    """
    if not text or text.isspace():
        return ""
    whole = SIGNED_WHOLE.fullmatch(text)
    if whole is not None:
        if whole["sign"] == "-" and whole["digits"] != "0":
            return f"-{whole['digits']}"
        return whole["digits"]
    lower = text.lower()
    if lower in TRUTH:
        return lower
    if PRINTED_NUMBER.fullmatch(text):
        return text_of(float(text))
    return text


def label_name_of(text: str) -> str:
    """Return the name that a cell stands for as a label: that of `name_of`, or a plain number.

    "1.50" is 1.5, and ".5" is 0.5. Ids and tokens keep their decimals: sections are numbered so.
    """
    name = name_of(text)
    if DECIMAL_NUMBER.fullmatch(name):
        return text_of(float(name))
    return name


def mark_of(cell: Any) -> bool:
    """Return True if a cell of a one-hot label column means that the row has the label.

    Raises:
        BadCellError: If the cell is neither blank nor a key of `TRUTH_VALUES`.
    """
    text = name_of(text_of(cell).strip().lower())
    if text not in TRUTH_VALUES:
        raise BadCellError(
            f"found {quote(text)}; expected 1 or 0, true or false, yes or no, or a blank cell"
        )
    return TRUTH_VALUES[text]


class Names(dict[str, int]):
    """The distinct names of a column, each with its code, in the order of first appearance.

    As a dict, it maps the text of a cell to its code. A new text is added.

    Args:
        name_of: Function that converts the text of a cell to a name. It runs once per text.

    Attributes:
        names: The name of each code.
        spellings: The first text of each code, or the name of a `PRINTED_NUMBER`.
    """

    def __init__(self, name_of: Callable[[str], str] = name_of) -> None:
        self.name_of = name_of
        self.names = list[str]()
        self.spellings = list[str]()
        self._codes = dict[str, int]()

    def __missing__(self, text: str) -> int:
        name = self.name_of(text)
        code = self._codes.setdefault(name, len(self.names))
        if code == len(self.names):
            self.names.append(name)
            is_printed = isinstance(text, str) and PRINTED_NUMBER.fullmatch(text)
            self.spellings.append(name if is_printed else text)
        self[text] = code
        return code

    def code(self, name: str) -> int:
        """Return the code of a name, or -1 if no cell had this name."""
        return self._codes.get(name, -1)


def names_missing(text: str) -> bool:
    """Return True if a label may stand for a missing one, such as NA or ?."""
    return text.strip().lower() in MISSING_LABELS


def without_values(cells: Cells, missing: frozenset[str]) -> Cells:
    """Return cells in which those with some names are missing.

    Args:
        cells: The cells. Lists among them stay as they are.
        missing: Names of the cells that are missing, as `name_of` returns them.
    """
    cells = with_codes(cells)
    if isinstance(cells, Coded):
        return Coded(cells.codes, [*without_values(cells.values, missing)])
    found = []
    for cell in as_list(cells):
        is_value = isinstance(cell, str | int | float | Decimal)
        is_missing = is_value and name_of(text_of(cell).strip()) in missing
        found.append(None if is_missing else cell)
    return found


def without_unit(cells: Cells, unit: str) -> Cells:
    """Return cells in which texts lack a unit, such as km in 12 km."""
    if isinstance(cells, Coded):
        return Coded(cells.codes, [*without_unit(cells.values, unit)])
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iufb":
        return cells
    return [x.replace(unit, "").strip() if isinstance(x, str) else x for x in as_list(cells)]


class CodedColumn:
    """Codes of the cells of a column into its distinct names, block by block.

    Args:
        name_of: Function that converts the text of a cell to a name.

    Attributes:
        known: The names.
    """

    def __init__(self, name_of: Callable[[str], str] = name_of) -> None:
        self.known = Names(name_of)

    def codes_of(self, cells: Cells) -> tuple[Codes, Reasons]:
        """Return the codes of cells, and the reason for each that can't be read, by its index."""
        cells = with_codes(cells)
        if isinstance(cells, Coded):
            texts, problems = _texts_of(cells.values)
            # A missing cell has code -1, which takes the last code of this table.
            texts, table = [*texts, ""], np.zeros(len(texts) + 1, np.int32)
            distinct, first = np.unique(cells.codes, return_index=True)
            for index in distinct[np.argsort(first)].tolist():
                table[index] = self.known[texts[index]]
            return table[cells.codes], problems_of_rows(cells.codes, problems)
        found: Sequence[str] = as_list(cells) if isinstance(cells, np.ndarray) else cells
        problems = {}
        if set(map(type, found)) != {str}:  # True and 1 would be equal keys
            found, problems = _texts_of(found)
        return np.fromiter(map(self.known.__getitem__, found), np.int32, len(found)), problems


class KeyColumns:
    """Codes of the rows of one or several columns into their distinct keys, block by block.

    A key in several columns is a line of csv of their names, such as P07,3.

    Args:
        count: Number of columns.
        name_of: Function that converts the text of a cell to a name.

    Attributes:
        columns: The columns.
    """

    def __init__(self, count: int, name_of: Callable[[str], str] = name_of) -> None:
        self.columns = [CodedColumn(name_of) for _ in range(count)]
        self._joined: Any = Names(self._text_of)  # type: ignore[arg-type] # of tuples of codes

    def joined(self, parts: Sequence[Codes]) -> Codes:
        """Return the code of the key of each row, from the codes of its cell in each column."""
        if len(parts) == 1:
            return parts[0]
        keys = zip(*(codes.tolist() for codes in parts), strict=True)
        return np.fromiter(map(self._joined.__getitem__, keys), np.int32, len(parts[0]))

    @property
    def spellings(self) -> list[str]:
        """The text of each code."""
        if len(self.columns) == 1:
            return self.columns[0].known.spellings
        names: list[str] = self._joined.names
        return names

    def _text_of(self, codes: Sequence[int]) -> str:
        names = [x.known.names[code] for x, code in zip(self.columns, codes, strict=True)]
        return delimited_line(names, ",").removesuffix("\n")


def note_problems(problems: Reasons, name: Name, found: Mapping[int, str]) -> None:
    """Add the problems of a column to those of the rows. The first problem of a row stays."""
    for row, reason in found.items():
        problems.setdefault(row, f"{name}: {reason}")


def numbers_of(cells: Cells, decimal: str = ".") -> tuple[Float64s, Reasons]:
    """Return the number in each cell, and the reason for each that can't be read, by its index.

    A missing number is NaN.

    Args:
        cells: The cells.
        decimal: Decimal mark of numbers in texts.
    """
    if isinstance(cells, Coded):
        values, wrong = numbers_of([*cells.values, None], decimal)
        return values[cells.codes], problems_of_rows(cells.codes, wrong)
    found = None
    if decimal == "." or isinstance(cells, np.ndarray):
        found = plain_numbers(cells)
    if found is not None and not (np.abs(found) > FLOAT32_MAX).any():
        return found, {}
    numbers = np.full(len(cells), np.nan)
    problems = {}
    for row, cell in enumerate(as_list(cells)):
        try:
            numbers[row] = number_of(cell, decimal)
        except BadCellError as error:
            problems[row] = str(error)
    return numbers, problems


def number_of(cell: Any, decimal: str = ".") -> float:
    """Return the number in a cell, or NaN if it is missing.

    Times of day and durations are seconds. True is 1, and false is 0.

    Raises:
        BadCellError: If the cell isn't a number, or is too large for float32.
    """
    number = _number_in(cell, decimal)
    if number is None:
        advice = "a missing number is a blank cell or NA, or named in data.na_values"
        if _number_in(cell, "," if decimal == "." else ".") is not None:
            advice = f"data.decimal is {decimal!r}: write this mark, or train with the other one"
        raise BadCellError(f"expected a number, found {quote(str(cell))}; {advice}")
    if abs(number) > FLOAT32_MAX:
        raise BadCellError(f"{cell} is infinite or too large for float32")
    return number


def plain_numbers(cells: Cells) -> Float64s | None:
    """Return the numbers in cells that are all numbers, or all texts of numbers, or else None."""
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind in "iufb":
            return cells.astype(np.float64)
        return None
    assert not isinstance(cells, Coded)
    try:
        if not is_plain("".join(cells)):
            return None
        return np.array(list(map(float, cells)))
    except ValueError:
        return None
    except TypeError:
        pass
    if not set(map(type, cells)) <= NUMBERS:
        return None
    try:
        return np.array(cells, np.float64)
    except OverflowError:
        return None


def is_plain(text: str) -> bool:
    """Return True if no number in a text has a form that only Python reads: 1_000 or ١٢."""
    return text.isascii() and "_" not in text


def is_number(text: str) -> bool:
    """Return True if a text is a number with a decimal point, also if it is infinite or NaN."""
    return _parsed(text) is not None


def with_point(text: str, decimal: str = ",") -> str:
    """Return the text of a number with a decimal point, and without marks between thousands.

    Args:
        text: The text.
        decimal: Its decimal mark.

    Raises:
        BadCellError: If it is a number with a decimal point in place of a comma.
    """
    text = text.strip().replace(MINUS, "-")
    negative = NEGATIVE.fullmatch(text)
    if negative is not None:
        text = f"-{negative['in'] or negative['before']}"
    grouped = GROUPED[decimal].fullmatch(text)
    if grouped is not None:
        text = text.replace(grouped["mark"], "")
    if decimal == ".":
        return text
    if "." in text and _parsed(text.replace(",", "")) is not None:
        raise BadCellError(f"found a point in {quote(text)}; data.decimal is ',': write commas")
    return text.replace(",", ".")


def items_of(cell: Any, *, bare: bool = False) -> list[Any] | None:
    """Return the items of a cell that is a list, or None if it isn't one.

    A list is a list, tuple, set or array; or the text of one, as JSON, Python or numpy write it; or
    the only list in an object, as in ``{"choices": ["a", "b"]}``.

    Args:
        cell: The cell.
        bare: True if the words of a list may be without quotes, ``[E5, E22]`` or ``{A,B}``, or in
            pointed brackets, ``<a><b>``.
    """
    if isinstance(cell, list):
        return cell
    if isinstance(cell, tuple | set | frozenset):
        return list(cell)
    if isinstance(cell, np.ndarray):
        values: list[Any] = cell.tolist()
        return values
    if not isinstance(cell, str):
        return None
    text = cell.strip()
    if bare and TAGS.fullmatch(text):
        return text[1:-1].split("><")
    if text in EMPTY_LISTS or (bare and text == "{}"):
        return []
    named = NAMED_LIST.fullmatch(text)
    text = named["list"] if named else text
    if len(text) < 2 or CLOSING_BRACKETS.get(text[0]) != text[-1]:
        return None
    if text[0] in "[{":
        try:
            found: Any = parse_json(text)
        except NotJSONError:
            pass
        else:
            items: list[Any] | None = only_list(found) if isinstance(found, dict) else found
            return items
    if text.startswith("[{"):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            objects: list[Any] = ast.literal_eval(text)
            return objects
    return _printed_items(text, bare=bare and text[0] != "(")


def objects_of(cell: Any) -> list[Any] | None:
    """Return the items of a cell that is a list beginning with an object, or None if it isn't one.

    The list may be the text of one, as a csv file holds it: ``[{"page": "home"}, …]``.
    """
    if isinstance(cell, str) and cell.lstrip()[:1] == "[" and cell.lstrip("[ \t\r\n")[:1] == "{":
        cell = items_of(cell)
    if isinstance(cell, list) and cell and isinstance(cell[0], dict):
        return cell
    return None


def only_list(fields: dict[str, Any]) -> list[Any] | None:
    """Return the value of an object with one field if it is a list, else None."""
    value = next(iter(fields.values()), None)
    if len(fields) == 1 and isinstance(value, list):
        return value
    return None


def is_multi_hot(lists: Iterable[list[Any]]) -> bool:
    """Return True if lists mark classes by position: all have one length, and only 0 and 1."""
    sizes = set[int]()
    marks = set[str]()
    for items in lists:
        sizes.add(len(items))
        marks.update(map(_mark, items))
        if len(sizes) > 1 or not marks <= {"0", "1"}:
            return False
    if len(marks) == 2:
        return sizes.pop() > 1
    return False


def marked_positions(items: Iterable[Any]) -> list[str]:
    """Return the positions, from 0, of the marks 1 in a list."""
    return [str(index) for index, item in enumerate(items) if _mark(item) == "1"]


def are_marks(items: Sequence[Any]) -> bool:
    """Return True if all items are 0 or 1, also as texts, or true or false."""
    return bool(items) and set(map(_mark, items)) <= {"0", "1"}


def _mark(item: Any) -> str:
    """Return "1" or "0" for a mark, or any other text."""
    name = name_of(str(item))
    return {"true": "1", "false": "0"}.get(name, name)


def problems_of_rows(codes: Codes, problems: Reasons) -> Reasons:
    """Return the problem of each row whose value has one.

    Args:
        codes: Code of each row.
        problems: Maps codes to reasons.
    """
    if not problems:
        return {}
    rows = np.flatnonzero(np.isin(codes, list(problems)))
    return {row: problems[int(codes[row])] for row in rows.tolist()}


def _texts_of(cells: Sequence[Any]) -> tuple[list[str], Reasons]:
    texts = []
    problems = {}
    for at, cell in enumerate(cells):
        try:
            texts.append(text_of(cell))
        except BadCellError as error:
            texts.append("")
            problems[at] = str(error)
    return texts, problems


def _printed_items(text: str, *, bare: bool) -> list[Any] | None:
    """Return the items of a list as Python or numpy print it, or None if a text isn't one."""
    inner = text[1:-1].strip()
    if not inner:
        if text[0] != "{":
            return []
        return None
    if "," in inner and BY_COMMAS.fullmatch(inner):
        words = [word.strip() for word in ITEM.findall(inner)]
    elif BY_BLANKS.fullmatch(inner):
        words = QUOTED_ITEM.findall(inner)
    elif "," not in inner and NESTED.search(inner) is None:
        words = inner.split()
    elif ITEM.fullmatch(inner):  # a word with an apostrophe
        words = [inner]
    else:
        return None
    items = []
    for word in words:
        items.append(_unescaped(word) if word[0] in "'\"" else _bare_item(word))
    is_quoted = any(word[0] in "'\"" for word in words)
    if bare or is_quoted or not any(isinstance(item, str) for item in items):
        return items
    return None


def _bare_item(word: str) -> Any:
    """Return a word of a list without quotes as a value: None, true or false, a number, or text."""
    if word in PRINTED_VALUES:
        return PRINTED_VALUES[word]
    if WHOLE.fullmatch(word):
        return int(word)
    number = _parsed(word)
    if number is None or (len(word) > 1 and word[0] == "0" and word[1] != "."):
        return word
    return number


def _unescaped(literal: str) -> str:
    """Return the text of a string literal of Python."""
    if "\\" in literal:
        with suppress(ValueError, SyntaxError):
            return str(ast.literal_eval(literal))
    return literal[1:-1]


def _number_in(cell: Any, decimal: str) -> float | None:
    """Return the number in a cell, NaN if it is missing, or None if it isn't a number."""
    if cell is None:
        return float("nan")
    if isinstance(cell, list | dict | bytes):
        raise BadCellError(f"expected a text or a number, found {json_type(cell)}")
    if not isinstance(cell, str):
        if isinstance(cell, int | float | Decimal | np.number):
            return _parsed(cell)
        return None
    text = cell.strip()
    lower = text.lower()
    if lower in MISSING_NUMBERS:
        return float("nan")
    if lower in TRUTH:
        return TRUTH[lower]
    text = with_point(text, decimal)
    number = _parsed(text)
    if number is not None:
        return number
    if has_one_unit(text):  # beside plain numbers, the unit of these isn't known
        return None
    try:
        return read_duration(text) / SECOND
    except BadCellError:
        return None


def _parsed(cell: Any) -> float | None:
    if isinstance(cell, str) and not is_plain(cell):
        return None
    try:
        return float(cell)
    except ValueError:
        return None
    except OverflowError:
        return float("inf")
