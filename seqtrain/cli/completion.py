"""What a shell completes after --set: keys of the config, and values of those that list them."""

from __future__ import annotations


def complete_override(incomplete: str) -> list[str]:
    """Return the words that `--set` may go on with.

    Args:
        incomplete: what was typed of `section.key=value`.
    """
    from seqtrain.config.problems import KEYS, choices
    from seqtrain.config.schema import SECTIONS

    keys = [key for key in KEYS if key not in SECTIONS]
    key, equals, value = incomplete.partition("=")
    if not equals:
        return [f"{name}=" for name in keys if name.startswith(key)]
    words = choices(tuple(key.split("."))) if key in keys else []
    return [f"{key}={word}" for word in words if word.startswith(value)]
