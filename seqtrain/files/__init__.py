"""Files of the cache and of runs: safe opening, atomic writing, and verification."""
