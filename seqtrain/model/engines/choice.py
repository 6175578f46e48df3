"""Choice of the engine that computes a model, from its config, device and weights."""

import torch

from seqtrain.config.schema import ModelConfig
from seqtrain.errors import ConfigError
from seqtrain.model.cells import CELLS
from seqtrain.model.engines.interface import Engine
from seqtrain.model.engines.native.library import vector_path
from seqtrain.model.engines.native.recurrence import NativeEngine
from seqtrain.model.engines.torch_engine import AUTO, LEAST_FULL, TorchEngine


def choose_engine(
    config: ModelConfig,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    *,
    needs_last_states: bool = False,
) -> Engine:
    """Return the engine that computes a model with weights of this device and type.

    Args:
        config: the section model of a config.
        device: device of the weights.
        dtype: type of the weights.
        needs_last_states: True if the caller needs h and c of the last states. The default engine
            on CUDA then never pads, because padding loses c.

    Raises:
        ConfigError: If model.engine is native, but the native engine can't compute this model.
    """
    asked, unroll = config.engine, config.unroll
    problem = NativeEngine.unavailable(CELLS[config.rnn], device, dtype)
    if asked == "native" and problem:
        raise ConfigError(f"model.engine: found native; {problem}; or set auto or torch")
    if asked == "native":
        return NativeEngine("model.engine")
    if asked == "torch" or unroll != "packed":
        return TorchEngine("model.engine" if asked == "torch" else f"unroll {unroll}", unroll)
    if device.type == "cuda":
        return _for_cuda(config, needs_last_states=needs_last_states)
    if device.type != "cpu":
        return TorchEngine(f"its own kernels on {device.type}")
    if problem:
        return TorchEngine(f"without padding, but slower than native: {problem}")
    return NativeEngine(f"cost linear in length, compiled for {vector_path()}")


def _for_cuda(config: ModelConfig, *, needs_last_states: bool) -> TorchEngine:
    """Return the engine for CUDA.

    The engine pads a batch if this is faster, or else packs it; see `AUTO`. It always packs if
    cuDNN's fast kernels can't compute the hidden size, or if `needs_last_states` is True.
    """
    training, prediction = CELLS[config.rnn].persistent
    if needs_last_states:
        return TorchEngine("packed, for its last states")
    if config.hidden_size > prediction:
        return TorchEngine(f"packed: cuDNN's fast kernels end at model.hidden_size {prediction}")
    when = "" if config.hidden_size <= training else "in prediction, "
    full = f"{LEAST_FULL:.0%}"
    return TorchEngine(
        f"{when}padded if {full} of a batch are valid steps, for cuDNN's fast kernels; else packed",
        AUTO,
    )


def engines_by_name(config: ModelConfig, device: torch.device) -> dict[str, Engine]:
    """Return the engines that can compute a model in float32 on a device, by name.

    model.engine is ignored. The engines are, in this order:

    - "torch": torch's engine with packed steps.
    - "native": the native engine, if it is available.
    - "auto": the default engine on CUDA, if the device is CUDA and model.unroll is packed.
    - "padded" or "masked": torch's engine with this unroll, if model.unroll has this value.

    Args:
        config: the section model of a config.
        device: device that computes.
    """
    engines: dict[str, Engine] = {TorchEngine.name: TorchEngine("packed")}
    if not NativeEngine.unavailable(CELLS[config.rnn], device, torch.float32):
        engines[NativeEngine.name] = NativeEngine("packed")
    if device.type == "cuda" and config.unroll == "packed":
        engines[AUTO] = _for_cuda(config, needs_last_states=False)
    if config.unroll != "packed":
        engines[config.unroll] = TorchEngine(f"unroll {config.unroll}", config.unroll)
    return engines
