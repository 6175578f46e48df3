"""Choice of the engine and of the operations, from a model's config, device and weights."""

import torch
from torch import Tensor

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.cells import CELLS
from seqtrain.engines.interface import Engine, Ops, PaddedOps
from seqtrain.engines.layout import Layout, Padded
from seqtrain.engines.native.library import vector_path, why_unavailable
from seqtrain.engines.native.native_ops import NativeOps
from seqtrain.engines.native.recurrence import NativeEngine
from seqtrain.engines.torch_engine import TorchEngine
from seqtrain.errors import ConfigError

REFERENCE, NATIVE, PADDED = Ops(), NativeOps(), PaddedOps()


def ops_for(tensor: Tensor, layout: Layout | None = None) -> Ops:
    """Return the fastest operations for tensors of this device and type.

    Args:
        tensor: weights or states.
        layout: layout of the time steps. Padded layouts have separate operations.
    """
    if isinstance(layout, Padded):
        return PADDED
    native = tensor.is_cpu and tensor.dtype == torch.float32 and not why_unavailable()
    if native:
        return NATIVE
    return REFERENCE


def choose_engine(
    config: ModelConfig, device: torch.device, dtype: torch.dtype = torch.float32
) -> Engine:
    """Return the engine that computes a model with weights of this device and type.

    Args:
        config: the section model of a config.
        device: device of the weights.
        dtype: type of the weights.

    Raises:
        ConfigError: If model.engine is native, but the native engine can't compute this model.
    """
    asked, unroll = config.engine, config.unroll
    problem = NativeEngine.unavailable(CELLS[config.rnn], device, dtype)
    if asked == "native" and problem:
        raise ConfigError(f"model.engine: found native; {problem}; or set auto or torch")
    if asked == "native":
        return NativeEngine("model.engine")
    if asked == "torch":
        return TorchEngine("model.engine", unroll)
    if unroll != "packed":
        return TorchEngine(f"unroll {unroll}", unroll)
    if device.type != "cpu":
        return TorchEngine(f"its own kernels on {device.type}")
    if problem:
        return TorchEngine(f"without padding, but slower than native: {problem}")
    return NativeEngine(f"cost linear in length, compiled for {vector_path()}")


def engines_by_name(config: ModelConfig, device: torch.device) -> dict[str, Engine]:
    """Return the engines that can compute a model in float32 on a device, by name.

    model.engine is ignored. The engines are, in this order:

    - "torch": torch's engine with packed steps.
    - "native": the native engine, if it is available.
    - "padded" or "masked": torch's engine with this unroll, if model.unroll has this value.

    Args:
        config: the section model of a config.
        device: device that computes.
    """
    engines: dict[str, Engine] = {TorchEngine.name: TorchEngine("packed")}
    if not NativeEngine.unavailable(CELLS[config.rnn], device, torch.float32):
        engines[NativeEngine.name] = NativeEngine("packed")
    if config.unroll != "packed":
        engines[config.unroll] = TorchEngine(f"unroll {config.unroll}", config.unroll)
    return engines
