"""One HTML file about runs: offline, readable on a phone, in dark mode and on paper.

The facts of a run go into templates. Nothing here computes with a model.
"""
