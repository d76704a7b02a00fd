"""What Ctrl-C means: once ends the fit with the best model so far, twice ends everything.

Inside a search or a cross-validation of scikit-learn a fit that was cut short must not be scored as if it were whole:
it raises `InterruptedFitError`. scikit-learn then writes down NaN for this fit and goes on, or ends with
``error_score="raise"``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SECOND_PRESS = 2.0
"""Seconds within which a second Ctrl-C means: end everything."""

SEARCHES = "sklearn.model_selection._validation"
"""The module from which searches and cross-validation call ``fit``."""

_depth: ContextVar[int] = ContextVar("depth", default=0)
_last_press = -float("inf")


class InterruptedFitError(RuntimeError):
    """Ctrl-C during a fit inside a search: there is no whole model to score."""


@contextmanager
def one_run() -> Iterator[bool]:
    """Wraps a run of the loop; tells whether it is inside no other one, so that Ctrl-C ends a fit and not a part."""
    token = _depth.set(_depth.get() + 1)
    try:
        yield _depth.get() == 1
    finally:
        _depth.reset(token)


def accept_press() -> None:
    """Called where Ctrl-C ends a fit. Returns if the best model so far may be kept.

    Raises `KeyboardInterrupt` at the second press within `SECOND_PRESS` seconds, and `InterruptedFitError` inside a
    search.
    """
    global _last_press
    now = time.monotonic()
    is_second, _last_press = now - _last_press < SECOND_PRESS, now
    if is_second:
        raise KeyboardInterrupt
    if _is_in_search():
        raise InterruptedFitError(
            "Ctrl-C: this fit was cut short, and a search does not score it; press Ctrl-C twice to end the search"
        )


def _is_in_search() -> bool:
    """Whether scikit-learn fits in order to score."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == SEARCHES:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
