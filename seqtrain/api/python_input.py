"""Input from Python for a classifier: sequences or tables in memory, as examples."""

from collections.abc import Iterable, Sequence
from typing import Any

from seqtrain.errors import DataError
from seqtrain.sequences.examples import BadRow, Example
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.read_options import Column, column_names
from seqtrain.sequences.readers import TableSource, read_rows
from seqtrain.sequences.readers.sequences import sequence_from_python
from seqtrain.sequences.readers.table_source import columns_of
from seqtrain.text import listed


def examples_of(
    given: Any,
    preprocessing: Preprocessing,
    groups: Iterable[str | None] | None = None,
    keep: Sequence[Column] = (),
) -> Iterable[Example]:
    """Return sequences, or the rows of a table, as a reader of files returns examples.

    The rows of a table are read while the result is iterated over. Their errors are raised then.

    Args:
        given: Sequences or a table, as for `Classifier.predict`.
        preprocessing: Preprocessing of the classifier.
        groups: Group of each sequence, or None. It must be None for a table, because a table has
            its own column of groups.
        keep: Columns of a table whose cells are copied to `Example.kept`.

    Raises:
        DataError: If a sequence can't be read, if the model needs a table, or if `groups` isn't a
            string or None for each sequence.
    """
    if columns_of(given) is not None:
        if groups is not None:
            raise DataError("groups: a table has its own, in the column of data.group")
        return read_rows(TableSource(given, preprocessing.schema, keep=keep), labelled=False)
    given, schema = as_list(given), preprocessing.schema
    if given and preprocessing.reads_tables:
        own = [*map(str, schema.sequence_columns()), *column_names(schema.static)]
        columns = f"the model reads the columns {listed(own)}"
        raise DataError(f"sequences: {columns}; give a table")
    names = [None] * len(given) if groups is None else list(groups)
    if len(names) != len(given):
        raise DataError(f"groups: found {len(names)}; expected one for each sequence")
    if not all(name is None or isinstance(name, str) for name in names):
        raise DataError("groups: expected a string or None for each sequence")
    examples = []
    for number, (sequence, name) in enumerate(zip(given, names, strict=True), start=1):
        try:
            read = sequence_from_python(sequence, preprocessing.kind)
        except BadRow as bad:
            raise DataError(f"sequence {number}: {bad}") from None
        examples.append(Example(read, None, number, group=name))
    return examples


def as_list(sequences: Any) -> list[Any]:
    """Return an iterable of sequences as a list.

    Raises:
        DataError: If `sequences` is no iterable, or if it is a single text.
    """
    try:
        if not isinstance(sequences, str | bytes):
            return list(sequences)
    except TypeError:
        pass
    found = f"found one {type(sequences).__name__}"
    raise DataError(f"sequences: {found}; expected a list of sequences")
