"""seqtrain: train, measure and use classifiers of variable-length sequences.

    import seqtrain

    run = seqtrain.fit("configs/quickstart.yaml")
    classifier = seqtrain.load(run)
    classifier.predict(["move 20 from savings to checking"])[0].label
    seqtrain.evaluate(run).scores.accuracy

Importing it is light: torch comes with the first use of a name. Which names there are, and where
each is defined, stands in `__init__.pyi`, for type checkers and for the code below.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# Read when torch is loaded. Waiting threads that spin long make a small batch many times slower
# where other programs need the processor too; not to spin at all, a third where none do.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


@cache
def _homes() -> dict[str, str]:
    """Read the module of each public name off the stub."""
    import ast

    stub = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    return {
        alias.name: str(node.module)
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name.startswith("_") or name not in _homes():
        raise AttributeError(f"module 'seqtrain' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_homes()[name]), name)


def __dir__() -> list[str]:
    return [*_homes(), "__version__"]
