"""Command `seqtrain data`: look at the data of a config without training."""

from pathlib import Path

from seqtrain.cli.options import AS_JSON, CONFIG_FILE, OVERRIDES, option


def data(
    config: str = CONFIG_FILE,
    overrides: list[str] | None = OVERRIDES,
    top: int = option("Number of rows and labels shown of each kind.", "N", min=1, default=5),
    as_json: bool = AS_JSON,
) -> None:
    """Example: seqtrain data my.yaml --set data.max_length=200"""
    from seqtrain.cli.screens.console import note, say_json, show_warning
    from seqtrain.cli.screens.data import inspection_json, show_inspection
    from seqtrain.config import load_config
    from seqtrain.proposal.doubts import column_doubts
    from seqtrain.sequences.inspection import Inspection
    from seqtrain.sequences.sources import check_files

    settings = load_config(config, overrides or [])
    check_files(settings, Path(config).parent)
    note(f"config: {config}")
    found = Inspection(settings, list(column_doubts(settings)))
    if as_json:
        show_warning(
            *(line for line in found.warnings if line not in found.refused)
        )  # which are listed
        say_json(inspection_json(found))
    else:
        show_inspection(found, top)
