"""Choice of the engine that computes a model, from its config, device and weights."""

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
    """Return the engine that computes a model with weights of this device and type.

    Raises:
        ConfigError: If model.engine is native, which can't run.
    """
    asked, unroll = config.engine, config.unroll
    problem = NativeEngine.unavailable(CELLS[config.rnn], device, dtype)
    if asked == "native" and problem:
        raise ConfigError(f"model.engine: found native; {problem}; or set auto or torch")
    if asked == "native":
        return NativeEngine("model.engine")
    if asked == "torch" or unroll != "packed":
        return TorchEngine("model.engine" if asked == "torch" else f"unroll {unroll}", unroll)
    if device.type != "cpu":
        return TorchEngine(f"its own kernels on {device.type}")
    if problem:
        return TorchEngine(f"without padding, but slower than native: {problem}")
    return NativeEngine(f"cost linear in length, compiled for {vector_path()}")


def engines_by_name(config: ModelConfig, device: torch.device) -> dict[str, Engine]:
    """Return all engines that can compute a model in float32, torch first.

    They run over packed steps. If model.unroll isn't packed, torch with that unroll is the last.
    """
    engines: dict[str, Engine] = {TorchEngine.name: TorchEngine("packed")}
    if not NativeEngine.unavailable(CELLS[config.rnn], device, torch.float32):
        engines[NativeEngine.name] = NativeEngine("packed")
    if config.unroll != "packed":
        engines[config.unroll] = TorchEngine(f"unroll {config.unroll}", config.unroll)
    return engines
