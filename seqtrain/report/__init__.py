"""One HTML file about runs: offline, readable on a phone, in dark mode and on paper.

The facts of a run go into templates. Nothing here computes with a model.
"""

from seqtrain.report.facts import PredictedExample, RunFacts, model_card, most_confident_errors
from seqtrain.report.page import render

__all__ = ["PredictedExample", "RunFacts", "model_card", "most_confident_errors", "render"]
