"""Searching for better settings: `seqtrain tune` runs many trials, and keeps the best.

Space (what may be tried) → proposal (what to try next, what to give up) → search (which trial
begins when) → workers (processes) → trials (what is kept). README.md here has the spaces.
"""
