"""Which engine computes a model, and why: decided once, from its config, device and weights."""

import torch

from seqtrain.config.schema import ModelConfig
from seqtrain.errors import ConfigError
from seqtrain.model.cells import CELLS
from seqtrain.model.engines.interface import Engine
from seqtrain.model.engines.native.library import vector_path
from seqtrain.model.engines.native.recurrence import NativeEngine
from seqtrain.model.engines.torch_engine import TorchEngine


def choose_engine(
    config: ModelConfig, device: torch.device, dtype: torch.dtype = torch.float32
) -> Engine:
    """Return the engine that computes a model of these weights.

    Raises:
        ConfigError: native is asked for and can't run.
    """
    asked, unroll = config.engine, config.unroll
    absent = NativeEngine.why_not(CELLS[config.rnn], device, dtype)
    if asked == "native" and absent:
        raise ConfigError(f"model.engine: found native; {absent}; or set auto or torch")
    if asked == "native":
        return NativeEngine("model.engine")
    if asked == "torch" or unroll != "packed":
        return TorchEngine("model.engine" if asked == "torch" else f"unroll {unroll}", unroll)
    if device.type != "cpu":
        return TorchEngine(f"its own kernels on {device.type}")
    if absent:
        return TorchEngine(f"without padding, but slower than native: {absent}")
    return NativeEngine(f"cost linear in length, compiled for {vector_path()}")


def serving_engines(
    config: ModelConfig, device: torch.device, dtype: torch.dtype = torch.float32
) -> list[str]:
    """Return the names of the engines that can compute a model's cell, packed; torch first."""
    absent = NativeEngine.why_not(CELLS[config.rnn], device, dtype)
    return [TorchEngine.name] if absent else [TorchEngine.name, NativeEngine.name]
