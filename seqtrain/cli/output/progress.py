"""A sign of life while something is measured."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm


class Progress:
    """A bar on stderr, where that is a terminal; enter it so that it is gone however work ends."""

    def __init__(self) -> None:
        self.bar: tqdm[Any] | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def __call__(self, doing: str, share: float) -> None:
        """Show what is being done, and how much of all is over, in [0, 1]."""
        if self.bar is None:
            self.bar = tqdm(
                total=1.0,
                bar_format="{percentage:3.0f}%|{bar:20}| {elapsed} {desc}",
                file=sys.stderr,
                disable=not sys.stderr.isatty(),
                leave=False,
                dynamic_ncols=True,
            )
        self.bar.n = share
        self.bar.set_description_str(doing)
