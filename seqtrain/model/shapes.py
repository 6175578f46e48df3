"""Networks of shapes alone, to check what they need before memory is taken. Room `model`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Make the modules built inside hold neither memory nor initial weights (device "meta")."""
    with torch.device("meta"), _Undrawn():
        yield


class _Undrawn(TorchFunctionMode):
    """Passes over normal draws: on "meta" the first one loads torch's compiler, for a second."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        return kwargs["tensor"] if func is nn.init.normal_ else func(*args, **kwargs)
