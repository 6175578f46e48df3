"""The commands, one per file: their options, and one call of `api`."""
