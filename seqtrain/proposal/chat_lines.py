"""Exports of chats, as WhatsApp writes them: a time, a sender and a text per message."""

from collections.abc import Sequence

from seqtrain.errors import DataError
from seqtrain.proposal.options import FileLayout
from seqtrain.proposal.shell import converting
from seqtrain.tables.conversions.lines import MESSAGE
from seqtrain.text import display_name


def refuse_chats(path: str, lines: Sequence[str], layout: FileLayout) -> None:
    """Raise a DataError with the command that writes csv if most lines begin a message of a chat.

    Args:
        path: The file.
        lines: Its first lines.
        layout: Layout of the files.
    """
    if 2 * sum(bool(MESSAGE.match(line)) for line in lines) <= len(lines):
        return
    raise DataError(
        f"{display_name(path)}: holds messages of a chat; to write their times, senders and texts "
        "as columns:",
        *converting("messages", layout, path),
    )
