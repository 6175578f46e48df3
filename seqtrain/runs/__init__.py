"""Runs on disk: run directories and model folders, atomic and verified. Trains nothing."""
