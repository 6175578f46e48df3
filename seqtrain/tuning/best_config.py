"""best.yaml: the config as it was given, and what the best trial changed, each with a comment."""

from __future__ import annotations

from collections.abc import Iterator

from seqtrain.config import Config
from seqtrain.config.document import flow
from seqtrain.tuning.space import changed, differing, value_at
from seqtrain.tuning.trials import Trial

BEST_CONFIG = "best.yaml"


def render_best(config: Config, best: Trial, trials: int) -> str:
    """Write a trial's config: the keys that were given, and those that differ from them.

    Args:
        config: that was tuned.
        best: the trial.
        trials: that were made so far.
    """
    settings = differing(config, best.settings)
    head = [
        f"# Written by: seqtrain tune; trial {best.number}, the best of {trials}",
        f"# {config.training.monitor} on validation, which chose it: {best.value:.4f}",
    ]
    return "\n".join([*head, *_lines(config, settings)]) + "\n"


def _lines(config: Config, settings: dict[str, object]) -> Iterator[str]:
    result = changed(config, settings)
    for name in type(result).model_fields:
        if name not in result.model_fields_set:
            continue
        section = getattr(result, name)
        if name == "seed":
            yield f"seed: {section}"
            continue
        keys = [key for key in type(section).model_fields if key in section.model_fields_set]
        yield from [f"{name}:"] if keys else []
        for key in keys:
            own = f"  # was {flow(value_at(config, f'{name}.{key}'))}"
            was = own if f"{name}.{key}" in settings else ""
            yield f"  {key}: {flow(getattr(section, key))}{was}"
