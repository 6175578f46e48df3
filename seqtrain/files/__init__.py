"""Formats of data files; safe opening, atomic writing, and verification of files and folders."""
