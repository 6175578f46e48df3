"""Files opened safely, written whole or not at all, and verified; for the cache and for runs."""
