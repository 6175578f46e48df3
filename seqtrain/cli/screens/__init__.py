"""Output of the commands: tables, progress bars, and rows of predictions."""
