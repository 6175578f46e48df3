"""Typed config: strict YAML in, all problems reported together."""

from seqtrain.config.formats import FIXED_COLUMNS, resolve_format
from seqtrain.config.loading import (
    config_from_mapping,
    load_config,
    parse_config,
    resolved_config,
)
from seqtrain.config.rendering import config_schema, key_reference, render_config
from seqtrain.config.schema import (
    BatchingConfig,
    Config,
    DataConfig,
    ModelConfig,
    PretrainingConfig,
    TrainingConfig,
    values_by_key,
)

__all__ = [
    "FIXED_COLUMNS",
    "BatchingConfig",
    "Config",
    "DataConfig",
    "ModelConfig",
    "PretrainingConfig",
    "TrainingConfig",
    "config_from_mapping",
    "config_schema",
    "key_reference",
    "load_config",
    "parse_config",
    "render_config",
    "resolve_format",
    "resolved_config",
    "values_by_key",
]
