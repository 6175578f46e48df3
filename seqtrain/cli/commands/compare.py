"""Command `seqtrain compare`: measure every way to handle unequal lengths on this machine."""

from pathlib import Path

from seqtrain.cli.options import AS_JSON, CONFIG_FILE, OVERRIDES, TRAIN_DEVICE, option


def compare(
    config: str = CONFIG_FILE,
    overrides: list[str] | None = OVERRIDES,
    seconds: int = option(
        "Seconds for measuring; the start takes about 10 more.", "S", min=1, default=60
    ),
    device: str | None = TRAIN_DEVICE,
    as_json: bool = AS_JSON,
) -> None:
    """Example: seqtrain compare my.yaml --seconds 120"""
    from contextlib import closing
    from dataclasses import asdict

    from seqtrain.cli.screens.console import ProgressBar, note, say_json, show_warning
    from seqtrain.config import load_config

    settings = load_config(config, overrides or [])
    note(f"measuring for {seconds} s, in turns")

    from seqtrain.api.compare import compare as run_comparison
    from seqtrain.cli.screens.compare import show_comparison

    config_folder = Path(config).parent
    with closing(ProgressBar()) as progress:
        result = run_comparison(
            settings, seconds=seconds, device=device, config_folder=config_folder, listener=progress
        )
    left_out = [f"{row.name}: {row.problem}" for row in result.candidates if row.problem]
    show_warning(*result.warnings, *left_out)
    if as_json:
        say_json(asdict(result))
    else:
        show_comparison(result)
