"""Training: loss, optimization, metrics and exact state. Touches no file, prints nothing."""
