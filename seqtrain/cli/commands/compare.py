"""`seqtrain compare CONFIG`: all variants of running it, on the user's own data and machine."""

from seqtrain.cli.options import AsJson, ConfigFile, ConfiguredDevice, ForceFile, Overrides, option


def compare(
    config: ConfigFile,
    overrides: Overrides = None,
    seconds: int = option(
        "Seconds for measuring; the start takes about 10 more.", "S", min=1, default=60
    ),
    chart: str | None = option("Also draw a bar chart into this file.", "FILE.svg"),
    force: ForceFile = False,
    device: ConfiguredDevice = None,
    as_json: AsJson = False,
) -> None:
    """Example: seqtrain compare my.yaml --seconds 120 --chart speed.svg"""
    from dataclasses import asdict
    from pathlib import Path

    from seqtrain.cli.output.console import ProgressBar, note, say_json, warn
    from seqtrain.config import load_config
    from seqtrain.errors import ConfigError
    from seqtrain.files.writing import write_file
    from seqtrain.runs.destination import check_destination

    settings = load_config(config, overrides or [])
    if chart is not None:
        if Path(chart).suffix.lower() != ".svg":
            raise ConfigError(f"--chart: found {chart}; expected a name that ends in .svg")
        check_destination(chart, "file", "--chart", force=force)
    note(f"measuring for {seconds} s, in turns")

    from seqtrain.cli.output.compare_screen import draw_speeds, show_comparison
    from seqtrain.comparison.compare import compare as run_comparison

    beside = Path(config).parent
    with ProgressBar() as progress:
        result = run_comparison(
            settings, seconds=seconds, device=device, beside=beside, listener=progress
        )
    left_out = [f"{row.name}: {row.problem}" for row in result.candidates if row.problem]
    warn(*result.warnings, *left_out)
    if chart:
        write_file(Path(chart), draw_speeds(result, title=Path(config).stem).encode())
    if as_json:
        say_json(asdict(result))
    else:
        show_comparison(result)
