"""Training: loss, optimization and exact state. Touches no file, prints nothing."""
