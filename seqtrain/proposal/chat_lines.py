"""Exports of chats, as WhatsApp writes them: a time, a sender and a text per message."""

import re
from collections.abc import Sequence

from seqtrain.errors import DataError
from seqtrain.proposal.shell import rewritten
from seqtrain.text import display_name

MESSAGE = (
    r"^\u200e?\[?([0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4},? [0-9]{1,2}:[0-9]{2}[^]\n-]{0,12}?)"
    r"(?:\]| -) ([^:\n]+): (.*)"
)
"""Pattern of the first line of a message: `12/31/23, 9:15 PM - Anna: Hello` or
`[31.12.23, 21:15:03] Anna: Hello`."""
MESSAGES_AS_CSV = (
    f'import csv, re, sys; start = r"{MESSAGE}"; w = csv.writer(sys.stdout); '
    'w.writerow(["time", "sender", "text"]); '
    r'parts = re.split(r"\n(?=\u200e?\[?[0-9]{1,4}[./-][0-9]{1,2}[./-])", sys.stdin.read()); '
    "found = (re.match(start, x.strip(), re.S) for x in parts); "
    "w.writerows(x.groups() for x in found if x)"
)
"""Program that writes messages as csv. A text may have several lines."""


def refuse_chats(path: str, lines: Sequence[str]) -> None:
    """Raise a DataError with the command that writes csv if most lines begin a message of a chat.

    Args:
        path: The file.
        lines: Its first lines.
    """
    if 2 * sum(bool(re.match(MESSAGE, line)) for line in lines) <= len(lines):
        return
    command = ["python3", "-c", MESSAGES_AS_CSV]
    raise DataError(
        f"{display_name(path)}: holds messages of a chat; to write their times, senders and texts "
        "as columns:",
        *rewritten(command, path, "messages", ending=".csv"),
    )
