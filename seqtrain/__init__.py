"""seqtrain: train, measure and use classifiers of variable-length sequences.

    import seqtrain

    run = seqtrain.fit("configs/quickstart.yaml")
    classifier = seqtrain.load(run)
    classifier.predict(["move 20 from savings to checking"])[0].label
    seqtrain.evaluate(run).scores.accuracy

The import is light: torch is imported when a name is first used.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqtrain.api.check import check as check
    from seqtrain.api.classifier import Classifier as Classifier
    from seqtrain.api.classifier import load as load
    from seqtrain.api.compare import compare as compare
    from seqtrain.api.diff import diff as diff
    from seqtrain.api.evaluate import evaluate as evaluate
    from seqtrain.api.export import export as export
    from seqtrain.api.fit import fit as fit
    from seqtrain.api.init import init as init
    from seqtrain.api.named_runs import Run as Run
    from seqtrain.api.predict import predict as predict
    from seqtrain.api.predict import predict_steps as predict_steps
    from seqtrain.api.predict import reconstruct as reconstruct
    from seqtrain.api.prediction import Prediction as Prediction
    from seqtrain.api.prediction import Predictions as Predictions
    from seqtrain.api.report import report as report
    from seqtrain.api.run_events import STOP as STOP
    from seqtrain.api.split_results import split_results as split_results
    from seqtrain.api.tune import tune as tune
    from seqtrain.config import Config as Config
    from seqtrain.config import load_config as load_config
    from seqtrain.errors import SeqtrainWarning as SeqtrainWarning

__version__ = "0.1.0"

_MODULES = {
    "STOP": "seqtrain.api.run_events",
    "Classifier": "seqtrain.api.classifier",
    "Config": "seqtrain.config",
    "Prediction": "seqtrain.api.prediction",
    "Predictions": "seqtrain.api.prediction",
    "Run": "seqtrain.api.named_runs",
    "SeqtrainWarning": "seqtrain.errors",
    "check": "seqtrain.api.check",
    "compare": "seqtrain.api.compare",
    "diff": "seqtrain.api.diff",
    "evaluate": "seqtrain.api.evaluate",
    "export": "seqtrain.api.export",
    "fit": "seqtrain.api.fit",
    "init": "seqtrain.api.init",
    "load": "seqtrain.api.classifier",
    "load_config": "seqtrain.config",
    "predict": "seqtrain.api.predict",
    "predict_steps": "seqtrain.api.predict",
    "reconstruct": "seqtrain.api.predict",
    "report": "seqtrain.api.report",
    "split_results": "seqtrain.api.split_results",
    "tune": "seqtrain.api.tune",
}
"""Maps each public name to its module, which `__getattr__` imports on first use."""

# OpenMP reads this when torch is loaded. Threads that spin for long make small batches many times
# slower while other programs use the processor; without spinning they are a third slower when idle.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


if not TYPE_CHECKING:  # with it, no wrong name would be found

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return __dir__()
        if name not in _MODULES:
            raise AttributeError(f"module 'seqtrain' has no attribute {name!r}")
        return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*_MODULES, "__version__"]
