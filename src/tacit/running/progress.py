"""Progress of long runs on a terminal."""

from __future__ import annotations

import sys
from typing import Any


class Progress:
    """A tqdm bar for long runs on a terminal; nothing otherwise.

    Parameters
    ----------
    verbose : 0 for none
    total : steps at the most; None where that says nothing about how many there will be
    """

    def __init__(self, verbose: int, total: int | None) -> None:
        self.bar: Any = None
        self._shown = 0.0
        if verbose and sys.stderr is not None and sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(total=total, delay=1.0, unit="step", leave=False)

    def show(self, seconds: float, step: int, text: str) -> None:
        """Draw the bar anew, at most ten times per second."""
        if self.bar is None or seconds - self._shown < 0.1:
            return
        self._shown = seconds
        self.bar.n = step
        self.bar.set_postfix_str(text, refresh=False)
        self.bar.update(0)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
