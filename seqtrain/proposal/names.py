"""Usual names of columns, and what they say about a column."""

import re

from seqtrain.proposal.profile import ColumnProfile

LABEL_NAMES = (
    "label",
    "labels",
    "class",
    "target",
    "category",
    "y",
    "intent",
    "topic",
    "sentiment",
    "tag",
    "type",
    "language",
    "lang",
    "genre",
    "rating",
    "stars",
    "gold",
    "classification",
    "outcome",
    "result",
    "failure",
    "failed",
    "fault",
    "anomaly",
    "activity",
)
TEXT_NAMES = (
    "text",
    "sequence",
    "sentence",
    "tokens",
    "content",
    "document",
    "review",
    "message",
    "question",
    "query",
    "utterance",
    "comment",
    "tweet",
    "post",
    "seq",
    "events",
    "symbols",
    "values",
    "series",
    "features",
    "name",
    "word",
    "x",
    "input",
)
HEADLINE_NAMES = ("title", "subject", "headline", "summary")
BODY_NAMES = ("body", "description", "text", "content", "review", "abstract", "message")
GROUP_NAMES = ("session", "session_id", "conversation", "conversation_id", "dialogue", "dialog_id")
"""Names of columns that tell which rows belong together."""
ROW_NAMES = ("id", "index", *GROUP_NAMES)
OWNER_NAMES = (
    "customer",
    "client",
    "user",
    "patient",
    "subject",
    "author",
    "speaker",
    "participant",
    "machine",
    "device",
    "account",
    "person",
    "driver",
    "writer",
    "visitor",
    "student",
)
"""Names of columns whose value the rows of one owner share."""
KNOWN_NAMES = {*LABEL_NAMES, *TEXT_NAMES, *HEADLINE_NAMES, *BODY_NAMES, *ROW_NAMES, ""}
CODE_NAME = re.compile(r"(^|[^a-z])([a-z]?id|uid|session|case|trip|code|key|zip|poi)([^a-z]|$)")
"""Pattern in the names of columns whose numbers are codes, such as case_id."""
TIME_WORD = re.compile(r"(time|timestamp|date|datetime|when|ts|epoch|step|order|frame|t)")
TIME_NAME = re.compile(rf"(^|[^a-z]){TIME_WORD.pattern}$")
"""Pattern in the names of columns whose numbers are times, such as event_time."""


def is_code(column: ColumnProfile) -> bool:
    """Return True if the column is named like codes, such as case_id."""
    return bool(CODE_NAME.search(column.word))


def names_owner(column: ColumnProfile) -> bool:
    """Return True if the column is named like owners, such as customer_nr."""
    return not set(re.split("[-_]", column.word)).isdisjoint(OWNER_NAMES)


def is_code_or_owner(column: ColumnProfile) -> bool:
    """Return True if the column is named like codes or owners."""
    return is_code(column) or names_owner(column)


def is_time(column: ColumnProfile) -> bool:
    """Return True if the column is named like times, such as event_time."""
    return bool(TIME_NAME.search(column.word))
