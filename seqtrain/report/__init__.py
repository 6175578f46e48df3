"""One HTML file that shows runs: offline, readable on a phone, in dark mode and on paper.

Facts of a run → sections → a page. Nothing here reads files or runs a model. Free of torch.
"""

from seqtrain.report.facts import AnsweredExample, RunFacts
from seqtrain.report.page import render

__all__ = ["AnsweredExample", "RunFacts", "render"]
