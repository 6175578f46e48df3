"""Typed config: strict YAML in, all problems reported together."""

from seqtrain.config.load import (
    check_options,
    config_from_mapping,
    load_config,
    parse_config,
    resolved_config,
)
from seqtrain.config.rendering import config_schema, key_reference, render_config, values_by_key
from seqtrain.config.schema import Config

__all__ = [
    "Config",
    "check_options",
    "config_from_mapping",
    "config_schema",
    "key_reference",
    "load_config",
    "parse_config",
    "render_config",
    "resolved_config",
    "values_by_key",
]
