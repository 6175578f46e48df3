"""Workflows: the verbs as plain functions that join data, model, training and runs."""
