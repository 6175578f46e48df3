"""Columns: token sequences, and tables of token and number columns."""
