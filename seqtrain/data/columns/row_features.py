"""Row features: columns with one value per sequence (data.static)."""

from __future__ import annotations

from dataclasses import dataclass

from seqtrain.data.columns.column_table import ColumnTable


@dataclass(frozen=True)
class RowFeatures(ColumnTable):
    """Columns with one value per example, joined with the pooled sequence."""

    kind = "static"
    array = "static"
