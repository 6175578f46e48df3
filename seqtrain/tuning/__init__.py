"""Searching for better settings: space → trials (Optuna's study of them) → search → tune."""
