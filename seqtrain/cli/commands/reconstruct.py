"""Command `seqtrain reconstruct`: show how a pretrained autoencoder reconstructs each row."""

from itertools import chain, islice
from typing import Literal

from seqtrain.cli.options import DEVICE, argument, option
from seqtrain.text import json_line, printable


def reconstruct(
    source: str = argument("File of sequences, or - for standard input.", "INPUT"),
    run: str | None = option("Run with an autoencoder. Default: the newest run.", "RUN"),
    max_steps: int = option("Most tokens to decode per row.", "STEPS", min=1, default=100),
    format: Literal["tsv", "jsonl"] = option("Output format.", default="tsv"),
    device: str = DEVICE,
) -> None:
    """Example: seqtrain reconstruct new.txt --run runs/mine"""
    from seqtrain.api.predict import reconstruct as run_reconstruction

    found = run_reconstruction(source, run, max_steps=max_steps, device=device)
    first = list(islice(found, 1))
    if format == "tsv":
        print("agreement\tsequence\treconstruction")
    for index, row in enumerate(chain(first, found)):
        if format == "jsonl":
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
