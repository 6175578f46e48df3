"""seqtrain: train, measure and use classifiers of variable-length sequences.

    import seqtrain

    run = seqtrain.fit("configs/quickstart.yaml")
    classifier = seqtrain.load(run)
    classifier.predict(["move 20 from savings to checking"])[0].label
    seqtrain.evaluate(run).scores.accuracy

Importing it is light: torch comes with the first use of a name below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqtrain.comparison.compare import compare
    from seqtrain.config import Config, load_config
    from seqtrain.workflows.check import check
    from seqtrain.workflows.classifier import Classifier, Prediction, load
    from seqtrain.workflows.evaluate import evaluate
    from seqtrain.workflows.events import Run
    from seqtrain.workflows.fit import fit
    from seqtrain.workflows.predict import predict
    from seqtrain.workflows.reconstruct import reconstruct
    from seqtrain.workflows.steps import predict_steps

__version__ = "0.1.0"

_HOMES = {
    "Config": "seqtrain.config",
    "load_config": "seqtrain.config",
    "check": "seqtrain.workflows.check",
    "Classifier": "seqtrain.workflows.classifier",
    "Prediction": "seqtrain.workflows.classifier",
    "load": "seqtrain.workflows.classifier",
    "compare": "seqtrain.comparison.compare",
    "evaluate": "seqtrain.workflows.evaluate",
    "Run": "seqtrain.workflows.events",
    "fit": "seqtrain.workflows.fit",
    "predict": "seqtrain.workflows.predict",
    "predict_steps": "seqtrain.workflows.steps",
    "reconstruct": "seqtrain.workflows.reconstruct",
}

__all__ = [
    "Classifier",
    "Config",
    "Prediction",
    "Run",
    "__version__",
    "check",
    "compare",
    "evaluate",
    "fit",
    "load",
    "load_config",
    "predict",
    "predict_steps",
    "reconstruct",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'seqtrain' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
