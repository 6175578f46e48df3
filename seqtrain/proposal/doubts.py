"""Doubts about the columns of a config's training data, for `seqtrain data`."""

from collections.abc import Iterator

from seqtrain.config import Config
from seqtrain.errors import DataError
from seqtrain.proposal.options import FileLayout, InitOptions
from seqtrain.proposal.proposal import odd_cells, shared_owner
from seqtrain.proposal.reading import ReadingProgress, read_table
from seqtrain.proposal.roles import owner_of, tells_label
from seqtrain.sequences.sources import files_of


def column_doubts(config: Config) -> Iterator[str]:
    """Yield doubts about the columns of train.

    They are about nearly numeric columns, whose other cells are named with their lines, about
    owners of rows that a split can divide, and about columns that give the label away.

    Args:
        config: The config.

    """
    data = config.data
    keys = ("header", "format", "delimiter", "encoding", "quoting", "sheet")
    options = InitOptions(**{key: getattr(data, key) for key in keys})
    joins = [dict(join) for join in data.join or ()]
    layout = FileLayout({"train": data.train}, options, data.path, joins)
    try:
        files = files_of("train", data.train)
        table = read_table(files, layout, ReadingProgress(), is_train=False)
    except DataError:  # the config reads them in another way
        return
    sequence = data.sequence if isinstance(data.sequence, list) else [data.sequence]
    used = {*map(str, sequence), *(data.steps or ()), *(data.static or ())}
    for column in table.columns:
        if column.is_odd.any():
            yield f"{odd_cells(column, table)}; the others are {column.kind}s"
    if isinstance(data.label, list):
        label = None
    else:
        label = table.column(data.label or "label")
    others = (data.label, data.id, data.group, data.order, "file", "folder")
    unused = [x for x in table.columns if x.name not in others and str(x.name) not in used]
    if data.id is None:
        yield from shared_owner(owner_of(unused), config)
    for column in table.columns:
        if label is None or column.name in others or not column.repeats_as_labels:
            continue
        reason = tells_label(column, label)
        if reason:
            if str(column.name) in used:
                use = "it is used"
            else:
                use = "it isn't used"
            yield f"{column.shown} gives the label away ({reason}); {use}"
