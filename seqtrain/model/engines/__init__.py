"""The engines: ways to compute a recurrence over packed sequences."""
