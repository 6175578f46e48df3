"""Comparison of the variants of running a model over sequences of unequal length."""
