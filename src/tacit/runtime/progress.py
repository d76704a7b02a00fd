"""Progress of long runs: a bar on a terminal or in a notebook, or plain lines for logs."""

from __future__ import annotations

import sys
from typing import Any

from tacit.data.parameters import is_whole

LINE_EVERY = 5.0
"""Seconds between two plain lines."""


class Progress:
    """A tqdm bar on a terminal or in a notebook (``verbose=1``), plain lines anywhere (``verbose=2``).

    Parameters
    ----------
    verbose : 0 for none, 1 for a bar where somebody can see it, 2 for a line every few seconds, for logs
    total : how many steps there will be; None where nobody knows, and then no remaining time is shown
    """

    def __init__(self, verbose: int, total: int | None) -> None:
        self.bar: Any = None
        self._writes_lines = is_whole(verbose) and verbose >= 2
        self._total = total
        self._shown = 0.0
        if verbose and not self._writes_lines and (_is_terminal() or _is_notebook()):
            from tqdm.auto import tqdm

            self.bar = tqdm(total=total, delay=1.0, unit="step", leave=False)

    def show(self, seconds: float, step: int, text: str) -> None:
        """Draw the bar anew, at most ten times per second, or write a line."""
        if self._writes_lines and seconds - self._shown >= LINE_EVERY and sys.stderr is not None:
            self._shown = seconds
            steps = f"step {step}" if self._total is None else f"step {step} of {self._total}"
            sys.stderr.write(f"tacit: {seconds:.0f} s, {steps}, {text}\n")
            sys.stderr.flush()
        if self.bar is None or seconds - self._shown < 0.1:
            return
        self._shown = seconds
        self.bar.n = step
        self.bar.set_postfix_str(text, refresh=False)
        self.bar.update(0)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _is_notebook() -> bool:
    """Whether this is a kernel of Jupyter, which shows bars of its own."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return running is not None and "IPKernelApp" in running.config
