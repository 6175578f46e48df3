"""Decisions of a classifier: the classes that it predicts for given probabilities.

Training, evaluation, prediction and the exported script all decide by these functions, in double
precision. B examples, C classes.
"""

from typing import Any

import numpy as np

from seqtrain.tables.blocks import Ints, Mask


def reached(probabilities: Any, thresholds: Any) -> Mask:
    """Return a mask of the classes that are predicted in a multi-label task, (B, C) bool.

    Args:
        probabilities: Probability of each class, (B, C), an array or a tensor on the CPU.
        thresholds: Lowest probability at which each class is predicted, (C,), or (B, C) if it
            differs between examples.
    """
    values = np.asarray(probabilities, dtype=np.float64)
    return values >= np.asarray(thresholds, dtype=np.float64)


def best_class(probabilities: Any, thresholds: Any = ()) -> Ints:
    """Return the index of the class that is predicted in a single-label task, (B,).

    - Without thresholds it is the most probable class.
    - With thresholds it is the class whose probability exceeds its threshold the most.
    - Example: two classes have the thresholds 1 - t and t. The second class is predicted if its
      probability is at least t.

    Args:
        probabilities: Probability of each class, (B, C), an array or a tensor on the CPU.
        thresholds: Threshold of each class, (C,), or (B, C) if it differs between examples. Empty
            to use no thresholds.
    """
    values = np.asarray(probabilities, dtype=np.float64)
    least = np.asarray(thresholds, dtype=np.float64)
    if least.size and least.min() < least.max():
        values = values - least
    chosen: Ints = values.argmax(axis=-1)
    return chosen
