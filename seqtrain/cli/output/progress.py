"""The progress bar of all commands."""

from __future__ import annotations

import sys
from typing import Any

from tqdm.auto import tqdm

from seqtrain.cli.output.console import in_notebook


class ProgressBar:
    """A bar on stderr, where that is a terminal; enter it so that it is gone however work ends."""

    def __init__(self) -> None:
        self._bar: tqdm[Any] | None = None
        self._doing = ""

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __call__(self, doing: str, share: float, detail: str = "") -> None:
        """Show what is being done, how much of all is over, in [0, 1], and how it goes."""
        if self._bar is None:
            self._doing = doing
            self._bar = tqdm(
                desc=doing,
                total=1.0,
                initial=share,
                bar_format="{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}{postfix}]",
                file=sys.stderr,
                disable=not (sys.stderr.isatty() or in_notebook()),
                leave=False,
                dynamic_ncols=True,
            )
        if doing != self._doing:
            self._doing = doing
            self._bar.set_description_str(doing)
        self._bar.set_postfix_str(detail, refresh=False)
        self._bar.update(share - self._bar.n)

    def close(self) -> None:
        """Remove the bar; the next call shows a new one."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
