"""`seqtrain reconstruct INPUT`: how a pretrained autoencoder reconstructs each row."""

from __future__ import annotations

from enum import Enum
from itertools import chain, islice
from typing import Annotated

import typer

from seqtrain.cli.options import Device, Sequences


class Format(str, Enum):
    """How reconstructions are written."""

    tsv = "tsv"
    jsonl = "jsonl"


def reconstruct(
    source: Sequences,
    run: Annotated[
        str | None, typer.Option(metavar="RUN", help="Run directory; default: the newest.")
    ] = None,
    max_steps: Annotated[
        int, typer.Option(metavar="STEPS", min=1, help="Most tokens per row.")
    ] = 100,
    format: Annotated[Format, typer.Option(help="Output format.")] = Format.tsv,
    device: Device = None,
) -> None:
    """Example: seqtrain reconstruct new.txt --run runs/mine"""
    from seqtrain.api.reconstruct import reconstruct as run_reconstruction
    from seqtrain.text import json_line, printable

    found = run_reconstruction(source, run, max_steps=max_steps, device=device or "auto")
    first = list(islice(found, 1))  # before the header: what can't be read leaves no output
    if format is Format.tsv:
        print("agreement\tsequence\treconstruction")
    for index, row in enumerate(chain(first, found)):
        if format is Format.jsonl:
            values = {
                "index": index,
                "agreement": round(row.agreement, 6),
                "sequence": row.sequence,
                "reconstruction": row.tokens,
            }
            print(json_line(values))
        else:
            texts = (printable(" ".join(tokens)) for tokens in (row.sequence, row.tokens))
            print(f"{row.agreement:.4f}", *texts, sep="\t")
