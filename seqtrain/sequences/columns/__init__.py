"""Columns: the kinds of input that an example can have, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seqtrain.sequences.columns.column import Column
from seqtrain.sequences.columns.column_table import RowFeatures, StepsColumn
from seqtrain.sequences.columns.scaling import LAST, MASK
from seqtrain.sequences.columns.series_column import SeriesColumn
from seqtrain.sequences.columns.symbol_column import SymbolColumn
from seqtrain.sequences.columns.text_column import TextColumn
from seqtrain.sequences.saved_values import saved_choice

if TYPE_CHECKING:  # exported models read rows without pydantic
    from seqtrain.config.schema import Config

COLUMNS: dict[str, type[Column]] = {
    column.kind: column for column in (TextColumn, SymbolColumn, SeriesColumn, StepsColumn)
}
"""Maps each value of data.kind to the class of the sequence column."""


def column_from_config(config: Config) -> Column:
    """Return the unfitted sequence column that a config describes."""
    data, sizes = config.data, config.model.subwords
    subwords = None if sizes is None else (sizes[0], sizes[1])
    match data.kind:
        case "features":
            return SeriesColumn(data.missing, data.standardize)
        case "steps":
            kinds = data.steps or {}
            return StepsColumn.from_kinds(kinds, data.missing, standardize=data.standardize)
        case "tokens":
            return SymbolColumn(subwords=subwords)
        case _:
            return TextColumn(
                subwords=subwords, tokenizer_name=data.tokenizer, lowercase=data.lowercase
            )


def row_features_from_config(config: Config) -> RowFeatures | None:
    """Return the unfitted row features that a config describes, or None without data.static."""
    if config.data.static is None:
        return None
    missing = MASK if config.data.missing == LAST else config.data.missing
    return RowFeatures.from_kinds(config.data.static, missing)


def column_from_dict(values: Any, tokens: Any) -> Column:
    """Build a fitted sequence column from saved values, which may come from anyone.

    Args:
        values: Result of `Column.to_dict`.
        tokens: Result of `Column.vocabulary_dict`.

    Raises:
        ValueError: If values contradict each other or are out of range.
        KeyError: If a value is missing.
        TypeError: If a value has the wrong type.
    """
    kind = saved_choice("kind", values["kind"], (*COLUMNS,))
    return COLUMNS[kind].from_dict(values, tokens)
