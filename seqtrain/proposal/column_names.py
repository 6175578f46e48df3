"""Usual names of columns in data files."""

LABEL_NAMES = (
    *("label", "labels", "class", "target", "category", "y", "intent", "topic", "sentiment"),
    *("tag", "type", "language", "lang", "genre", "rating", "stars", "gold", "classification"),
    *("outcome", "result"),
)
TEXT_NAMES = (
    *("text", "sequence", "sentence", "tokens", "content", "document", "review", "message"),
    *("question", "query", "utterance", "comment", "tweet", "post", "seq", "events", "symbols"),
    *("values", "series", "features", "name", "word", "x", "input"),
)
HEADLINE_NAMES = ("title", "subject", "headline", "summary")
BODY_NAMES = ("body", "description", "text", "content", "review", "abstract", "message")
GROUP_NAMES = ("session", "session_id", "conversation", "conversation_id", "dialogue", "dialog_id")
"""Names of columns that tell which rows belong together."""
ROW_NAMES = ("id", "index", *GROUP_NAMES)
OWNER_NAMES = (
    *("customer", "client", "user", "patient", "subject", "author", "speaker", "participant"),
    *("machine", "device", "account", "person", "driver", "writer", "visitor", "student"),
)
"""Names of columns whose value the rows of one owner share."""
KNOWN_NAMES = {*LABEL_NAMES, *TEXT_NAMES, *HEADLINE_NAMES, *BODY_NAMES, *ROW_NAMES, ""}
