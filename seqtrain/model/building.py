"""How modules are built: float32 on the CPU whatever torch's defaults are, and drawing nothing.

torch's modules draw initial weights as they are built, from its global generator; here the weights
of a new module have any content until they are drawn (`SequenceClassifier.initialize`) or loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


@contextmanager
def undrawn() -> Iterator[None]:
    """Make the modules built inside hold float32 on the CPU, without initial values."""
    with _Building("cpu"):
        yield


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Make the modules built inside hold neither memory nor initial weights (device "meta").

    With them one checks what a network needs before memory is taken.
    """
    with _Building("meta"):
        yield


def draw_again(module: nn.Module, generator: torch.Generator) -> None:
    """Draw the initial weights that torch gives each of a module's parts, from a generator."""
    with _Building("cpu", generator):
        for part in module.modules():
            if isinstance(part, nn.Embedding | nn.Linear | nn.RNNBase):
                part.reset_parameters()


class _Building(TorchFunctionMode):
    """Says where new tensors are, and where torch.nn.init draws from; None: it doesn't draw.

    Without draws nothing else is done on "meta", where the first one loads torch's compiler, for a
    second.
    """

    def __init__(self, device: str, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.device = device
        self.generator = generator

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.empty, torch.zeros, torch.tensor):
            kwargs |= {"device": self.device, "dtype": kwargs.get("dtype") or torch.float32}
        elif getattr(func, "__module__", None) == "torch.nn.init":
            if self.generator is None:
                return kwargs["tensor"]
            kwargs["generator"] = self.generator
        return func(*args, **kwargs)
