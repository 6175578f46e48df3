"""HTML pages about runs: offline, readable on a phone, in dark mode and on paper.

The results of a run are inserted into templates. No module of this room computes with a model.
"""
