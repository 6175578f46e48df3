"""Command `seqtrain config`: print a resolved config, the JSON Schema, or the reference."""

import json

from seqtrain.cli.options import OVERRIDES, argument, flag
from seqtrain.errors import ConfigError


def config(
    config: str | None = argument("YAML file of the run.", "CONFIG", None),
    overrides: list[str] | None = OVERRIDES,
    schema: bool = flag("Print the JSON Schema of a config instead.", "--schema"),
    reference: bool = flag("Print a Markdown table of all keys instead.", "--reference"),
) -> None:
    """Example: seqtrain config my.yaml --set model.rnn=lstm"""
    from seqtrain.config import config_schema, key_reference, load_config, render_config

    if schema:
        print(json.dumps(config_schema(), indent=2))
    elif reference:
        print(key_reference(), end="")
    elif config is None:
        raise ConfigError("CONFIG: missing; give a YAML file, --schema or --reference")
    else:
        print(render_config(load_config(config, overrides or []), defaulted=True), end="")
