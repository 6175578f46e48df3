"""Types of the values in a config, and the base of its sections.

Each type has its limits and, where pydantic has no words for it, a description for messages.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic_core import PydanticCustomError
from typing_extensions import NotRequired, TypedDict

from seqtrain.config.document import brief, flow
from seqtrain.metrics import MONITORED
from seqtrain.tables.formats import is_text_encoding

BROKEN_RULE = "broken_rule"
"""Type of the errors of pydantic whose message is shown to the user unchanged."""


def rule_error(text: str) -> PydanticCustomError:
    """Return an error of pydantic whose message, `text`, is shown to the user unchanged."""
    return PydanticCustomError(BROKEN_RULE, "{text}", {"text": text})


class Section(BaseModel):
    """Base of the sections of a config: immutable, with strict types, without unknown keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    def reset(self, key: str, value: Any = None) -> None:
        """Change the value of a key while the section is validated. The key isn't set by this.

        Args:
            key: The key.
            value: The new value, or None for the key's default.
        """
        if value is None:
            self.__dict__[key] = type(self).model_fields[key].default
        else:
            self.__dict__[key] = value


def _described(words: str, **limits: Any) -> Any:
    """Return a field of pydantic with a description of its values for messages.

    Args:
        words: The description. It becomes the comment of the field in the JSON Schema.
        limits: Limits of the value, as `pydantic.Field` takes them.
    """
    return Field(json_schema_extra={"$comment": words}, **limits)


def _satisfying(condition: Callable[[Any], bool], words: str) -> AfterValidator:
    """Return a validator of pydantic that requires a condition.

    Args:
        condition: Function that receives the value and returns True if it is valid.
        words: Description of the valid values, for the message.
    """

    def check(value: Any) -> Any:
        if not condition(value):
            raise rule_error(f"found {brief(value)}; expected {words}")
        return value

    return AfterValidator(check)


NO_NUL = r"^[^\x00]+$"
LARGEST_WIDTH = 65536
PositiveInt = Annotated[int, Field(ge=1, le=2**31 - 1)]
Width = Annotated[int, Field(ge=1, le=LARGEST_WIDTH)]
Epochs = Annotated[int, Field(ge=1, le=1_000_000)]
LearningRate = Annotated[float, Field(gt=0, le=1000)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
HeldOut = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[float, Field(gt=0, le=1_000_000_000)]
Encoding = Annotated[
    str, _satisfying(is_text_encoding, "the name of a text encoding, such as cp1252, gbk or utf-16")
]
Path = Annotated[str, _described("a file path", pattern=NO_NUL)]
ColumnKey = (
    Annotated[str, _described("a column name", pattern=NO_NUL)]
    | Annotated[int, _described("a column number (the first is 0)", ge=0, le=2**31 - 1)]
)
Columns = Annotated[list[ColumnKey], _described("a list of columns", min_length=1)]
ColumnName = Annotated[str, _described("a column name", pattern=NO_NUL, min_length=1)]


class _Fold(TypedDict):
    fold: PositiveInt
    of: PositiveInt


ColumnNames = Annotated[list[ColumnName], Field(min_length=1)]


class _JoinKeys(TypedDict):
    left: ColumnName | ColumnNames
    right: ColumnName | ColumnNames


def _check_key(value: Any) -> Any:
    """Return the value of `on` of a join unchanged, if it has one of the allowed forms.

    Raises:
        PydanticCustomError: If it has another form. Two names in a mapping are the key of the table
            and that of the file.
    """
    hint = ""
    if isinstance(value, dict):
        keys = _JoinKeys.__required_keys__
        if value.keys() == keys and len({_num_columns(names) for names in value.values()}) == 1:
            return value
        names = list(value.values())
        if len(value) == 1:
            names = [*(value.keys() - keys), *names]
        if value.keys() != keys and len(names) == 2 and all(map(_num_columns, names)):
            hint = f"; did you mean {flow({'left': names[0], 'right': names[1]})}?"
    elif _num_columns(value):
        return value
    raise rule_error(
        f"found {brief(value)}; expected COLUMN, a list, {{left: COLUMN, right: COLUMN}} or row"
        f"{hint}"
    )


def _num_columns(names: Any) -> int:
    """Return the number of columns that a value of `on` names, or 0 if it is something else."""
    if isinstance(names, str):
        return 1
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return len(names)
    return 0


class _Join(TypedDict):
    file: Path
    on: Annotated[ColumnName | ColumnNames | _JoinKeys, BeforeValidator(_check_key)]
    header: NotRequired[bool]


class _Window(TypedDict, total=False):
    steps: PositiveInt
    stride: PositiveInt
    label: Literal["last", "majority", "constant"]


class _TokenColumn(TypedDict):
    token: Literal[True]
    min_count: PositiveInt


class _NumberColumn(TypedDict):
    number: Literal[True]
    by: ColumnName


class _Augmentation(TypedDict, total=False):
    shift: Annotated[float, Field(ge=0, le=10)]
    slice: Fraction


class _Range(TypedDict):
    low: int | float
    high: int | float


def _names_groups(pattern: str) -> bool:
    """Return True if a text is a regular expression with at least one named group."""
    try:
        return bool(re.compile(pattern).groupindex)
    except re.error:
        return False


Fold = Annotated[
    _Fold,
    _described("{fold: I, of: N}"),
    _satisfying(
        lambda fold: 2 <= fold["of"] >= fold["fold"], "fold from 1 to of, and of from 2 on"
    ),
]
PathPattern = Annotated[
    str,
    _satisfying(
        _names_groups,
        r"a regular expression with named groups, such as (?P<activity>[a-z]+)_(?P<take>\d+)",
    ),
]
Joins = Annotated[
    list[Annotated[_Join, _described("{file: FILE, on: COLUMN}")]],
    _described("a list of {file: FILE, on: COLUMN}", min_length=1),
]
Window = Annotated[
    _Window,
    _described("{steps: N, stride: M, label: last, majority or constant}"),
    _satisfying(
        lambda window: "steps" in window or window.get("label") == "constant",
        "steps: N, or label: constant",
    ),
]
TokenForm = Annotated[_TokenColumn, _described("{token: true, min_count: N}")]
NumberForm = Annotated[_NumberColumn, _described("{number: true, by: COLUMN}")]
StepKinds = Annotated[
    dict[ColumnName, Literal["token", "number", "order"] | TokenForm | NumberForm],
    _described("{column: token, number or order}", min_length=1),
]
StaticKinds = Annotated[
    dict[ColumnName, Literal["token", "number"] | TokenForm],
    _described("{column: token or number}", min_length=1),
]
MissingCells = Annotated[
    dict[ColumnName, Annotated[list[str | int | float], Field(min_length=1)]],
    _described("{column: [cell, …]}", min_length=1),
]
Units = Annotated[
    dict[ColumnName, Annotated[str, Field(min_length=1, max_length=16)]],
    _described("{column: unit}", min_length=1),
]
Files = Annotated[list[Path], _described("a list of file paths", min_length=1)]
Paths = Annotated[
    Files, BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]
Label = Annotated[str, Field(min_length=1)]
ClassWeights = Annotated[dict[Label, Positive], _described("{label: weight above 0}")]
Interval = Annotated[
    dict[Literal["steps", "minutes"], Positive],
    _described("{steps: N} or {minutes: M} above 0", min_length=1, max_length=1),
    _satisfying(lambda every: every.get("steps", 1.0).is_integer(), "a whole number of steps"),
]
CudaIndex = Annotated[str, _described("cuda:N", pattern=r"^cuda:[0-9]{1,3}$")]
GramSizes = Annotated[
    list[Annotated[int, Field(ge=1, le=16)]],
    _described("[shortest, longest] from 1 to 16", min_length=2, max_length=2),
    _satisfying(lambda sizes: sizes[0] <= sizes[1], "the shorter size first"),
]
GramColumns = Annotated[
    dict[ColumnName, GramSizes], _described("{column: [shortest, longest]}", min_length=1)
]
Convolution = Annotated[
    list[Annotated[int, Field(ge=1, le=4096)]],
    _described("[width, kernel, stride]", min_length=3, max_length=3),
    _satisfying(lambda layer: layer[1] % 2 == 1, "an odd kernel size"),
]
ConvolutionSizes = Annotated[
    list[Convolution],
    _described("a list of [width, kernel, stride] up to 4096", min_length=1, max_length=16),
]
PoolingName = Literal["last", "mean", "max", "sum", "attention"]
PoolingNames = Annotated[
    list[PoolingName],
    _described("a list of these", min_length=1),
    _satisfying(lambda names: len(set(names)) == len(names), "each of them once"),
]
Augmentation = Annotated[
    _Augmentation,
    _described("{shift: deviations, slice: fraction}"),
    _satisfying(bool, "shift, slice or both"),
]
Range = Annotated[_Range, _described("{low: number, high: number}")]
Candidates = Annotated[list[JsonValue], _described("a list of values", min_length=1)] | Range | None
TunedKeys = Annotated[
    dict[str, Candidates],
    _described("a mapping of section.key to a list of values or {low: number, high: number}"),
]
if TYPE_CHECKING:
    Metric: TypeAlias = str
else:
    Metric = Literal[MONITORED]
