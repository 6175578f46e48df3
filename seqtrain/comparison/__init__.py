"""Every way to run a model over sequences of unequal length, measured side by side."""
