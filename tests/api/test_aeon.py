"""aeon's own checks of classifiers, for the estimator behind aeon's interface."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

try:
    from aeon.classification import BaseClassifier
    from aeon.testing.estimator_checking import check_estimator
except ImportError as error:  # numba, which aeon needs, follows new versions of NumPy late
    pytest.skip(f"aeon can't be imported: {error}", allow_module_level=True)

from seqtrain.sklearn import SequenceClassifier


class OfAeon(BaseClassifier):  # type: ignore[misc] # has no types
    """A SequenceClassifier as a classifier of aeon, which passes series as (channels, time)."""

    _tags: ClassVar[dict[str, Any]] = {
        "X_inner_type": ["np-list", "numpy3D"],
        "capability:multivariate": True,
        "capability:unequal_length": True,
    }

    def __init__(self, random_state: Any = 0) -> None:
        self.random_state = random_state
        super().__init__()

    def _fit(self, X: Any, y: Any) -> OfAeon:
        self.inner_ = SequenceClassifier(
            layout="channels_time",
            hidden_size=4,
            max_epochs=2,
            device="cpu",
            random_state=self.random_state,
        )
        self.inner_.fit(X, y)
        return self

    def _predict(self, X: Any) -> Any:
        return self.inner_.predict(X)

    def _predict_proba(self, X: Any) -> Any:
        return self.inner_.predict_proba(X)


@pytest.mark.slow
def test_checks_of_aeon() -> None:
    found = check_estimator(OfAeon)
    failed = {name: result for name, result in found.items() if isinstance(result, Exception)}
    assert not failed
    assert sum(result == "PASSED" for result in found.values()) > 20
