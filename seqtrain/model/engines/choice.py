"""Which engine computes a model, and why: decided once, from its config, device and weights."""

from __future__ import annotations

import torch

from seqtrain.config.schema import ModelConfig
from seqtrain.errors import ConfigError
from seqtrain.model.cells import CELLS
from seqtrain.model.engines.fused.engine import FusedEngine
from seqtrain.model.engines.interface import Engine
from seqtrain.model.engines.native.engine import NativeEngine
from seqtrain.model.engines.native.library import vector_path
from seqtrain.model.engines.torch_engine import TorchEngine
from seqtrain.model.engines.unrolls import UnrolledEngine

ENGINES: dict[str, type[Engine]] = {
    engine.name: engine for engine in (NativeEngine, FusedEngine, TorchEngine)
}
"""By the name that model.engine has; the fastest first."""


def choose_engine(
    config: ModelConfig, device: torch.device, dtype: torch.dtype = torch.float32
) -> Engine:
    """Return the engine that computes a model.

    Args:
        config: model.engine, model.rnn and model.unroll count.
        device: of the weights.
        dtype: of the weights.

    Raises:
        ConfigError: another than auto is asked for and can't run.
    """
    if config.engine == "auto":
        return _choose(config, device, dtype)
    absent = ENGINES[config.engine].why_not(CELLS[config.rnn], device, dtype)
    if absent:
        others = [name for name in ENGINES if name != config.engine]
        raise ConfigError(
            f"model.engine: found {config.engine}; {absent}; or set auto, {' or '.join(others)}"
        )
    return _unrolled(config, "model.engine") or ENGINES[config.engine]("model.engine")


def serving_engines(
    config: ModelConfig, device: torch.device, dtype: torch.dtype = torch.float32
) -> list[str]:
    """Return the names of all engines that can compute a model's cell, packed; torch first."""
    cell = CELLS[config.rnn]
    engines = [name for name, e in ENGINES.items() if not e.why_not(cell, device, dtype)]
    return engines[::-1]


def _choose(config: ModelConfig, device: torch.device, dtype: torch.dtype) -> Engine:
    """Return the fastest engine that serves."""
    cell = CELLS[config.rnn]
    unrolled = _unrolled(config, f"unroll {config.unroll}")
    if unrolled is not None:
        return unrolled
    if device.type != "cpu":
        return TorchEngine(f"its own kernels on {device.type}")
    absent = NativeEngine.why_not(cell, device, dtype)
    if not absent:
        return NativeEngine(f"cost linear in length, compiled for {vector_path()}")
    return FusedEngine(f"cost linear in length; {absent}")


def _unrolled(config: ModelConfig, reason: str) -> UnrolledEngine | None:
    return None if config.unroll == "packed" else UnrolledEngine(config.unroll, reason)
